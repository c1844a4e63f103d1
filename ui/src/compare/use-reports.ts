import type { Source } from "../data/source.ts";
import type { Trouble } from "../data/trouble.ts";
import { useEach } from "../data/use-each.ts";
import type { Report } from "../model.ts";

/** Reports by the number of their experiment; one that is here stays while others come, and one
 * that failed is asked for again. */
export function useReports(source: Source, experiments: readonly number[]): [ReadonlyMap<number, Report>, Trouble | null, () => void] {
  const [{ values, troubles }, again] = useEach(experiments.map((id) => ({ key: String(id), load: () => source.report(id) })));
  const reports = new Map([...values].map(([id, report]) => [Number(id), report]));
  const trouble = experiments.map((id) => troubles.get(String(id))).find((each) => each !== undefined) ?? null;
  return [reports, trouble, again];
}
