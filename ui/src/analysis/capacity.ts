import { isKnown } from "../format/number.ts";
import type { Curve } from "../model.ts";
import { uslAt, xRange } from "./curves.ts";

/** What a throughput takes by the fitted law. */
export type Needed = { kind: "measured"; x: number } | { kind: "beyond"; x: number; times: number } | { kind: "unreachable"; peak_tps: number };

/** Nobody asks for more than this times what was measured. */
const FAR = 1000;
const HALVINGS = 60;

/** The least x at which the law reaches so many TPS; null where there is no law. */
export function needed(curve: Curve, tps: number): Needed | null {
  const { usl, points } = curve;
  if (usl === null || points.length === 0) return null;
  const [, most] = xRange(points);
  const peak = usl.peak_x.value;
  const top = isKnown(peak) ? peak : most * FAR;
  const atTop = uslAt(usl, top);
  if (atTop === null) return null;
  if (atTop < tps) return { kind: "unreachable", peak_tps: atTop };
  // Up to its peak the law rises, so halving finds the place.
  let [low, high] = [0, top];
  for (let step = 0; step < HALVINGS; step += 1) {
    const middle = (low + high) / 2;
    if ((uslAt(usl, middle) ?? 0) < tps) low = middle;
    else high = middle;
  }
  return high <= most * 1.0001 ? { kind: "measured", x: high } : { kind: "beyond", x: high, times: high / most };
}

function round(value: number): number {
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.round(value / digits) * digits;
}

/** Throughputs that people ask for: parts of the largest mean, and half as much again. */
export function answers(curve: Curve): { tps: number; found: Needed | null }[] {
  if (curve.usl === null || curve.points.length === 0) return [];
  const top = Math.max(...curve.points.map(({ tps }) => tps.mean));
  if (!(top > 0)) return [];
  const wanted = [...new Set([0.25, 0.5, 0.75, 0.9, 1.5].map((part) => round(top * part)))];
  return wanted.map((tps) => ({ tps, found: needed(curve, tps) }));
}
