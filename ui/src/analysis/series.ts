import { isKnown } from "../format/number.ts";
import type { Trial } from "../model.ts";

export type Metric = "tps" | "p95_ms";

/** Columns as uPlot wants them: the seconds, then one column per trial; undefined at instants of
 * other trials alone, over which its line goes on, null where a trial has no value to show. */
export interface Aligned {
  seconds: number[];
  columns: Column[];
}

type Column = (number | null | undefined)[];

/** A trial whose next point is further away than this many of its steps has missed some between. */
const MISSED_STEPS = 1.5;

function stepOf({ series }: Trial): number {
  return series.bucket_s ?? 1;
}

/** Puts trials on one common time axis; trials may differ in length and miss seconds. */
export function align(trials: readonly Trial[], metric: Metric): Aligned {
  const seconds = [...new Set(trials.flatMap((trial) => trial.series.t_s))].filter(isKnown).toSorted((a, b) => a - b);
  const place = new Map(seconds.map((second, index) => [second, index]));
  const columns = trials.map((trial) => {
    const column: Column = new Array<number | null | undefined>(seconds.length).fill(undefined);
    let last: number | null = null;
    trial.series.t_s.forEach((second, index) => {
      const at = place.get(second);
      if (at === undefined) return;
      if (last !== null && second - (seconds[last] ?? second) > MISSED_STEPS * stepOf(trial)) column.fill(null, last + 1, at);
      const value = trial.series[metric][index];
      column[at] = isKnown(value) ? value : null;
      last = at;
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

function summed(values: readonly number[]): AtSecond | null {
  if (values.length === 0) return null;
  const sum = values.reduce((total, value) => total + value, 0);
  return { mean: sum / values.length, low: Math.min(...values), high: Math.max(...values) };
}

/** What a column holds at an instant that is none of its own: its nearest point, where that is no
 * further than `reach_s`. */
function nearest(seconds: readonly number[], column: Column, index: number, reach_s: number): number | null | undefined {
  const at = seconds[index] ?? NaN;
  const away = (place: number) => Math.abs((seconds[place] ?? NaN) - at);
  let [before, after] = [index, index];
  while (before >= 0 && column[before] === undefined) before -= 1;
  while (after < column.length && column[after] === undefined) after += 1;
  const place = away(after) < away(before) || before < 0 ? after : before;
  return away(place) <= reach_s ? column[place] : undefined;
}

/** Half of what a point of these trials covers, in seconds: no instant of a trial is further from
 * its nearest point. */
export function reachOf(trials: readonly Trial[]): number {
  return Math.max(1, ...trials.map(stepOf)) / 2;
}

/** What the chosen columns hold at one place of the time axis; those with other instants by their
 * nearest point. */
export function atIndex(seconds: readonly number[], columns: readonly Column[], index: number, reach_s = 0.5): AtSecond | null {
  return summed(columns.map((column) => nearest(seconds, column, index, reach_s)).filter(isKnown));
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
    const values = columns.flatMap((column) => inside.map((index) => column[index])).filter(isKnown);
    result.push({ from_s: from, to_s: Math.min(from + width_s, last), value: summed(values) });
  }
  return result;
}

/** A width that gives about a dozen rows, in steps that people count in. */
export function bucketWidth(seconds: number): number {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600].find((width) => seconds / width <= 14) ?? 1800;
}
