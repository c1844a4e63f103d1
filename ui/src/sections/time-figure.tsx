import { useCallback, useId, useMemo, useRef, useState } from "preact/hooks";
import { align, atIndex, reachOf, type Aligned, type Metric } from "../analysis/series.ts";
import type { Stretch } from "../analysis/steady.ts";
import { ShadeKey } from "../charts/shade-key.tsx";
import { ThroughputChart } from "../charts/throughput-chart.tsx";
import { bounds, count, plural, tps, withUnit, type Maybe } from "../format/number.ts";
import { milliseconds } from "../format/span.ts";
import type { Mark, Treatment, Trial } from "../model.ts";
import { TimeAxis } from "../trial/axis.ts";
import { pressOn, TimeToolbar, useRange } from "../trial/time-toolbar.tsx";

const inTps = (value: Maybe) => withUnit(tps(value), "TPS");
const inSeconds = (seconds: number) => `${count(seconds)} s`;

interface ReadoutProps {
  treatments: readonly Treatment[];
  trials: readonly Trial[];
  metric: Metric;
  data: Aligned;
  index: number | null;
}

/** The values under the pointer, one sentence per treatment; without a pointer, that there are
 * some. */
function Readout({ treatments, trials, metric, data: { seconds, columns }, index }: ReadoutProps) {
  const second = index === null ? undefined : seconds[index];
  if (index === null || second === undefined) return <p class="readout">Move the pointer over a second to show its values here.</p>;
  const reach_s = reachOf(trials);
  const [figure, bound] = metric === "tps" ? [inTps, tps] : [milliseconds, milliseconds];
  return (
    <p class="readout">
      <strong>at {second} s</strong>
      {treatments.map((treatment) => {
        const at = atIndex(seconds, columns.filter((_, column) => trials[column]?.treatment === treatment.name), index, reach_s);
        return (
          <span key={treatment.name}>
            {treatment.title}: {at === null ? "nothing" : `${figure(at.mean)} (${bounds(at.low, at.high, bound)})`}
          </span>
        );
      })}
    </p>
  );
}

/** An axis as long as the longest trial drawn. Where others are drawn, the stretch in view
 * stays. */
function useAxis({ seconds }: Aligned): TimeAxis {
  const kept = useRef<TimeAxis | null>(null);
  const end_s = seconds.at(-1) ?? 1;
  return useMemo(() => {
    kept.current = new TimeAxis([0, end_s], kept.current?.range ?? null);
    return kept.current;
  }, [end_s]);
}

interface Props {
  treatments: readonly Treatment[];
  trials: readonly Trial[];
  plan: readonly Treatment[];
  metric: Metric;
  warmup_s: number;
  unsettled: readonly Stretch[];
  marks: readonly Mark[];
  summary: string;
  name: string;
}

/** The chart of trials over time with what belongs to it: the stretch in view, by mouse and
 * keyboard, the legend and the values under the pointer. */
export function TimeFigure({ treatments, trials, plan, metric, warmup_s, unsettled, marks, summary, name }: Props) {
  const data = useMemo(() => align(trials, metric), [trials, metric]);
  const axis = useAxis(data);
  const range = useRange(axis);
  const helpId = useId();
  const [cursor, setCursor] = useState<number | null>(null);
  const onCursor = useCallback((index: number | null) => {
    setCursor(index);
  }, []);
  const hatched = unsettled.length === 0 ? null : `measured before it was steady, in ${count(unsettled.length)} of ${plural(trials.length, "trial")}; in no rate and no response time`;
  return (
    <figure class="time-figure" tabIndex={0} aria-label={name} aria-describedby={helpId} onKeyDown={pressOn(axis)}>
      <TimeToolbar axis={axis} range={range} instant={inSeconds} helpId={helpId} charts="it" />
      <ThroughputChart axis={axis} data={data} trials={trials} plan={plan} metric={metric} warmup_s={warmup_s} unsettled={unsettled} summary={summary} name={name} marks={marks} onCursor={onCursor} />
      <figcaption>
        <ShadeKey warmup_s={warmup_s} unsettled={hatched} />
        <Readout treatments={treatments} trials={trials} metric={metric} data={data} index={cursor} />
      </figcaption>
    </figure>
  );
}
