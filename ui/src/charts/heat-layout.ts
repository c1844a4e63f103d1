import { logTicks } from "../analysis/percentiles.ts";
import { tick } from "../format/number.ts";
import { clock } from "../format/unit.ts";
import type { Heat } from "../model.ts";

/** Where everything of a heat map is, in CSS pixels: drawn on canvas, and as vectors when it is
 * saved. */
export interface HeatLayout {
  /** Those with anything in them; `part` of the way from the ground to the ink. */
  cells: { x: number; y: number; width: number; height: number; part: number }[];
  /** Labels of the scale of response times, and of that of time. */
  left: { text: string; y: number }[];
  below: { text: string; x: number }[];
  /** Middle of the drawn part. */
  middle: number;
  /** The most that one class of a stretch has. */
  most: number;
}

export const HEAT_HEIGHT = 260;
export const HEAT_MARGIN = { top: 26, right: 22, bottom: 40, left: 52 };

/** The least that is still to be seen, for the tail is what a heat map is for. */
const LEAST_PART = 0.14;

/** How strong the colour of so many is, where the fullest class has `most`. */
export function partOf(amount: number, most: number): number {
  return LEAST_PART + (1 - LEAST_PART) * Math.sqrt(amount / most);
}

/** Of a narrow range every step of a decade, else 1, 2 and 5. */
function ticksOf(low: number, high: number): number[] {
  const few = logTicks([low, high]);
  if (few.length > 2) return few;
  const decade = 10 ** Math.floor(Math.log10(low));
  return Array.from({ length: 20 }, (_, step) => decade * (step + 1)).filter((ms) => ms >= low && ms <= high);
}

/** Lays a heat map out for a width; `ratio` device pixels are a CSS pixel. null where there is
 * nothing to draw. */
export function heatLayout(heat: Heat, width: number, ratio = 1): HeatLayout | null {
  const [low, high] = [heat.edges_ms[0] ?? 1, heat.edges_ms.at(-1) ?? 1];
  const [first, last] = [heat.from_s ?? 0, heat.t_s.at(-1) ?? 0];
  if (!(low > 0) || !(high > low) || !(last > first)) return null;
  const { top, right, bottom, left } = HEAT_MARGIN;
  const [inner, tall] = [width - left - right, HEAT_HEIGHT - top - bottom];
  const x = (seconds: number) => left + ((seconds - first) / (last - first)) * inner;
  const y = (ms: number) => top + tall - (Math.log(ms / low) / Math.log(high / low)) * tall;
  // On whole device pixels, else the page shines through between neighbours.
  const snap = (place: number) => Math.round(place * ratio) / ratio;
  const most = heat.counts.reduce((highest, column) => Math.max(highest, ...column), 1);
  const cells = heat.counts.flatMap((column, place) => {
    const [from, to] = [snap(x(heat.t_s[place - 1] ?? first)), snap(x(heat.t_s[place] ?? 0))];
    return column.flatMap((amount, level) => {
      if (!(amount > 0)) return [];
      const [above, below] = [snap(y(heat.edges_ms[level + 1] ?? high)), snap(y(heat.edges_ms[level] ?? low))];
      return [{ x: from, y: above, width: Math.max(1, to - from), height: Math.max(1, below - above), part: partOf(amount, most) }];
    });
  });
  const step = [10, 15, 30, 60, 120, 300, 600, 1800].find((each) => ((last - first) / each) * 60 < inner) ?? 3600;
  const below: HeatLayout["below"] = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) below.push({ text: clock(at), x: x(at) });
  return { cells, left: ticksOf(low, high).map((ms) => ({ text: tick(ms), y: y(ms) })), below, middle: left + inner / 2, most };
}
