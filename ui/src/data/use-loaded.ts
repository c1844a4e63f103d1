import { useCallback, useEffect, useState } from "preact/hooks";
import { asTrouble, type Trouble } from "./trouble.ts";

/** Something that is on its way, is here, or cannot come. */
export type Loading<Value> = { state: "loading" } | { state: "here"; value: Value } | { state: "trouble"; trouble: Trouble };

/** Loads anew when the key changes, and when it is asked to. What is here stays shown while it is asked again. */
export function useLoaded<Value>(key: string, load: () => Promise<Value>): [Loading<Value>, () => void] {
  const [found, setFound] = useState<{ key: string; loading: Loading<Value> }>({ key, loading: { state: "loading" } });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    const keep = (loading: Loading<Value>) => {
      if (!current) return;
      // What was read before is worth more than the news that it cannot be read again.
      setFound((last) => (loading.state === "trouble" && last.key === key && last.loading.state === "here" ? last : { key, loading }));
    };
    load().then(
      (value) => {
        keep({ state: "here", value });
      },
      (error: unknown) => {
        keep({ state: "trouble", trouble: asTrouble(error) });
      },
    );
    return () => {
      current = false;
    };
    // What is loaded is told by the key.
  }, [key, turn]);
  const again = useCallback(() => {
    setTurn((last) => last + 1);
  }, []);
  return [found.key === key ? found.loading : { state: "loading" }, again];
}
