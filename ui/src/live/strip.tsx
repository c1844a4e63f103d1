import { VERDICT_WORD } from "../analysis/verdicts.ts";
import { useSource } from "../data/context.ts";
import { count, isKnown } from "../format/number.ts";
import { clockTime, duration } from "../format/time.ts";
import type { Progress } from "../model.ts";
import { useLive, type Live } from "./use-live.ts";

function Bar({ progress }: { progress: Progress }) {
  const { trials_finished: done, trials_planned: planned } = progress;
  if (!isKnown(planned)) return null;
  return <progress class="live-bar" max={Math.max(1, planned)} value={Math.min(done, planned)} aria-label="Trials finished" />;
}

function Figures({ progress }: { progress: Progress }) {
  const { current, left_s, decided } = progress;
  return (
    <dl class="live-figures">
      <div>
        <dt>Trials</dt>
        <dd>
          {count(progress.trials_finished)}
          {isKnown(progress.trials_planned) ? ` of ${count(progress.trials_planned)}` : ""}
        </dd>
      </div>
      <div>
        <dt>So far</dt>
        <dd>{isKnown(progress.elapsed_s) ? duration(progress.elapsed_s * 1000) : "not known"}</dd>
      </div>
      <div>
        <dt>Time left</dt>
        <dd>{isKnown(left_s) ? `about ${duration(left_s * 1000)}` : "not known yet"}</dd>
      </div>
      <div class="live-now">
        <dt>Now</dt>
        <dd>{current === null ? (progress.phase ?? "between trials") : `${current.treatment}, block ${String(current.block)}: ${current.phase}`}</dd>
      </div>
      {decided.length === 0 ? null : (
        <div>
          <dt>Decided</dt>
          <dd>{decided.map(({ treatment, verdict }) => `${treatment} ${VERDICT_WORD[verdict]}`).join(", ")}</dd>
        </div>
      )}
    </dl>
  );
}

function stateInWords({ state, trouble, heard_unix_ms, status }: Live): string {
  const since = heard_unix_ms === null ? "" : ` The figures are of ${clockTime(heard_unix_ms)}.`;
  switch (state) {
    case "connecting":
      return "Connecting …";
    case "open":
      return trouble === null ? "Live" : `${trouble.heading} ${trouble.advice}${since}`;
    case "cut":
      return `The connection is cut; it is tried again, with growing pauses.${since}`;
    case "refused":
      return `${trouble?.heading ?? "The server refuses."} ${trouble?.passes === true ? "It is tried again, with growing pauses." : (trouble?.advice ?? "")}${since}`;
    case "ended":
      return `Ended: ${status ?? "finished"}`;
  }
}

interface Props {
  experiment: number;
  running: boolean;
  /** Trials that the page shows already. */
  trials: number;
  onNews: () => void;
}

/** What a running experiment is at. */
export function LiveStrip({ experiment, running, trials, onNews }: Props) {
  const { server } = useSource();
  const [live, again] = useLive(running ? server : null, experiment, trials, onNews);
  if (!running || server === null) return null;
  const isOff = live.state === "cut" || live.state === "refused";
  return (
    <aside class={`live live-${live.state === "open" && live.trouble !== null ? "trouble" : live.state}`} aria-label="Progress">
      <div class="live-head">
        <p class="live-state" role="status">
          <span class="live-dot" aria-hidden="true" />
          {stateInWords(live)}
        </p>
        {isOff ? (
          <button type="button" class="button" onClick={again}>
            Try again
          </button>
        ) : null}
      </div>
      {live.progress === null ? null : (
        <>
          <Bar progress={live.progress} />
          <Figures progress={live.progress} />
        </>
      )}
    </aside>
  );
}
