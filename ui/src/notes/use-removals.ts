import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** So long something that was taken away can be had back. */
const UNDO_MS = 10_000;

/** Something that the reader took away: out of sight at once, away from the server a little
 * later. */
export interface Removal {
  /** What it is, as "tag nightly" or "note 3". */
  key: string;
  kind: "tag" | "note";
  /** As it is in "… was removed". */
  text: string;
}

interface Held extends Removal {
  /** Whether it can still be had back, is being taken away, or is away and waits for the list
   * without it. */
  phase: "offered" | "sending" | "sent";
}

export interface Removals {
  /** Keys of what is out of sight. */
  hidden: ReadonlySet<string>;
  /** What can be had back. */
  offered: readonly Removal[];
  remove: (removal: Removal, send: () => Promise<void>) => void;
  /** Brings it back into sight. */
  undo: (key: string) => void;
  /** What is away is no longer held back from a new list. */
  settle: () => void;
}

/** `onSent` is called when the server has taken something away, `onTrouble` when it could not.
 * Who leaves the page has meant it. */
export function useRemovals(onSent: () => void, onTrouble: (error: unknown) => void): Removals {
  const [held, setHeld] = useState<readonly Held[]>([]);
  const waiting = useRef(new Map<string, { timer: number; send: () => Promise<void> }>());
  const reload = useRef(onSent);
  reload.current = onSent;
  useEffect(() => {
    let leaving: Promise<void>[] = [];
    const flush = () => {
      for (const { timer, send } of waiting.current.values()) {
        window.clearTimeout(timer);
        // Nothing is left that could show a failure.
        leaving.push(send().catch(() => undefined));
      }
      waiting.current.clear();
    };
    // The browser may have kept the page as it was: what went with the reader cannot be had back,
    // and the server knows what is left.
    const comeBack = ({ persisted }: PageTransitionEvent) => {
      if (!persisted) return;
      setHeld((last) => last.map((each) => ({ ...each, phase: "sent" })));
      void Promise.all(leaving).then(() => {
        reload.current();
      });
      leaving = [];
    };
    window.addEventListener("pagehide", flush);
    window.addEventListener("pageshow", comeBack);
    return () => {
      window.removeEventListener("pagehide", flush);
      window.removeEventListener("pageshow", comeBack);
      flush();
    };
  }, []);
  const drop = useCallback((key: string) => {
    setHeld((last) => last.filter((each) => each.key !== key));
  }, []);
  const undo = useCallback((key: string) => {
    window.clearTimeout(waiting.current.get(key)?.timer);
    waiting.current.delete(key);
    drop(key);
  }, [drop]);
  const remove = (removal: Removal, send: () => Promise<void>) => {
    const turnTo = (phase: Held["phase"]) => {
      setHeld((last) => [...last.filter(({ key }) => key !== removal.key), { ...removal, phase }]);
    };
    const timer = window.setTimeout(() => {
      waiting.current.delete(removal.key);
      turnTo("sending");
      send().then(
        () => {
          turnTo("sent");
          onSent();
        },
        (error: unknown) => {
          drop(removal.key);
          onTrouble(error);
        },
      );
    }, UNDO_MS);
    waiting.current.set(removal.key, { timer, send });
    turnTo("offered");
  };
  const settle = useCallback(() => {
    setHeld((last) => (last.some(({ phase }) => phase === "sent") ? last.filter(({ phase }) => phase !== "sent") : last));
  }, []);
  return { hidden: new Set(held.map(({ key }) => key)), offered: held.filter(({ phase }) => phase === "offered"), remove, undo, settle };
}
