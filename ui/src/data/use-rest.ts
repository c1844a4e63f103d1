import { useEffect, useRef } from "preact/hooks";
import { pauseAfter_ms } from "./pauses.ts";
import type { Loading } from "./use-loaded.ts";

/** Asks again, with growing pauses, as long as the server says that the rest of an answer comes
 * with a later one. */
export function useRest<Value>(loading: Loading<Value>, isWhole: (value: Value) => boolean, again: () => void): void {
  const asked = useRef(0);
  const heard_unix_ms = loading.state === "here" ? loading.heard_unix_ms : null;
  const isDue = loading.state === "here" && !isWhole(loading.value);
  useEffect(() => {
    if (!isDue) {
      asked.current = 0;
      return undefined;
    }
    // Who comes back asks by himself (useReturn).
    if (document.visibilityState === "hidden") return undefined;
    asked.current += 1;
    const timer = window.setTimeout(again, pauseAfter_ms(asked.current));
    return () => {
      window.clearTimeout(timer);
    };
    // Each answer that is not whole is followed by one question.
  }, [isDue, heard_unix_ms, again]);
}
