import { HEAT_HEIGHT, HEAT_MARGIN, heatLayout, partOf } from "../charts/heat-layout.ts";
import { cssValue, mixed } from "../charts/style.ts";
import { count } from "../format/number.ts";
import type { Heat } from "../model.ts";
import { escaped, framed, type Size } from "./plain-svg.ts";

const HEAD = 30;
const LEGEND = 34;
const SWATCH = { width: 18, height: 12 };
/** About what a character and a row of the legend take. */
const CHARACTER = 7;
const ROW = 18;

/** What the strength of the colour means: 1, and shares of the most. */
function stepsOf(most: number): number[] {
  return [...new Set([1, ...[0.1, 0.25, 0.5, 1].map((share) => Math.max(1, Math.round(share * most)))])];
}

/** A heat map as vectors, with title, scales and what its colours mean. `unit` is what was
 * counted. */
export function heatSvg(heat: Heat, width: number, title: string, ylabel: string, unit: string): { text: string; size: Size } {
  const layout = heatLayout(heat, width);
  const [ground, ink, grey] = [cssValue("--page"), cssValue("--t1"), cssValue("--ink-2")];
  const sizeOf = (rows: number) => ({ width, height: HEAD + HEAT_HEIGHT + LEGEND + rows * ROW });
  if (layout === null) return { text: framed("", title, sizeOf(0)), size: sizeOf(0) };
  const text = (x: number, y: number, content: string, anchor: string) => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${grey}">${escaped(content)}</text>`;
  const cells = layout.cells.map((cell) => `<rect x="${String(cell.x)}" y="${String(cell.y)}" width="${String(cell.width)}" height="${String(cell.height)}" fill="${mixed(ground, ink, cell.part)}"/>`);
  const labels = [
    ...layout.left.map((label) => text(HEAT_MARGIN.left - 6, label.y + 4, label.text, "end")),
    ...layout.below.map((label) => text(label.x, HEAT_HEIGHT - HEAT_MARGIN.bottom + 16, label.text, "middle")),
    text(4, 14, ylabel, "start"),
    text(layout.middle, HEAT_HEIGHT - 4, "since the load began", "middle"),
  ];
  let [x, rows] = [HEAT_MARGIN.left, 0];
  /** Where the next part of the legend is: below where it would be cut off. */
  const place = (wanted: number): [x: number, y: number] => {
    if (x + wanted > width && x > HEAT_MARGIN.left) [x, rows] = [HEAT_MARGIN.left, rows + 1];
    const at: [number, number] = [x, HEAT_HEIGHT + 12 + rows * ROW];
    x += wanted + 15;
    return at;
  };
  const legend = stepsOf(layout.most).map((amount) => {
    const label = count(amount);
    const [left, top] = place(SWATCH.width + 5 + label.length * CHARACTER);
    const swatch = `<rect x="${left.toFixed(1)}" y="${String(top)}" width="${String(SWATCH.width)}" height="${String(SWATCH.height)}" fill="${mixed(ground, ink, partOf(amount, layout.most))}"/>`;
    return swatch + text(left + SWATCH.width + 5, top + 10, label, "start");
  });
  const [left, top] = place(unit.length * CHARACTER);
  const inside = [...cells, ...labels, ...legend, text(left, top + 10, unit, "start")].join("");
  const size = sizeOf(rows);
  return { text: framed(`<g transform="translate(0 ${String(HEAD)})" font-size="12">${inside}</g>`, title, size), size };
}
