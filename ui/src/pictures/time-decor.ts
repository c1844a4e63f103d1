import type uPlot from "uplot";
import type { Stretch } from "../analysis/steady.ts";
import { GAP, kindsOf, ROW } from "../charts/mark-strip.ts";
import { hatchOpacity, HATCH_STEP } from "../charts/steady.ts";
import { cssValue } from "../charts/style.ts";
import type { Mark, MarkKind } from "../model.ts";
import { MARK_TITLE, MARK_VARIABLE } from "../trial/draw-marks.ts";
import { escaped } from "./plain-svg.ts";

/** How a line or an area is shown in the legend of a picture. */
export interface PictureKey {
  title: string;
  /** Name of the CSS variable that holds the colour. */
  variable: string;
  dash: readonly number[];
  area: boolean;
}

/** What belongs to a chart over time and is not a line of it. */
export interface Decor {
  warmup_s: number;
  /** What was measured before the trials drawn were steady, and of how many trials. */
  unsettled: readonly Stretch[];
  trials: number;
  marks: readonly Mark[];
  /** Marks in a strip above the lines, as where many trials are drawn; else as bands over them. */
  strip: boolean;
  keys: readonly PictureKey[];
}

const LEGEND_ROW = 18;
const SWATCH = 22;
/** Mean width of a letter at 12 px; names of no picture are measured, for vectors have no
 * canvas. */
const LETTER = 6.8;

function shownAs(seconds: number, chart: uPlot, width: number): number {
  return Math.min(width, Math.max(0, chart.valToPos(seconds, "x")));
}

function ends({ at_ms, until_ms }: Mark, chart: uPlot, width: number): [number, number] {
  return [shownAs(at_ms / 1000, chart, width), shownAs((until_ms ?? at_ms) / 1000, chart, width)];
}

function inView({ at_ms, until_ms }: Mark, chart: uPlot): boolean {
  const { min, max } = chart.scales.x ?? {};
  return at_ms / 1000 <= (max ?? Infinity) && (until_ms ?? at_ms) / 1000 >= (min ?? 0);
}

/** The warm-up; the legend names it, for areas may cover it. */
export function drawnShade(chart: uPlot, { warmup_s }: Decor, width: number, height: number): string {
  const until = warmup_s > 0 ? shownAs(warmup_s, chart, width) : 0;
  return until <= 0 ? "" : `<rect width="${until.toFixed(1)}" height="${String(height)}" fill="${cssValue("--shade")}"/>`;
}

/** Hatching of what was measured before it was steady, as the chart has it. */
export function drawnHatch(chart: uPlot, { unsettled, trials }: Decor, width: number, height: number): string {
  const opacity = hatchOpacity(trials).toFixed(3);
  return unsettled
    .map(({ from_s, to_s }, place) => {
      const [from, to] = [shownAs(from_s, chart, width), shownAs(to_s, chart, width)];
      if (to <= from) return "";
      const id = `unsettled-${String(place)}`;
      let lines = "";
      for (let at = Math.floor((from - height) / HATCH_STEP) * HATCH_STEP; at < to; at += HATCH_STEP) lines += `M${String(at)},${String(height)}L${String(at + height)},0`;
      return `<clipPath id="${id}"><rect x="${from.toFixed(1)}" width="${(to - from).toFixed(1)}" height="${String(height)}"/></clipPath><path clip-path="url(#${id})" d="${lines}" stroke="${cssValue("--ink-3")}" stroke-opacity="${opacity}" fill="none"/>`;
    })
    .join("");
}

/** Marks as thin bands over the whole height. */
export function drawnBands(chart: uPlot, marks: readonly Mark[], width: number, height: number): string {
  return marks
    .filter((mark) => inView(mark, chart))
    .map((mark) => {
      const [from, to] = ends(mark, chart, width);
      const rect = (x: number, wide: number, opacity: number) => `<rect x="${x.toFixed(1)}" width="${wide.toFixed(1)}" height="${String(height)}" fill="${cssValue(MARK_VARIABLE[mark.kind])}" fill-opacity="${String(opacity)}"/>`;
      return rect(from, Math.max(1, to - from), 0.07) + rect(from, 1, 0.6);
    })
    .join("");
}

/** A row above the lines for each kind of mark. */
export function drawnStrip(chart: uPlot, marks: readonly Mark[], width: number): string {
  const kinds = kindsOf(marks);
  return marks
    .filter((mark) => kinds.includes(mark.kind) && inView(mark, chart))
    .map((mark) => {
      const [from, to] = ends(mark, chart, width);
      const y = -(GAP + (kinds.length - kinds.indexOf(mark.kind)) * ROW);
      const rect = (wide: number, opacity: number) => `<rect x="${from.toFixed(1)}" y="${String(y)}" width="${wide.toFixed(1)}" height="${String(ROW - 3)}" fill="${cssValue(MARK_VARIABLE[mark.kind])}" fill-opacity="${String(opacity)}"/>`;
      return rect(Math.max(1, to - from), 0.3) + rect(1.5, 0.9);
    })
    .join("");
}

function swatch({ variable, dash, area }: PictureKey): string {
  const colour = cssValue(variable);
  if (area) return `<rect x="1" y="-9" width="14" height="10" fill="${colour}" fill-opacity="0.72"/>`;
  return `<line x1="0" x2="18" y1="-4" y2="-4" stroke="${colour}" stroke-width="2"${dash.length === 0 ? "" : ` stroke-dasharray="${dash.join(" ")}"`}/>`;
}

/** Names of lines and of the kinds of mark, in as many rows as they need. */
export function drawnLegend({ keys, marks, strip, warmup_s, unsettled }: Decor, room: number, ink: string): { text: string; height: number } {
  const kinds = strip ? kindsOf(marks) : [...new Set(marks.map(({ kind }): MarkKind => kind))];
  const all = [
    ...keys.map((key) => ({ title: key.title, drawn: swatch(key) })),
    ...(warmup_s > 0 ? [{ title: "warm-up", drawn: `<rect x="4" y="-9" width="10" height="10" fill="${cssValue("--shade")}" stroke="${cssValue("--line-strong")}"/>` }] : []),
    ...(unsettled.length > 0 ? [{ title: "not steady yet", drawn: `<rect x="4" y="-9" width="10" height="10" fill="none" stroke="${cssValue("--line-strong")}"/><path d="M4,-3L10,-9M4,1L14,-9M8,1L14,-5" stroke="${cssValue("--ink-3")}" fill="none"/>` }] : []),
    ...kinds.map((kind) => ({ title: MARK_TITLE[kind], drawn: `<rect x="4" y="-9" width="10" height="10" fill="${cssValue(MARK_VARIABLE[kind])}" fill-opacity="0.35"/><rect x="4" y="-9" width="1.5" height="10" fill="${cssValue(MARK_VARIABLE[kind])}"/>` })),
  ];
  let [x, row] = [0, 0];
  const text = all.map(({ title, drawn }) => {
    const wide = SWATCH + title.length * LETTER + 18;
    if (x > 0 && x + wide > room - 80) [x, row] = [0, row + 1];
    const item = `<g transform="translate(${x.toFixed(1)} ${String(14 + row * LEGEND_ROW)})">${drawn}<text x="${String(SWATCH)}" fill="${ink}">${escaped(title)}</text></g>`;
    x += wide;
    return item;
  });
  return { text: text.join(""), height: all.length === 0 ? 4 : (row + 1) * LEGEND_ROW + 10 };
}
