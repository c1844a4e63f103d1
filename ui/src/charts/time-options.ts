import type uPlot from "uplot";
import type { Metric } from "../analysis/series.ts";
import type { Stretch } from "../analysis/steady.ts";
import { tick } from "../format/number.ts";
import type { Mark, Treatment, Trial } from "../model.ts";
import type { TimeAxis } from "../trial/axis.ts";
import { takeSelection, zoomCursor, zoomScale } from "../trial/zoom.ts";
import { endLabels, LABEL_ROOM } from "./end-labels.ts";
import { markStrip, stripHeight } from "./mark-strip.ts";
import { drawUnsettled } from "./steady.ts";
import { cssValue, treatmentStyle } from "./style.ts";
import { warmupShade } from "./time-marks.ts";

const HEIGHT = 340;
/** Below this width the names find no room behind the lines and are on them. */
const NARROW = 640;

interface Wanted {
  axis: TimeAxis;
  width: number;
  trials: readonly Trial[];
  plan: readonly Treatment[];
  metric: Metric;
  warmup_s: number;
  /** What was measured before the trials drawn were steady. */
  unsettled: readonly Stretch[];
  /** Of all trials drawn, in a strip of their own above the lines: bands of many trials would
   * hide them. */
  marks: readonly Mark[];
  onCursor: (index: number | null) => void;
}

/** The options of uPlot; colours are read now, because canvas cannot follow CSS later. */
export function timeOptions({ axis: looked, width, trials, plan, metric, warmup_s, unsettled, marks, onCursor }: Wanted): uPlot.Options {
  const narrow = width < NARROW;
  const font = `12px ${cssValue("--sans")}`;
  const places = trials.map((trial) => plan.findIndex((treatment) => treatment.name === trial.treatment));
  // Worked out once for each chart, not for each of its drawings.
  const [shadeWarmup, drawStrip, hatch] = [warmupShade(warmup_s, font), markStrip(marks), cssValue("--ink-3")];
  const drawLabels = endLabels(places, plan, font, narrow ? "inside" : "behind");
  const axis = { stroke: cssValue("--ink-2"), font, labelFont: font, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [10 + stripHeight(marks), narrow ? 16 : LABEL_ROOM, 0, 0],
    cursor: zoomCursor(looked),
    scales: {
      x: zoomScale(looked),
      // From zero, whatever part of the time is in view: before and after stay comparable by eye.
      y: { range: (_chart, _low, high) => [0, high > 0 ? high * 1.05 : 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, label: "seconds since the load began", labelSize: 22, size: 30 },
      {
        ...axis,
        grid: { stroke: cssValue("--line"), width: 1 },
        label: metric === "tps" ? "transactions per second" : "p95 response time, ms",
        labelSize: 20,
        size: 52,
        values: (_chart, ticks) => ticks.map(tick),
      },
    ],
    series: [
      {},
      ...trials.map((trial, column) => {
        const { variable } = treatmentStyle(places[column] ?? 0);
        return {
          label: `trial ${String(trial.id)}`,
          stroke: cssValue(variable),
          width: 1.25,
          alpha: trial.status === "finished" ? 0.85 : 0.4,
          points: { show: false },
          spanGaps: false,
        };
      }),
    ],
    hooks: {
      drawClear: [
        (chart) => {
          shadeWarmup(chart);
          drawUnsettled(chart, unsettled, trials.length, hatch);
        },
      ],
      draw: [
        (chart) => {
          drawStrip(chart);
          drawLabels(chart);
        },
      ],
      setCursor: [
        (chart) => {
          onCursor(chart.cursor.idx ?? null);
        },
      ],
      setSelect: [takeSelection(looked)],
    },
  };
}
