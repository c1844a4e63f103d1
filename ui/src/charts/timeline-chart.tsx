import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { levels } from "../analysis/timeline.ts";
import { tick, tps } from "../format/number.ts";
import { axisTick } from "../format/unit.ts";
import type { Shift, Timeline, TimelinePoint } from "../model.ts";
import { PlotFigure } from "./plot-figure.tsx";

const HEIGHT = 320;
const LEFT = 64;

export function timelineSummary(timeline: Timeline, title: string): string {
  const parts = timeline.shifts.map((shift) => `${shift.title} after ${tick(shift.t_s)} s: ${tps(shift.before_tps)} TPS before, ${tps(shift.after_tps)} after`);
  return `Throughput over time, ${title}. ${parts.join("; ")}.`;
}

/** Mean throughput second by second, with a line where each event was, and the level on both
 * sides of it. */
export function TimelineChart({ timeline, title }: { timeline: Timeline; title: string }) {
  const draw = useCallback(
    (width: number) => {
      const { seconds, shifts, warmup_s } = timeline;
      const top = Math.max(1, ...seconds.map((second) => second.tps));
      const end = seconds.at(-1)?.t_s ?? 1;
      return Plot.plot({
        width,
        height: HEIGHT,
        marginTop: 44,
        marginBottom: 44,
        marginLeft: LEFT,
        marginRight: 20,
        className: "plot",
        x: { domain: [0, end], label: null },
        y: { domain: [0, top * 1.06], label: null },
        marks: [
          Plot.rectX(warmup_s > 0 ? [warmup_s] : [], { x1: () => 0, x2: (length: number) => length, fill: "var(--shade)" }),
          Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
          Plot.axisY({ ticks: 5, tickSize: 0, tickFormat: axisTick, label: null }),
          Plot.text(["throughput, TPS"], { frameAnchor: "top-left", textAnchor: "start", dx: 8 - LEFT, dy: -34, text: (label: string) => label, fill: "var(--ink-2)" }),
          Plot.axisX({ ticks: Math.max(3, Math.floor(width / 110)), tickSize: 4, tickFormat: tick, label: "seconds since the load began", labelAnchor: "center", labelArrow: "none", labelOffset: 38 }),
          Plot.ruleY([0], { stroke: "var(--line-strong)" }),
          Plot.rect(shifts, { x1: "t_s", x2: (shift: Shift) => shift.t_s + Math.max(shift.took_s, end / 400), y1: () => 0, y2: () => top * 1.06, fill: "var(--ink-3)", fillOpacity: 0.5 }),
          Plot.text(shifts, { x: "t_s", frameAnchor: "top", dy: -14, text: "title", fontWeight: 600, fill: "var(--ink)" }),
          Plot.line(seconds, { x: (second: TimelinePoint) => second.t_s - 0.5, y: "tps", stroke: "var(--t1)", strokeWidth: 2 }),
          Plot.ruleY(levels(timeline), { x1: "from_s", x2: "to_s", y: "tps", stroke: "var(--ink)", strokeDasharray: "6 3" }),
        ],
      });
    },
    [timeline],
  );
  return <PlotFigure draw={draw} summary={timelineSummary(timeline, title)} name={`Throughput over time: ${title}`} />;
}
