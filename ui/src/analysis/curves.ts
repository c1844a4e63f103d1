import { count, isKnown } from "../format/number.ts";
import type { Curve, CurvePoint, UslCurve, Zone } from "../model.ts";

/** From this ratio of the largest to the smallest x on, the axis is logarithmic: ladders double
 * from step to step. */
export const LOG_FROM = 8;
const LINE_POINTS = 80;

export interface LinePoint {
  x: number;
  tps: number;
}

export function usesLog(points: readonly CurvePoint[]): boolean {
  const [low, high] = xRange(points);
  return low > 0 && high / low >= LOG_FROM;
}

export function xRange(points: readonly CurvePoint[]): [number, number] {
  const xs = points.map(({ x }) => x);
  return [Math.min(...xs), Math.max(...xs)];
}

/** The Universal Scalability Law at n; null where a parameter is not known. */
export function uslAt({ lambda, sigma, kappa }: UslCurve, n: number): number | null {
  if (!isKnown(lambda.value) || !isKnown(sigma.value) || !isKnown(kappa.value)) return null;
  return (lambda.value * n) / (1 + sigma.value * (n - 1) + kappa.value * n * (n - 1));
}

/** The fitted line over the measured range. */
export function uslLine({ usl, points }: Curve): LinePoint[] {
  if (usl === null || points.length < 2) return [];
  const [low, high] = xRange(points);
  const log = usesLog(points);
  const at = (part: number) => (log ? low * (high / low) ** part : low + (high - low) * part);
  return Array.from({ length: LINE_POINTS }, (_, step) => at(step / (LINE_POINTS - 1))).flatMap((x) => {
    const tps = uslAt(usl, x);
    return tps === null ? [] : [{ x, tps }];
  });
}

/** The zone as a band: half way to the neighbours that do not belong to it, so that a zone of one
 * point can be seen. */
export function zoneBand({ zone, points }: Curve): [number, number] | null {
  if (zone === null) return null;
  const xs = points.map(({ x }) => x);
  const middle = (a: number, b: number) => (usesLog(points) ? Math.sqrt(a * b) : (a + b) / 2);
  const before = xs.filter((x) => x < zone.lowest).at(-1);
  const after = xs.find((x) => x > zone.highest);
  return [before === undefined ? zone.lowest : middle(before, zone.lowest), after === undefined ? zone.highest : middle(zone.highest, after)];
}

export function zoneInWords(zone: Zone): string {
  const range = zone.lowest === zone.highest ? `${count(zone.lowest)} clients` : `${count(zone.lowest)} to ${count(zone.highest)} clients`;
  if (zone.past_knee) return `${range}, where response times are past their knee already`;
  switch (zone.upper_edge) {
    case "knee":
      return `${range}; it ends at the knee of response time`;
    case "unmeasured":
      return `${range}; more were not measured, so it may go on`;
    case "throughput":
      return `${range}; beyond it throughput falls below 95\u202f% of the peak`;
  }
}

/** Room for whiskers and the line; throughput begins at zero. */
export function tpsDomain(curve: Curve): [number, number] {
  const ends = [...curve.points.flatMap(({ tps }) => [tps.mean, tps.high]), ...uslLine(curve).map(({ tps }) => tps)].filter(isKnown);
  const top = Math.max(0, ...ends);
  return [0, top > 0 ? top * 1.05 : 1];
}
