import uPlot from "uplot";
import type { Stretch } from "../analysis/steady.ts";
import { drawUnsettled } from "../charts/steady.ts";
import { cssValue } from "../charts/style.ts";
import type { Mark, MarkKind } from "../model.ts";

export const MARK_TITLE: Record<MarkKind, string> = { checkpoint: "Checkpoint", vacuum: "Vacuum", disturbance: "Disturbance", gap: "Gap" };
/** Colour beside the letter that names it in the strip above the charts. */
export const MARK_VARIABLE: Record<MarkKind, string> = { checkpoint: "--t6", vacuum: "--t3", disturbance: "--t2", gap: "--t4" };
/** What is missing from the start on is said in words; drawn is what happened. */
const STARTS_MS = 3000;

export function isDrawn({ kind, at_ms }: Mark): boolean {
  return kind !== "gap" || at_ms > STARTS_MS;
}

/** The warm-up as a shade, what was not steady yet hatched, marks as thin bands over the whole
 * height. Colours are looked up once. */
export function behindLines(marks: readonly Mark[], warmup_s: number, unsettled: Stretch | null): (chart: uPlot) => void {
  const [shade, hatch] = [cssValue("--shade"), cssValue("--ink-3")];
  const colours = new Map([...new Set(marks.map(({ kind }) => kind))].map((kind) => [kind, cssValue(MARK_VARIABLE[kind])]));
  return (chart) => {
    const { ctx, bbox } = chart;
    const x = (seconds: number) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, chart.valToPos(seconds, "x", true)));
    const { min, max } = chart.scales.x ?? {};
    ctx.save();
    const warm = x(warmup_s);
    if (warmup_s > 0 && warm > bbox.left) {
      ctx.fillStyle = shade;
      ctx.fillRect(bbox.left, bbox.top, warm - bbox.left, bbox.height);
    }
    if (unsettled !== null) drawUnsettled(chart, [unsettled], 1, hatch);
    for (const { at_ms, until_ms, kind } of marks) {
      const [begin_s, end_s] = [at_ms / 1000, (until_ms ?? at_ms) / 1000];
      if (begin_s > (max ?? Infinity) || end_s < (min ?? 0)) continue;
      const [from, to] = [x(begin_s), x(end_s)];
      ctx.fillStyle = colours.get(kind) ?? hatch;
      ctx.globalAlpha = 0.07;
      ctx.fillRect(from, bbox.top, Math.max(uPlot.pxRatio, to - from), bbox.height);
      ctx.globalAlpha = 0.6;
      ctx.fillRect(from, bbox.top, uPlot.pxRatio, bbox.height);
    }
    ctx.restore();
  };
}
