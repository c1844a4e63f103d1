import uPlot from "uplot";
import type { Stretch } from "../analysis/steady.ts";
import { drawUnsettled } from "../charts/steady.ts";
import { cssValue } from "../charts/style.ts";
import type { Mark, MarkKind } from "../model-trial.ts";

export const MARK_TITLE: Record<MarkKind, string> = { checkpoint: "Checkpoint", vacuum: "Vacuum", disturbance: "Disturbance", gap: "Gap" };
/** Colour beside the letter that names it in the strip above the charts. */
export const MARK_VARIABLE: Record<MarkKind, string> = { checkpoint: "--t6", vacuum: "--t3", disturbance: "--t2", gap: "--t4" };
/** What is missing from the start on is told in words; drawn is what happened. */
const STARTS_MS = 3000;

export function isDrawn({ kind, at_ms }: Mark): boolean {
  return kind !== "gap" || at_ms > STARTS_MS;
}

/** The warm-up as a shade, what was not steady yet hatched, marks as thin bands over the whole height. */
export function drawMarks(chart: uPlot, marks: readonly Mark[], warmup_s: number, unsettled: Stretch | null): void {
  const { ctx, bbox } = chart;
  const x = (seconds: number) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, chart.valToPos(seconds, "x", true)));
  ctx.save();
  const warm = x(warmup_s);
  if (warmup_s > 0 && warm > bbox.left) {
    ctx.fillStyle = cssValue("--shade");
    ctx.fillRect(bbox.left, bbox.top, warm - bbox.left, bbox.height);
  }
  if (unsettled !== null) drawUnsettled(chart, [unsettled], 1, cssValue("--ink-3"));
  for (const mark of marks) {
    const [from, to] = [x(mark.at_ms / 1000), x((mark.until_ms ?? mark.at_ms) / 1000)];
    const { min, max } = chart.scales.x ?? {};
    if (mark.at_ms / 1000 > (max ?? Infinity) || (mark.until_ms ?? mark.at_ms) / 1000 < (min ?? 0)) continue;
    const colour = cssValue(MARK_VARIABLE[mark.kind]);
    ctx.fillStyle = colour;
    ctx.globalAlpha = 0.07;
    ctx.fillRect(from, bbox.top, Math.max(uPlot.pxRatio, to - from), bbox.height);
    ctx.globalAlpha = 0.6;
    ctx.fillRect(from, bbox.top, uPlot.pxRatio, bbox.height);
  }
  ctx.restore();
}
