import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { pauseAfter_ms } from "./pauses.ts";
import { asTrouble, type Trouble } from "./trouble.ts";

/** Something that is on its way, is here, or cannot come. What is here may be old: `stale` is why
 * no newer one came. */
export type Loading<Value> =
  | { state: "loading" }
  | { state: "here"; value: Value; heard_unix_ms: number; stale: Trouble | null }
  | { state: "trouble"; trouble: Trouble };

/** Loads again when the key changes, and when it is asked to. What is here stays shown while it
 * is asked again, and when that fails. Troubles that may pass are followed by asking again, with
 * growing pauses. */
export function useLoaded<Value>(key: string, load: () => Promise<Value>): [Loading<Value>, () => void] {
  const [found, setFound] = useState<{ key: string; loading: Loading<Value> }>({ key, loading: { state: "loading" } });
  const [turn, setTurn] = useState(0);
  const failures = useRef({ key, amount: 0 });
  const again = useCallback(() => {
    setTurn((last) => last + 1);
  }, []);
  useEffect(() => {
    let current = true;
    let timer = 0;
    if (failures.current.key !== key) failures.current = { key, amount: 0 };
    load().then(
      (value) => {
        if (!current) return;
        failures.current.amount = 0;
        setFound({ key, loading: { state: "here", value, heard_unix_ms: Date.now(), stale: null } });
      },
      (error: unknown) => {
        if (!current) return;
        const trouble = asTrouble(error);
        failures.current.amount += 1;
        if (trouble.passes) timer = window.setTimeout(again, pauseAfter_ms(failures.current.amount));
        // What was read before stays, marked as stale, where it cannot be read again.
        setFound((last) => ({ key, loading: last.key === key && last.loading.state === "here" ? { ...last.loading, stale: trouble } : { state: "trouble", trouble } }));
      },
    );
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
    // The key says what is loaded.
  }, [key, turn]);
  return [found.key === key ? found.loading : { state: "loading" }, again];
}

/** Asks again when the reader comes back to the page: what others have done meanwhile is to be
 * seen. */
export function useReturn(again: () => void): void {
  useEffect(() => {
    const look = () => {
      if (document.visibilityState === "visible") again();
    };
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
    };
  }, [again]);
}

/** So often a list is asked for again while it is shown: rarely enough for a server beside which
 * trials are measured. */
const FRESH_MS = 30_000;

/** Asks again when the reader comes back, and now and then while the page is visible: to show
 * what begins meanwhile. */
export function useFresh(again: () => void): void {
  useReturn(again);
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (document.visibilityState === "visible") again();
    }, FRESH_MS);
    return () => {
      window.clearInterval(timer);
    };
  }, [again]);
}
