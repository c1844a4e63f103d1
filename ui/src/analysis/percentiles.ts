import { isKnown } from "../format/number.ts";

export const NAMED_PERCENTILES = [50, 90, 95, 99, 99.9, 99.99] as const;

export interface PercentilePoint {
  percentile: number;
  /** Place on an axis where each further nine takes the same room: 90 is 1, 99 is 2, 99.9 is 3. */
  nines: number;
  ms: number;
  /** Bounds of its interval of 95 %; of points between recorded ones there are none. */
  low_ms?: number | null;
  high_ms?: number | null;
}

interface Recorded {
  percentile: number;
  ms: number;
  low_ms?: number | null;
  high_ms?: number | null;
}

export function nines(percentile: number): number {
  return -Math.log10(1 - percentile / 100);
}

/** The curve from the median on; the largest value of all has no place on this axis, and zero
 * none on a log one. */
export function percentileCurve(treatment: { distribution: readonly Recorded[] }): PercentilePoint[] {
  const first = NAMED_PERCENTILES[0];
  const last = NAMED_PERCENTILES[NAMED_PERCENTILES.length - 1] ?? 99.99;
  return treatment.distribution
    .filter(({ percentile, ms }) => isKnown(percentile) && isKnown(ms) && ms > 0)
    .filter(({ percentile }) => percentile >= first && percentile <= last)
    .map((point) => ({ ...point, nines: nines(point.percentile) }));
}

function exactly(curve: readonly PercentilePoint[], percentile: number): PercentilePoint | undefined {
  return curve.find((point) => Math.abs(point.percentile - percentile) < 1e-9);
}

/** The interval of a recorded percentile, "2.9 … 3.6" by `figure`; null where it has none. */
export function intervalAt(curve: readonly PercentilePoint[], percentile: number, figure: (ms: number) => string): string | null {
  const { low_ms, high_ms } = exactly(curve, percentile) ?? {};
  if (!isKnown(low_ms)) return null;
  return isKnown(high_ms) ? `${figure(low_ms)} … ${figure(high_ms)}` : `${figure(low_ms)} and up`;
}

/** A percentile that was recorded; null of one that was not. */
export function msAt(curve: readonly PercentilePoint[], percentile: number): number | null {
  return exactly(curve, percentile)?.ms ?? null;
}

/** 1, 2, 5, 10, 20 and so on inside a range: the steps of a log axis that can be read without
 * thinking. */
export function logTicks([low, high]: readonly [number, number]): number[] {
  if (!(low > 0) || !Number.isFinite(high)) return [];
  const decades = Array.from({ length: Math.ceil(Math.log10(high / low)) + 2 }, (_, step) => 10 ** (Math.floor(Math.log10(low)) + step));
  return decades.flatMap((decade) => [decade, 2 * decade, 5 * decade]).filter((value) => value >= low && value <= high);
}

/** The points that get a marker and a tick. */
export function namedPoints(curve: readonly PercentilePoint[]): PercentilePoint[] {
  return NAMED_PERCENTILES.flatMap((percentile) => {
    const ms = msAt(curve, percentile);
    return ms === null ? [] : [{ percentile, nines: nines(percentile), ms }];
  });
}
