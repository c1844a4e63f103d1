import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { pathOf, pathRange, type PathPoint } from "../analysis/search.ts";
import { isKnown, tick, tps } from "../format/number.ts";
import { axisTick } from "../format/unit.ts";
import type { Searched } from "../model.ts";
import { PlotFigure } from "./plot-figure.tsx";

const HEIGHT = 320;
const LEFT = 64;

export function searchSummary(search: Searched, what: string): string {
  const parts = pathOf(search).map(({ at, step }) => `trial ${String(at)}: ${isKnown(step.figure) ? tps(step.figure) : "failed"}, best so far ${tps(step.best?.figure)}`);
  return `${what} trial by trial. ${parts.join("; ")}.`;
}

/** Trials in order, and the best so far with its interval; a trial that failed is at the lower
 * edge, one that breaks a bound is hollow. */
export function SearchChart({ search, what, unit }: { search: Searched; what: string; unit: string }) {
  const draw = useCallback(
    (width: number) => {
      const points = pathOf(search);
      const [low, high] = pathRange(search);
      const measured = points.filter(({ step }) => isKnown(step.figure));
      const held = measured.filter(({ step }) => step.broken.length === 0);
      const hollow = measured.filter(({ step }) => step.broken.length > 0);
      const failed = points.filter(({ step }) => !isKnown(step.figure));
      const best = points.filter(({ step }) => step.best !== null);
      const dot = { x: "at", y: (point: PathPoint) => point.step.figure, r: 4, strokeWidth: 2 } as const;
      return Plot.plot({
        width,
        height: HEIGHT,
        marginTop: 32,
        marginBottom: 44,
        marginLeft: LEFT,
        marginRight: 20,
        className: "plot",
        x: { domain: [0.5, points.length + 0.5], label: null },
        y: { domain: [low, high], label: null },
        marks: [
          Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
          Plot.axisY({ ticks: 5, tickSize: 0, tickFormat: axisTick, label: null }),
          Plot.text([`${what}, ${unit}`], { frameAnchor: "top-left", textAnchor: "start", dx: 8 - LEFT, dy: -24, text: (label: string) => label, fill: "var(--ink-2)" }),
          Plot.axisX({ ticks: Math.min(points.length, Math.max(3, Math.floor(width / 60))), tickSize: 4, tickFormat: (at: number) => (Number.isInteger(at) ? tick(at) : ""), label: "trial", labelAnchor: "center", labelArrow: "none", labelOffset: 38 }),
          Plot.areaY(best, { x: "at", y1: (point: PathPoint) => point.step.best?.interval?.[0] ?? NaN, y2: (point: PathPoint) => point.step.best?.interval?.[1] ?? NaN, curve: "step-after", fill: "var(--t2)", fillOpacity: 0.18 }),
          Plot.line(best, { x: "at", y: (point: PathPoint) => point.step.best?.figure, curve: "step-after", stroke: "var(--t2)", strokeWidth: 2 }),
          Plot.dot(held, { ...dot, stroke: "var(--t1)", fill: "var(--t1)" }),
          Plot.dot(hollow, { ...dot, stroke: "var(--t1)", fill: "var(--page)" }),
          Plot.dot(failed, { x: "at", y: () => low, r: 5, symbol: "times", stroke: "var(--worse)", strokeWidth: 2 }),
        ],
      });
    },
    [search, what, unit],
  );
  return <PlotFigure draw={draw} summary={searchSummary(search, what)} name={`Search: ${what} trial by trial`} />;
}
