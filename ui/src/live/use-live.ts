import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { pauseAfter_ms } from "../data/pauses.ts";
import type { Server } from "../data/source.ts";
import { cut, troubleTold, type Trouble } from "../data/trouble.ts";
import type { Progress } from "../model.ts";

/** The state of an experiment's stream. */
export interface Live {
  state: "connecting" | "open" | "cut" | "refused" | "ended";
  progress: Progress | null;
  /** Reader's clock when progress last came. */
  heard_unix_ms: number | null;
  /** What the server reports of itself, or why it refuses; null when all is well. */
  trouble: Trouble | null;
  status: string | null;
}

const FIRST: Live = { state: "connecting", progress: null, heard_unix_ms: null, trouble: null, status: null };

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(typeof text === "string" ? text : "null");
  } catch {
    return null;
  }
}

interface Hearing {
  /** What changed. */
  keep: (change: Partial<Live>) => void;
  onProgress: (progress: Progress) => void;
  onEnd: () => void;
  /** The stream is gone; whether the server refused it, as far as a browser shows. */
  onError: (mayBeRefused: boolean) => void;
}

/** Opens a stream once; its events go to `hearing`. */
function listen(address: string, { keep, onProgress, onEnd, onError }: Hearing): EventSource {
  const stream = new EventSource(address);
  stream.addEventListener("open", () => {
    keep({ state: "open", trouble: null });
  });
  stream.addEventListener("progress", (event: MessageEvent) => {
    const data = parsed(event.data);
    if (typeof data !== "object" || data === null) return;
    keep({ state: "open", progress: data as Progress, heard_unix_ms: Date.now(), trouble: null });
    onProgress(data as Progress);
  });
  stream.addEventListener("trouble", (event: MessageEvent) => {
    keep({ state: "open", trouble: troubleTold(parsed(event.data)) });
  });
  stream.addEventListener("end", (event: MessageEvent) => {
    const data = parsed(event.data) as { status?: unknown } | null;
    stream.close();
    keep({ state: "ended", trouble: null, status: typeof data?.status === "string" ? data.status : null });
    onEnd();
  });
  stream.addEventListener("error", () => {
    const mayBeRefused = stream.readyState === EventSource.CLOSED;
    // Its own way of trying again gives up where the server refuses, and says nothing of it.
    stream.close();
    onError(mayBeRefused);
  });
  return stream;
}

/** Follows an experiment, of which `known` trials are shown already (null: unknown); `onTrial` is
 * called when there are others. A stream that is cut or refused is said to be so, and where that
 * may pass tried again, with growing pauses. */
export function useLive(server: Server | null, experiment: number, known: number | null, onTrial: () => void): [Live, () => void] {
  const [live, setLive] = useState<Live>(FIRST);
  const [turn, setTurn] = useState(0);
  // Counted rather than reported one by one: none is missed while the stream is cut.
  const seen = useRef(known);
  useEffect(() => {
    if (server === null) return undefined;
    let current = true;
    let stream: EventSource | null = null;
    let timer = 0;
    let failures = 0;
    const keep = (change: Partial<Live>) => {
      if (current) setLive((last) => ({ ...last, ...change }));
    };
    const stopped = (trouble: Trouble) => {
      if (!current) return;
      failures += 1;
      keep({ state: trouble.kind === "cut" ? "cut" : "refused", trouble });
      if (trouble.passes) timer = window.setTimeout(open, pauseAfter_ms(failures));
    };
    const open = () => {
      stream = listen(server.liveAddress(experiment), {
        keep,
        onProgress: (progress) => {
          failures = 0;
          const trials = progress.trials_finished + progress.trials_failed;
          if (seen.current !== null && trials !== seen.current) onTrial();
          seen.current = trials;
        },
        onEnd: onTrial,
        onError: (mayBeRefused) => {
          if (mayBeRefused) void server.whyNoLive(experiment).then(stopped);
          else stopped(cut());
        },
      });
    };
    open();
    return () => {
      current = false;
      window.clearTimeout(timer);
      stream?.close();
    };
  }, [server, experiment, onTrial, turn]);
  const again = useCallback(() => {
    setTurn((last) => last + 1);
  }, []);
  return [live, again];
}
