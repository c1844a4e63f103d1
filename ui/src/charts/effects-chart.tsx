import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { effectDomain, percentOf, type EffectRow } from "../analysis/effects.ts";
import { effectWithInterval, VERDICT_WORD } from "../analysis/verdicts.ts";
import { change, changeBounds, tick, withUnit } from "../format/number.ts";
import { barMarks, type Bar } from "./bars.ts";
import { PlotFigure } from "./plot-figure.tsx";
import { rowFrame, rowLabelMarks, rowLayout, type RowLabel } from "./row-labels.ts";

const AXIS_HEIGHT = 44;

function labelOf({ index, title, effect, missing }: EffectRow): RowLabel {
  if (effect === null) return { index, title, figure: missing, interval: "", verdict: null };
  const interval = `(${changeBounds(effect.ratio_low, effect.ratio_high)})`;
  return { index, title, figure: change(effect.ratio), interval, verdict: effect.verdict };
}

function barOf({ index, effect }: EffectRow): Bar[] {
  if (effect === null) return [];
  const { ratio, ratio_low, ratio_high, verdict } = effect;
  return [{ index, from: 0, to: percentOf(ratio), low: percentOf(ratio_low), high: percentOf(ratio_high), verdict }];
}

export function effectsSummary(rows: readonly EffectRow[], what: string): string {
  const parts = rows.map(({ title, effect }) => (effect === null ? `${title}: not known` : `${title}: ${effectWithInterval(effect)}, ${VERDICT_WORD[effect.verdict]}`));
  return `${what}. ${parts.join("; ")}.`;
}

interface Props {
  rows: readonly EffectRow[];
  smallestEffect: number;
  /** What the chart shows, for readers who do not see it. */
  what: string;
  /** Label of the axis. */
  axis: string;
}

/** Effects in percent with their intervals; the shaded band is where differences do not matter. */
export function EffectsChart({ rows, smallestEffect, what, axis }: Props) {
  const draw = useCallback(
    (width: number) => {
      const layout = rowLayout(width, rows.length, AXIS_HEIGHT);
      const ticks = layout.narrow ? 4 : 7;
      return Plot.plot({
        ...rowFrame(layout, width, rows.length, AXIS_HEIGHT),
        x: { domain: effectDomain(rows, smallestEffect), nice: true, clamp: true, label: null },
        marks: [
          Plot.rectX([smallestEffect * 100], { x1: (band: number) => -band, x2: (band: number) => band, fill: "var(--shade)" }),
          Plot.gridX({ stroke: "var(--line)", strokeOpacity: 1, ticks }),
          Plot.axisX({ ticks, tickSize: 0, tickFormat: (value: number) => withUnit(`${value > 0 ? "+" : ""}${tick(value)}`, "%"), label: axis, labelAnchor: "center", labelArrow: "none", labelOffset: 34 }),
          Plot.ruleX([0], { stroke: "var(--ink-3)" }),
          ...barMarks(rows.flatMap(barOf), layout.bar),
          ...rowLabelMarks(rows.map(labelOf), layout),
        ],
      });
    },
    [rows, smallestEffect, axis],
  );
  return <PlotFigure draw={draw} summary={effectsSummary(rows, what)} name={what} />;
}
