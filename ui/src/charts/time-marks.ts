import uPlot from "uplot";
import { isKnown } from "../format/number.ts";
import { spreadLabels } from "../analysis/spread.ts";
import type { Treatment } from "../model.ts";
import { cssValue, treatmentStyle } from "./style.ts";

/** Room behind the lines for their names, in CSS pixels. */
export const LABEL_ROOM = 150;
const FONT_SIZE = 12;
/** So many last values in view decide where a name stands; one alone would follow the noise. */
const TAIL = 15;

/** Canvas counts in device pixels, fonts are given in CSS pixels. */
function scaled(font: string, weight = ""): string {
  return `${weight} ${font.replace(/^\d+px/, `${String(FONT_SIZE * uPlot.pxRatio)}px`)}`.trim();
}

export function shadeWarmup(chart: uPlot, warmup_s: number, font: string): void {
  const { ctx, bbox } = chart;
  const ratio = uPlot.pxRatio;
  const width = Math.min(bbox.left + bbox.width, chart.valToPos(warmup_s, "x", true)) - bbox.left;
  if (warmup_s <= 0 || width <= 0) return;
  ctx.save();
  ctx.fillStyle = cssValue("--shade");
  ctx.fillRect(bbox.left, bbox.top, width, bbox.height);
  ctx.font = scaled(font);
  ctx.fillStyle = cssValue("--ink-2");
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  // A word that runs out of its shade would seem to name the measured part.
  if (ctx.measureText("warm-up").width + 12 * ratio < width) {
    ctx.fillText("warm-up", bbox.left + 6 * ratio, bbox.top + bbox.height - 6 * ratio);
  }
  ctx.restore();
}

/** The mean of the last values in view of some columns, null where there are none. */
function tailMean(chart: uPlot, columns: readonly number[]): number | null {
  const [, last] = chart.series[0]?.idxs ?? [0, 0];
  const values = columns.flatMap((column) => [...(chart.data[column + 1] ?? [])].slice(Math.max(0, last - TAIL), last + 1)).filter(isKnown);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Shortens a name until it fits; a canvas would let it run out of the picture. */
function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  let shown = text;
  while (shown.length > 1 && ctx.measureText(shown).width > room) shown = `${shown.replace(/…$/, "").slice(0, -1).trimEnd()}…`;
  return shown;
}

/** Writes each treatment's name at the end of its lines, which tells them apart without colour. `places` tells of each column where its treatment stands in the plan. */
export function drawEndLabels(
  chart: uPlot,
  places: readonly number[],
  plan: readonly Treatment[],
  font: string,
  where: "behind" | "inside",
): void {
  const { ctx, bbox } = chart;
  const ratio = uPlot.pxRatio;
  const labels = [...new Set(places)].flatMap((place) => {
    const columns = places.flatMap((each, column) => (each === place ? [column] : []));
    const mean = tailMean(chart, columns);
    return mean === null ? [] : [{ place, y: chart.valToPos(mean, "y", true) }];
  });
  const spots = spreadLabels(labels.map(({ y }) => y), 16 * ratio, bbox.top, bbox.top + bbox.height);
  ctx.save();
  ctx.font = scaled(font, "600");
  ctx.textAlign = where === "behind" ? "left" : "right";
  ctx.textBaseline = "middle";
  ctx.lineWidth = 4 * ratio;
  ctx.lineJoin = "round";
  ctx.strokeStyle = cssValue("--page");
  const shift = where === "behind" ? { x: 8, y: 0 } : { x: -4, y: 20 };
  labels.forEach(({ place }, rank) => {
    ctx.fillStyle = cssValue(treatmentStyle(place).variable);
    const name = fitted(ctx, plan[place]?.title ?? "", (LABEL_ROOM - 10) * ratio);
    const x = bbox.left + bbox.width + shift.x * ratio;
    const y = (spots[rank] ?? bbox.top) + shift.y * ratio;
    ctx.strokeText(name, x, y);
    ctx.fillText(name, x, y);
  });
  ctx.restore();
}
