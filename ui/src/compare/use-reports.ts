import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Source } from "../data/source.ts";
import { asTrouble, type Trouble } from "../data/trouble.ts";
import type { Report } from "../model.ts";

/** Reports by the number of their experiment; one that is here stays while others come. */
export function useReports(source: Source, experiments: readonly number[]): [ReadonlyMap<number, Report>, Trouble | null, () => void] {
  const [reports, setReports] = useState<ReadonlyMap<number, Report>>(new Map());
  const [troubles, setTroubles] = useState<ReadonlyMap<number, Trouble>>(new Map());
  const asked = useRef(new Set<number>());
  const [turn, setTurn] = useState(0);
  const key = experiments.join(" ");
  useEffect(() => {
    for (const id of experiments) {
      if (asked.current.has(id)) continue;
      asked.current.add(id);
      source.report(id).then(
        (report) => {
          setReports((known) => new Map(known).set(id, report));
        },
        (error: unknown) => {
          setTroubles((known) => new Map(known).set(id, asTrouble(error)));
        },
      );
    }
    // The numbers are told by the key.
  }, [key, source, turn]);
  const again = useCallback(() => {
    for (const id of troubles.keys()) asked.current.delete(id);
    setTroubles(new Map());
    setTurn((last) => last + 1);
  }, [troubles]);
  const trouble = experiments.map((id) => troubles.get(id)).find((each) => each !== undefined) ?? null;
  return [reports, trouble, again];
}
