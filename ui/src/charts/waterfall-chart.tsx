import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { effectWithInterval, VERDICT_WORD } from "../analysis/verdicts.ts";
import { connectors, waterfallDomain, type Connector, type WaterfallRow } from "../analysis/waterfall.ts";
import { bounds, change, changeBounds, isKnown, tick, tps, withUnit } from "../format/number.ts";
import { barMarks, type Bar } from "./bars.ts";
import { PlotFigure } from "./plot-figure.tsx";
import { rowFrame, rowLabelMarks, rowLayout, type RowLabel } from "./row-labels.ts";

const AXIS_HEIGHT = 44;

function labelOf(row: WaterfallRow): RowLabel {
  const { index, title, treatment, effect, to_tps, low_tps, high_tps } = row;
  const base = { index, title, verdict: row.verdict };
  if (to_tps === null) {
    return { ...base, figure: treatment.status === "not-tested" ? "not tested" : "no finished trial", interval: "" };
  }
  if (effect === null) {
    const interval = isKnown(low_tps) && isKnown(high_tps) ? `(${bounds(low_tps, high_tps, tps)})` : "";
    return { ...base, figure: withUnit(tps(to_tps), "TPS"), interval };
  }
  return { ...base, figure: change(effect.ratio), interval: `(${changeBounds(effect.ratio_low, effect.ratio_high)})` };
}

function barOf(row: WaterfallRow): Bar[] {
  const { index, from_tps, to_tps, low_tps, high_tps, verdict } = row;
  if (from_tps === null || to_tps === null) return [];
  return [{ index, from: from_tps, to: to_tps, low: low_tps, high: high_tps, verdict }];
}

export function waterfallSummary(rows: readonly WaterfallRow[]): string {
  const parts = rows.map(({ title, effect, to_tps }) => {
    if (to_tps === null) return `${title}: no throughput`;
    const found = effect === null ? "" : `, ${effectWithInterval(effect)}, ${VERDICT_WORD[effect.verdict]}`;
    return `${title}: ${tps(to_tps)} TPS${found}`;
  });
  return `Waterfall of throughput by step. ${parts.join("; ")}.`;
}

/** Throughput step by step: each bar floats from the throughput before the step to the one after
 * it. */
export function WaterfallChart({ rows }: { rows: readonly WaterfallRow[] }) {
  const draw = useCallback(
    (width: number) => {
      const layout = rowLayout(width, rows.length, AXIS_HEIGHT);
      return Plot.plot({
        ...rowFrame(layout, width, rows.length, AXIS_HEIGHT),
        x: { domain: waterfallDomain(rows), label: null },
        marks: [
          Plot.gridX({ stroke: "var(--line)", strokeOpacity: 1, ticks: layout.narrow ? 4 : 6 }),
          Plot.axisX({ ticks: layout.narrow ? 4 : 6, tickSize: 0, tickFormat: tick, label: "throughput, transactions per second", labelAnchor: "center", labelArrow: "none", labelOffset: 34 }),
          Plot.ruleX([0], { stroke: "var(--line-strong)" }),
          Plot.ruleX(connectors(rows), {
            x: "tps", y1: (line: Connector) => line.from + layout.bar[1], y2: (line: Connector) => line.to + layout.bar[0], stroke: "var(--ink-3)", strokeDasharray: "1 2",
          }),
          ...barMarks(rows.flatMap(barOf), layout.bar),
          ...rowLabelMarks(rows.map(labelOf), layout),
        ],
      });
    },
    [rows],
  );
  return <PlotFigure draw={draw} summary={waterfallSummary(rows)} name="Throughput by step" />;
}
