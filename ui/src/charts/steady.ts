import uPlot from "uplot";
import type { Stretch } from "../analysis/steady.ts";

/** Distance of the lines of the hatching, in CSS pixels; the legend draws the same. */
export const HATCH_STEP = 7;
/** Of one trial alone, and of one of many, which is still to be seen. */
const ALPHA = { alone: 0.45, least: 0.3 };

/** How much of the ink a line of the hatching has, where so many trials are drawn. */
export function hatchOpacity(trials: number): number {
  return Math.max(ALPHA.least, ALPHA.alone / Math.max(1, trials));
}

/** Hatches what was measured before a trial was steady: a pattern, since the warm-up has the
 * shade. Where several trials are drawn each adds its part, so that what most of them did stands
 * out. `ink` is a colour. */
export function drawUnsettled(chart: uPlot, stretches: readonly Stretch[], trials: number, ink: string): void {
  const { ctx, bbox } = chart;
  const ratio = uPlot.pxRatio;
  const [right, bottom] = [bbox.left + bbox.width, bbox.top + bbox.height];
  const x = (seconds: number) => Math.min(right, Math.max(bbox.left, chart.valToPos(seconds, "x", true)));
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.lineWidth = ratio;
  ctx.globalAlpha = hatchOpacity(trials);
  for (const { from_s, to_s } of stretches) {
    const [from, to] = [x(from_s), x(to_s)];
    if (to <= from) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, bbox.top, to - from, bbox.height);
    ctx.clip();
    ctx.beginPath();
    // Lines are on a grid of the picture, so that those of several trials coincide.
    const step = HATCH_STEP * ratio;
    for (let at = Math.floor((from - bbox.height) / step) * step; at < to; at += step) {
      ctx.moveTo(at, bottom);
      ctx.lineTo(at + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
  }
  ctx.restore();
}
