import uPlot from "uplot";
import { cssValue } from "./style.ts";

const FONT_SIZE = 12;

/** Canvas counts in device pixels, fonts are given in CSS pixels. */
export function scaled(font: string, weight = ""): string {
  return `${weight} ${font.replace(/^\d+px/, `${String(FONT_SIZE * uPlot.pxRatio)}px`)}`.trim();
}

/** Shades the warm-up; colours are looked up once. */
export function warmupShade(warmup_s: number, font: string): (chart: uPlot) => void {
  const [shade, ink] = [cssValue("--shade"), cssValue("--ink-2")];
  return (chart) => {
    const { ctx, bbox } = chart;
    const ratio = uPlot.pxRatio;
    const width = Math.min(bbox.left + bbox.width, chart.valToPos(warmup_s, "x", true)) - bbox.left;
    if (warmup_s <= 0 || width <= 0) return;
    ctx.save();
    ctx.fillStyle = shade;
    ctx.fillRect(bbox.left, bbox.top, width, bbox.height);
    ctx.font = scaled(font);
    ctx.fillStyle = ink;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    // A word that runs out of its shade would seem to name the measured part.
    if (ctx.measureText("warm-up").width + 12 * ratio < width) {
      ctx.fillText("warm-up", bbox.left + 6 * ratio, bbox.top + bbox.height - 6 * ratio);
    }
    ctx.restore();
  };
}
