import * as Plot from "@observablehq/plot";
import { VERDICT_SYMBOL, VERDICT_WORD } from "../analysis/verdicts.ts";
import type { Verdict } from "../model.ts";

/** The texts of one row of a bar chart: who, and what was found. */
export interface RowLabel {
  index: number;
  title: string;
  figure: string;
  interval: string;
  verdict: Verdict | null;
}

/** Below this width names and figures are above the bars, not beside them. */
const NARROW = 640;
const FONT_SIZE = 13;
/** Plot reckons line widths with a regular face; bold ones, DejaVu above all, are this much
 * wider. */
const BOLD_WIDENS = 1.3;

export interface RowLayout {
  narrow: boolean;
  height: number;
  marginLeft: number;
  marginRight: number;
  /** Where in its row, of height 1 around the index, a bar begins and ends. */
  bar: [number, number];
}

export function rowLayout(width: number, rows: number, axisHeight: number): RowLayout {
  const narrow = width < NARROW;
  const rowHeight = narrow ? 62 : 44;
  return {
    narrow,
    height: rows * rowHeight + axisHeight,
    marginLeft: narrow ? 6 : Math.min(210, Math.round(width * 0.24)),
    marginRight: narrow ? 12 : 224,
    bar: narrow ? [0.1, 0.36] : [-0.23, 0.23],
  };
}

/** Size, margins and rows of a bar chart; it has so much room below for its axis. */
export function rowFrame(layout: RowLayout, width: number, rows: number, axisHeight: number): Plot.PlotOptions {
  return {
    width,
    height: layout.height,
    marginTop: 4,
    marginBottom: axisHeight - 6,
    marginLeft: layout.marginLeft,
    marginRight: layout.marginRight,
    className: "plot",
    y: { domain: [-0.5, rows - 0.5], range: [4, layout.height - axisHeight + 6], axis: null },
  };
}

export function verdictColour(verdict: Verdict | null): string {
  return verdict === null ? "var(--ink-2)" : `var(--${verdict})`;
}

/** Text is given as data, never as markup: names in a report come from somebody's files. */
export function rowLabelMarks(labels: readonly RowLabel[], layout: RowLayout): Plot.Markish[] {
  const y = (label: RowLabel) => label.index;
  const symbol = (label: RowLabel) => (label.verdict === null ? "" : VERDICT_SYMBOL[label.verdict]);
  const word = (label: RowLabel) => (label.verdict === null ? "" : VERDICT_WORD[label.verdict]);
  const colour = (label: RowLabel) => verdictColour(label.verdict);
  if (layout.narrow) {
    const halo = { stroke: "var(--page)", strokeWidth: 4 } as const;
    const first = { ...halo, frameAnchor: "left", textAnchor: "start", y, dy: -22 } as const;
    const second = { ...halo, frameAnchor: "left", textAnchor: "start", y, dy: -6 } as const;
    return [
      Plot.text(labels, { ...first, text: "title", fontWeight: 600, fill: "var(--ink)", lineWidth: 34, textOverflow: "ellipsis" }),
      Plot.text(labels, { ...second, text: "figure", fontWeight: 600, fill: colour }),
      Plot.text(labels, {
        ...second, frameAnchor: "right", textAnchor: "end", fill: "var(--ink-2)",
        text: (label: RowLabel) => `${symbol(label)} ${word(label)} ${label.interval}`.trim(),
      }),
    ];
  }
  const right = { frameAnchor: "right", textAnchor: "start", y } as const;
  const figure = { ...right, dx: 34, text: "figure", fontWeight: 600, fill: colour } as const;
  const hasSecondLine = (label: RowLabel) => label.interval !== "";
  return [
    Plot.text(labels, {
      frameAnchor: "left", textAnchor: "start", y, dx: -layout.marginLeft, text: "title", fontWeight: 600, fill: "var(--ink)",
      lineWidth: (layout.marginLeft - 14) / FONT_SIZE / BOLD_WIDENS,
    }),
    Plot.text(labels, { ...right, dx: 16, text: symbol, fontWeight: 700, fill: colour }),
    Plot.text(labels.filter(hasSecondLine), { ...figure, dy: -8 }),
    Plot.text(labels.filter((label) => !hasSecondLine(label)), figure),
    Plot.text(labels, { ...right, dx: 34, dy: 9, fontSize: 12, text: (label: RowLabel) => [word(label), label.interval].filter(Boolean).join(" "), fill: "var(--ink-2)" }),
  ];
}
