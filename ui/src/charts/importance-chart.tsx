import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import type { FactorPart } from "../analysis/search.ts";
import { roundShare, tick, withUnit } from "../format/number.ts";
import { barMarks } from "./bars.ts";
import { PlotFigure } from "./plot-figure.tsx";
import { rowFrame, rowLabelMarks, rowLayout } from "./row-labels.ts";

const AXIS_HEIGHT = 44;

/** Each factor's part of what the settings changed. */
export function ImportanceChart({ parts }: { parts: readonly FactorPart[] }) {
  const draw = useCallback(
    (width: number) => {
      const layout = rowLayout(width, parts.length, AXIS_HEIGHT);
      const bars = parts.map(({ part }, index) => ({ index, from: 0, to: part * 100, low: null, high: null, verdict: null }));
      const labels = parts.map(({ factor, part, before, best }, index) => ({
        index, title: factor, figure: roundShare(part), interval: before === best ? "unchanged" : `${before ?? "?"} to ${best ?? "?"}`, verdict: null,
      }));
      return Plot.plot({
        ...rowFrame(layout, width, parts.length, AXIS_HEIGHT),
        x: { domain: [0, Math.max(1, ...bars.map(({ to }) => to))], nice: true, label: null },
        marks: [
          Plot.gridX({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
          Plot.axisX({ ticks: 5, tickSize: 0, tickFormat: (value: number) => withUnit(tick(value), "%"), label: "part of what the settings changed", labelAnchor: "center", labelArrow: "none", labelOffset: 34 }),
          ...barMarks(bars, layout.bar),
          ...rowLabelMarks(labels, layout),
        ],
      });
    },
    [parts],
  );
  const summary = `Importance of each factor. ${parts.map(({ factor, part }) => `${factor}: ${roundShare(part)}`).join("; ")}.`;
  return <PlotFigure draw={draw} summary={summary} name="Importance of each factor" />;
}
