import { useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Aligned, Metric } from "../analysis/series.ts";
import type { Stretch } from "../analysis/steady.ts";
import { useDisplay } from "../display.ts";
import type { Mark, Treatment, Trial } from "../model.ts";
import { SaveButtons } from "../parts/save-buttons.tsx";
import type { PictureKey } from "../pictures/time-decor.ts";
import type { TimeAxis } from "../trial/axis.ts";
import { treatmentStyle } from "./style.ts";
import { timeOptions } from "./time-options.ts";
import { useWidth } from "./use-width.ts";

interface Props {
  /** The stretch in view outlives the chart, which is made again whenever something else is
   * drawn. */
  axis: TimeAxis;
  /** The trials, aligned. */
  data: Aligned;
  trials: readonly Trial[];
  plan: readonly Treatment[];
  metric: Metric;
  warmup_s: number;
  unsettled: readonly Stretch[];
  summary: string;
  /** Title of the picture when it is saved. */
  name: string;
  marks: readonly Mark[];
  onCursor: (index: number | null) => void;
}

/** Trials of a treatment share its colour. */
function keysOf(trials: readonly Trial[], plan: readonly Treatment[]): PictureKey[] {
  const places = [...new Set(trials.map((trial) => plan.findIndex(({ name }) => name === trial.treatment)))];
  return places.map((place) => ({ title: plan[place]?.title ?? "", variable: treatmentStyle(place).variable, dash: [], area: false }));
}

/** One line per trial and second. */
export function ThroughputChart({ axis, data, trials, plan, metric, warmup_s, unsettled, summary, name, marks, onCursor }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const width = useWidth(holder);
  const { theme } = useDisplay();
  useLayoutEffect(() => {
    const node = holder.current;
    if (node === null || width === 0) return undefined;
    const chart = new uPlot(
      timeOptions({ axis, width, trials, plan, metric, warmup_s, unsettled, marks, onCursor }),
      [data.seconds, ...data.columns],
      node,
    );
    drawn.current = chart;
    const remove = axis.add(chart);
    return () => {
      remove();
      drawn.current = null;
      chart.destroy();
    };
  }, [axis, data, width, theme, warmup_s, unsettled, plan, metric, trials, marks, onCursor]);
  return (
    <div class="saveable">
      <div class="chart time-chart" ref={holder} role="img" aria-label={summary} />
      <SaveButtons name={name} picture={() => (drawn.current === null ? null : { kind: "time", chart: drawn.current, title: name, unit: metric === "tps" ? "TPS" : "ms", decor: { warmup_s, unsettled, trials: trials.length, marks, strip: true, keys: keysOf(trials, plan) } })} />
    </div>
  );
}
