import * as Plot from "@observablehq/plot";
import type { Verdict } from "../model.ts";
import { verdictColour } from "./row-labels.ts";

export interface Bar {
  index: number;
  from: number;
  to: number;
  low: number | null;
  high: number | null;
  verdict: Verdict | null;
}

interface Whisker {
  index: number;
  low: number;
  high: number;
}

interface End {
  index: number;
  at: number;
}

const CAP = 0.11;

/** Bars with interval whiskers. An undecided bar is hollow and dashed, since nothing fills it
 * yet. */
export function barMarks(bars: readonly Bar[], [top, bottom]: [number, number]): Plot.Markish[] {
  const middle = (top + bottom) / 2;
  const whiskers: Whisker[] = bars.flatMap(({ index, low, high }) => (low === null || high === null ? [] : [{ index, low, high }]));
  const ends: End[] = whiskers.flatMap(({ index, low, high }) => [low, high].map((at) => ({ index, at })));
  const box = {
    x1: (bar: Bar) => Math.min(bar.from, bar.to),
    x2: (bar: Bar) => Math.max(bar.from, bar.to),
    y1: (bar: Bar) => bar.index + top,
    y2: (bar: Bar) => bar.index + bottom,
    stroke: (bar: Bar) => verdictColour(bar.verdict),
  };
  const solid = bars.filter((bar) => bar.verdict !== "undecided");
  const hollow = bars.filter((bar) => bar.verdict === "undecided");
  return [
    Plot.rect(solid, { ...box, fill: (bar: Bar) => (bar.verdict === null ? "var(--reference-fill)" : verdictColour(bar.verdict)) }),
    Plot.rect(hollow, { ...box, fill: "var(--page)", strokeDasharray: "3 2" }),
    Plot.ruleY(whiskers, { x1: "low", x2: "high", y: (row: Whisker) => row.index + middle, stroke: "var(--page)", strokeWidth: 4.5 }),
    Plot.ruleY(whiskers, { x1: "low", x2: "high", y: (row: Whisker) => row.index + middle, stroke: "var(--ink)", strokeWidth: 1.5 }),
    Plot.ruleX(ends, {
      x: "at", y1: (end: End) => end.index + middle - CAP, y2: (end: End) => end.index + middle + CAP, stroke: "var(--ink)", strokeWidth: 1.5,
    }),
  ];
}
