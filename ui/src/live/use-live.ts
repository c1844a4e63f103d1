import { useEffect, useState } from "preact/hooks";
import type { Progress } from "../model-serve.ts";

/** How the stream of an experiment stands. */
export interface Live {
  state: "connecting" | "open" | "cut" | "ended";
  progress: Progress | null;
  /** Reader's clock when progress last came. */
  heard_unix_ms: number | null;
  status: string | null;
}

const FIRST: Live = { state: "connecting", progress: null, heard_unix_ms: null, status: null };
const RETRY_FIRST_MS = 1_000;
const RETRY_MOST_MS = 30_000;

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(typeof text === "string" ? text : "null");
  } catch {
    return null;
  }
}

/** Follows an experiment; a cut stream is said to be cut and tried again, at growing intervals. */
export function useLive(address: string | null, onTrial: () => void): Live {
  const [live, setLive] = useState<Live>(FIRST);
  useEffect(() => {
    if (address === null) return undefined;
    let stream: EventSource | null = null;
    let timer = 0;
    let wait_ms = RETRY_FIRST_MS;
    let seen: number | null = null;
    const keep = (change: Partial<Live>) => {
      setLive((last) => ({ ...last, ...change }));
    };
    const open = () => {
      stream = new EventSource(address);
      stream.addEventListener("open", () => {
        wait_ms = RETRY_FIRST_MS;
        keep({ state: "open" });
      });
      stream.addEventListener("progress", (event: MessageEvent) => {
        const told = parsed(event.data);
        if (typeof told !== "object" || told === null) return;
        const progress = told as Progress;
        keep({ state: "open", progress, heard_unix_ms: Date.now() });
        // Counted rather than told one by one: none is missed while the stream is cut.
        const trials = progress.trials_finished + progress.trials_failed;
        if (seen !== null && trials !== seen) onTrial();
        seen = trials;
      });
      stream.addEventListener("end", (event: MessageEvent) => {
        const told = parsed(event.data) as { status?: unknown } | null;
        stream?.close();
        keep({ state: "ended", status: typeof told?.status === "string" ? told.status : null });
        onTrial();
      });
      stream.addEventListener("error", () => {
        // Its own way of trying again gives up where the server refuses, and says nothing of it.
        stream?.close();
        keep({ state: "cut" });
        timer = window.setTimeout(open, wait_ms);
        wait_ms = Math.min(RETRY_MOST_MS, wait_ms * 2);
      });
    };
    open();
    return () => {
      window.clearTimeout(timer);
      stream?.close();
    };
  }, [address, onTrial]);
  return live;
}
