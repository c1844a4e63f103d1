import uPlot from "uplot";
import type { Mark, MarkKind } from "../model.ts";
import { MARK_VARIABLE } from "../trial/draw-marks.ts";
import { cssValue } from "./style.ts";

/** Height of a row and room below the last one, in CSS pixels; also of saved pictures. */
export const ROW = 8;
export const GAP = 6;

export function kindsOf(marks: readonly Mark[]): MarkKind[] {
  return (["checkpoint", "vacuum", "disturbance"] as const).filter((kind) => marks.some((mark) => mark.kind === kind));
}

/** Room above the lines, in CSS pixels. */
export function stripHeight(marks: readonly Mark[]): number {
  const rows = kindsOf(marks).length;
  return rows === 0 ? 0 : rows * ROW + GAP;
}

/** A row for each kind of mark; where trials have one at the same time it is darker. What does
 * not change from one drawing to the next is worked out once. */
export function markStrip(marks: readonly Mark[]): (chart: uPlot) => void {
  const rows = kindsOf(marks).map((kind) => ({ colour: cssValue(MARK_VARIABLE[kind]), own: marks.filter((mark) => mark.kind === kind) }));
  return (chart) => {
    drawRows(chart, rows);
  };
}

function drawRows(chart: uPlot, rows: readonly { colour: string; own: readonly Mark[] }[]): void {
  const { ctx, bbox } = chart;
  const ratio = uPlot.pxRatio;
  const x = (ms: number) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, chart.valToPos(ms / 1000, "x", true)));
  ctx.save();
  rows.forEach(({ colour, own }, row) => {
    const top = bbox.top - (GAP + (rows.length - row) * ROW) * ratio;
    ctx.fillStyle = colour;
    for (const mark of own) {
      const [from, to] = [x(mark.at_ms), x(mark.until_ms ?? mark.at_ms)];
      if (to <= bbox.left || from >= bbox.left + bbox.width) continue;
      ctx.globalAlpha = 0.3;
      ctx.fillRect(from, top, Math.max(ratio, to - from), (ROW - 3) * ratio);
      ctx.globalAlpha = 0.9;
      ctx.fillRect(from, top, 1.5 * ratio, (ROW - 3) * ratio);
    }
  });
  ctx.restore();
}
