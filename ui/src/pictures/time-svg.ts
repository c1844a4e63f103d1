import type uPlot from "uplot";
import { drawnBands, drawnHatch, drawnLegend, drawnShade, drawnStrip, type Decor } from "./time-decor.ts";
import { escaped, framed, type Size } from "./plain-svg.ts";

const HEAD = 30;
/** Below the lines: the times and what they are of. */
const AXIS_ROOM = 44;
/** Room behind the lines that every chart has. */
const EDGE = 10;

function resolved(value: unknown): string {
  const made: unknown = typeof value === "function" ? (value as () => unknown)() : value;
  return typeof made === "string" ? made : "none";
}

/** Path of a column between the instants in view; a gap begins a new piece, and each piece of an
 * area goes down to zero by itself. */
function path(chart: uPlot, column: number, toZero: boolean): string {
  const [times, values] = [chart.data[0], chart.data[column] ?? []];
  const [from, to] = chart.series[0]?.idxs ?? [0, times.length - 1];
  const pieces: { x: string; y: string }[][] = [[]];
  for (let place = from; place <= to; place += 1) {
    const value = values[place];
    if (value === undefined) continue;
    if (value === null) pieces.push([]);
    else pieces.at(-1)?.push({ x: chart.valToPos(times[place] ?? 0, "x").toFixed(1), y: chart.valToPos(value, "y").toFixed(1) });
  }
  const ground = chart.valToPos(0, "y").toFixed(1);
  return pieces
    .filter((piece) => piece.length > 0)
    .map((piece) => {
      const line = `M${piece.map(({ x, y }) => `${x},${y}`).join("L")}`;
      return toZero ? `${line}L${piece.at(-1)?.x ?? ""},${ground}L${piece[0]?.x ?? ""},${ground}Z` : line;
    })
    .join("");
}

function drawnAxes(chart: uPlot, width: number, height: number): string {
  const colour = (place: number) => resolved((chart.axes[place] as { stroke?: unknown } | undefined)?.stroke);
  const labels = (place: number) => {
    const axis = chart.axes[place] as { _splits?: number[]; _values?: (string | null)[] } | undefined;
    return (axis?._splits ?? []).map((at, index) => ({ at, text: axis?._values?.[index] ?? "" })).filter(({ text }) => text !== "");
  };
  const down = labels(1).map(({ at, text }) => {
    const y = chart.valToPos(at, "y");
    return `<line x1="0" x2="${String(width)}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="#8883"/><text x="-6" y="${(y + 4).toFixed(1)}" text-anchor="end" fill="${colour(1)}">${escaped(text)}</text>`;
  });
  const along = labels(0)
    .map(({ at, text }) => ({ x: chart.valToPos(at, "x"), text }))
    .filter(({ x }) => x >= 0 && x <= width)
    .map(({ x, text }) => {
      // The last one would run out of the picture.
      const far = x + text.length * 4 > width + EDGE;
      return `<text x="${(far ? width + EDGE : x).toFixed(1)}" y="${String(height + 16)}" text-anchor="${far ? "end" : "middle"}" fill="${colour(0)}">${escaped(text)}</text>`;
    });
  return [...down, ...along].join("");
}

/** What a chart over time shows at the moment, as vectors: lines, marks, shading, axes, and below
 * them who is who. */
export function timeSvg(chart: uPlot, title: string, decor: Decor): { text: string; size: Size } {
  const [left, top] = [chart.over.offsetLeft, chart.over.offsetTop];
  const [width, height] = [chart.over.clientWidth, chart.over.clientHeight];
  const ink = resolved((chart.axes[0] as { stroke?: unknown } | undefined)?.stroke);
  const legend = drawnLegend(decor, chart.width, ink);
  const bottom = HEAD + top + height + AXIS_ROOM;
  const size = { width: chart.width, height: bottom + legend.height };
  const lines = chart.series.slice(1).map((series, place) => {
    const fill = resolved(series.fill);
    const dash = (series.dash ?? []).join(" ");
    return `<path d="${path(chart, place + 1, fill !== "none")}" fill="${fill}" stroke="${resolved(series.stroke)}" stroke-width="${String(series.width ?? 1)}" stroke-opacity="${String(series.alpha ?? 1)}"${dash === "" ? "" : ` stroke-dasharray="${dash}"`}/>`;
  });
  const clip = `<clipPath id="view"><rect width="${String(width)}" height="${String(height)}"/></clipPath>`;
  const strip = decor.strip ? drawnStrip(chart, decor.marks, width) : "";
  const behind = drawnShade(chart, decor, width, height) + drawnHatch(chart, decor, width, height) + (decor.strip ? "" : drawnBands(chart, decor.marks, width, height));
  const along = `<text x="${(width / 2).toFixed(1)}" y="${String(height + AXIS_ROOM - 8)}" text-anchor="middle" fill="${ink}">${escaped(chart.axes[0]?.label?.toString() ?? "since the load began")}</text>`;
  const inside = `<g transform="translate(${String(left)} ${String(HEAD + top)})" font-size="12">${clip}<g clip-path="url(#view)">${behind}</g>${strip}${drawnAxes(chart, width, height)}<g clip-path="url(#view)">${lines.join("")}</g>${along}</g>`;
  return { text: framed(`${inside}<g transform="translate(${String(left)} ${String(bottom)})" font-size="12">${legend.text}</g>`, title, size), size };
}
