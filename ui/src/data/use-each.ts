import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { pauseAfter_ms } from "./pauses.ts";
import { asTrouble, type Trouble } from "./trouble.ts";

/** One of several things that are wanted at once; the key says which. */
export interface Wanted<Value> {
  key: string;
  load: () => Promise<Value>;
}

/** What has come, and why the rest has not, by key; what is in neither is on its way. */
export interface Each<Value> {
  values: ReadonlyMap<string, Value>;
  troubles: ReadonlyMap<string, Trouble>;
}

/** The same where nothing is dropped. */
function kept<Value>(all: ReadonlyMap<string, Value>, keys: ReadonlySet<string>): ReadonlyMap<string, Value> {
  return [...all.keys()].every((key) => keys.has(key)) ? all : new Map([...all].filter(([key]) => keys.has(key)));
}

/** Loads each by itself: what is here stays while others come, and what failed is asked for again
 * alone, with growing pauses where the trouble may pass; where it does not, when the reader says
 * so. What is no longer wanted is forgotten. */
export function useEach<Value>(wanted: readonly Wanted<Value>[]): [Each<Value>, () => void] {
  const [found, setFound] = useState<Each<Value>>({ values: new Map(), troubles: new Map() });
  const [turn, setTurn] = useState(0);
  /** Here, on its way, or refused for good. */
  const asked = useRef(new Set<string>());
  const refused = useRef(new Set<string>());
  const failures = useRef(new Map<string, number>());
  const current = useRef<ReadonlySet<string>>(new Set());
  const next = useCallback(() => {
    setTurn((last) => last + 1);
  }, []);
  const again = useCallback(() => {
    for (const key of refused.current) asked.current.delete(key);
    refused.current.clear();
    next();
  }, [next]);
  const list = wanted.map(({ key }) => key).join("\n");
  useEffect(() => {
    const keys = new Set(wanted.map(({ key }) => key));
    current.current = keys;
    for (const key of [...asked.current, ...failures.current.keys()]) {
      if (keys.has(key)) continue;
      asked.current.delete(key);
      refused.current.delete(key);
      failures.current.delete(key);
    }
    setFound((last) => {
      const [values, troubles] = [kept(last.values, keys), kept(last.troubles, keys)];
      return values === last.values && troubles === last.troubles ? last : { values, troubles };
    });
    for (const { key, load } of wanted) {
      if (asked.current.has(key)) continue;
      asked.current.add(key);
      load().then(
        (value) => {
          if (!current.current.has(key)) return;
          failures.current.delete(key);
          setFound(({ values, troubles }) => ({ values: new Map(values).set(key, value), troubles: new Map([...troubles].filter(([other]) => other !== key)) }));
        },
        (error: unknown) => {
          if (!current.current.has(key)) return;
          const trouble = asTrouble(error);
          if (trouble.passes) asked.current.delete(key);
          else refused.current.add(key);
          failures.current.set(key, (failures.current.get(key) ?? 0) + 1);
          setFound(({ values, troubles }) => ({ values, troubles: new Map(troubles).set(key, trouble) }));
        },
      );
    }
    // The keys say what is wanted.
  }, [list, turn]);
  useEffect(() => {
    const passing = [...found.troubles].filter(([, { passes }]) => passes).map(([key]) => failures.current.get(key) ?? 1);
    if (passing.length === 0) return undefined;
    const timer = window.setTimeout(next, pauseAfter_ms(Math.max(...passing)));
    return () => {
      window.clearTimeout(timer);
    };
  }, [found.troubles, next]);
  return [found, again];
}
