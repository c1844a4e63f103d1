import type { Line, Panel } from "./panels.ts";

/** Columns as uPlot wants them, the times in seconds; undefined where a line has no point, null
 * where it has none to show. */
export interface Table {
  seconds: number[];
  columns: (number | null | undefined)[][];
}

function onOneAxis(lines: readonly Line[]): boolean {
  const first = lines[0]?.t_ms;
  return lines.every(({ t_ms }) => t_ms === first || (t_ms.length === first?.length && t_ms.every((at, place) => at === first[place])));
}

/** A line whose next point is further away than this many of its usual steps has missed some. */
const MISSED_STEPS = 1.5;

/** The instants behind which a line has missed points, a usual step after the last one: nothing is
 * drawn across them. */
function gapsOf({ t_ms }: Line): number[] {
  const steps = t_ms.slice(1).map((at, place) => at - (t_ms[place] ?? at));
  const usual = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  return t_ms.filter((_, place) => (steps[place] ?? 0) > MISSED_STEPS * usual).map((at) => at + usual);
}

/** Puts the lines of a panel on one axis of time; those of one reading are there already. */
export function table({ lines }: Panel): Table {
  const gaps = lines.map(gapsOf);
  if (onOneAxis(lines) && gaps.every((instants) => instants.length === 0)) {
    return { seconds: (lines[0]?.t_ms ?? []).map((ms) => ms / 1000), columns: lines.map(({ values }) => [...values]) };
  }
  const all = [...new Set([...lines.flatMap(({ t_ms }) => t_ms), ...gaps.flat()])].sort((a, b) => a - b);
  const place = new Map(all.map((at, index) => [at, index]));
  const columns = lines.map(({ t_ms, values }, row) => {
    const column = new Array<number | null | undefined>(all.length).fill(undefined);
    gaps[row]?.forEach((at) => {
      column[place.get(at) ?? 0] = null;
    });
    t_ms.forEach((at, index) => {
      column[place.get(at) ?? 0] = values[index] ?? null;
    });
    return column;
  });
  return { seconds: all.map((ms) => ms / 1000), columns };
}

/** The columns on one another: each the sum of itself and those before it. Where nothing is known
 * there is a gap, not a zero. */
export function stack(columns: readonly (number | null | undefined)[][]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  columns.forEach((column, row) => {
    const below = sums[row - 1];
    const isKnown = (place: number) => columns.some((each) => typeof each[place] === "number");
    sums.push(column.map((value, place) => (isKnown(place) ? (below?.[place] ?? 0) + (value ?? 0) : null)));
  });
  return sums;
}

export interface Stretch {
  least: number;
  mean: number;
  most: number;
}

/** What a line did between two instants in seconds; null where it has no value there. */
export function stretchOf({ t_ms, values }: Line, range: readonly [number, number] | null): Stretch | null {
  let [least, most, sum, amount] = [Infinity, -Infinity, 0, 0];
  t_ms.forEach((at, place) => {
    const value = values[place];
    if (value === null || value === undefined || (range !== null && (at < range[0] * 1000 || at > range[1] * 1000))) return;
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
    amount += 1;
  });
  return amount === 0 ? null : { least, mean: sum / amount, most };
}
