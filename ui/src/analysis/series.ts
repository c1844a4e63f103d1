import { isKnown } from "../format/number.ts";
import type { Trial } from "../model.ts";

export type Metric = "tps" | "p95_ms";

/** Columns as uPlot wants them: the seconds, then one column per trial, null where a trial has no value. */
export interface Aligned {
  seconds: number[];
  columns: (number | null)[][];
}

/** Puts trials on one common time axis; trials may differ in length and miss seconds. */
export function align(trials: readonly Trial[], metric: Metric): Aligned {
  const seconds = [...new Set(trials.flatMap((trial) => trial.series.t_s))].filter(isKnown).toSorted((a, b) => a - b);
  const place = new Map(seconds.map((second, index) => [second, index]));
  const columns = trials.map((trial) => {
    const column = new Array<number | null>(seconds.length).fill(null);
    trial.series.t_s.forEach((second, index) => {
      const at = place.get(second);
      const value = trial.series[metric][index];
      if (at !== undefined && isKnown(value)) column[at] = value;
    });
    return column;
  });
  return { seconds, columns };
}

export interface AtSecond {
  mean: number;
  low: number;
  high: number;
}

/** What the chosen columns hold at one place of the time axis. */
export function atIndex(columns: readonly (number | null)[][], index: number): AtSecond | null {
  const values = columns.map((column) => column[index]).filter(isKnown);
  if (values.length === 0) return null;
  const sum = values.reduce((total, value) => total + value, 0);
  return { mean: sum / values.length, low: Math.min(...values), high: Math.max(...values) };
}

export interface Bucket {
  from_s: number;
  to_s: number;
  value: AtSecond | null;
}

/** Means over stretches of time: the table alternative, since nobody reads one row per second. */
export function buckets(trials: readonly Trial[], metric: Metric, width_s: number): Bucket[] {
  const { seconds, columns } = align(trials, metric);
  const last = seconds.at(-1) ?? 0;
  const result: Bucket[] = [];
  for (let from = 0; from < last; from += width_s) {
    const inside = seconds.flatMap((second, index) => (second > from && second <= from + width_s ? [index] : []));
    const values = columns.flatMap((column) => inside.map((index) => column[index] ?? null));
    result.push({ from_s: from, to_s: Math.min(from + width_s, last), value: atIndex(values.map((value) => [value]), 0) });
  }
  return result;
}

/** A width that gives about a dozen rows, in steps that people count in. */
export function bucketWidth(seconds: number): number {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600].find((width) => seconds / width <= 14) ?? 1800;
}
