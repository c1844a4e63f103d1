import type { StudyTable, TableBlock } from "../model.ts";
import { LOG_FROM } from "./curves.ts";

/** A mean with its interval, at a place of the axis and on a line. */
export interface ChartPoint {
  /** Number of the line, in the order of the columns. */
  line: number;
  /** Number of the place along the axis, in the order of the rows. */
  place: number;
  /** The place as a number, where all are numbers; else that of the row. */
  x: number;
  mean: number;
  low: number | null;
  high: number | null;
}

/** The axis: places that are numbers, at their distances, or names one after the other. */
export interface Axis {
  kind: "linear" | "log" | "names";
  /** Where each place is. */
  xs: number[];
  names: string[];
}

/** Zero has no place on a logarithmic axis: such ladders are names one after the other. */
export function axisOf(block: TableBlock): Axis {
  const names = block.rows.map(({ title }) => title);
  const numbers = names.map((name) => (name.trim() === "" ? Number.NaN : Number(name)));
  if (numbers.length < 2 || numbers.some((number) => !Number.isFinite(number))) {
    return { kind: "names", xs: names.map((_, place) => place), names };
  }
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (low > 0) return { kind: high / low >= LOG_FROM ? "log" : "linear", xs: numbers, names };
  const least = Math.min(...numbers.filter((number) => number > 0));
  return high / least >= LOG_FROM ? { kind: "names", xs: names.map((_, place) => place), names } : { kind: "linear", xs: numbers, names };
}

export function pointsOf(block: TableBlock, { xs }: Axis): ChartPoint[] {
  return block.rows.flatMap(({ cells }, place) =>
    cells.flatMap((cell, line) => (cell === null ? [] : [{ line, place, x: xs[place] ?? place, mean: cell.mean, low: cell.low, high: cell.high }])),
  );
}

/** From zero to the largest mean or upper bound, of all panels: they are compared with one
 * another. An interval far above all means is cut. */
export function topOf({ blocks }: StudyTable): number {
  const cells = blocks.flatMap(({ rows }) => rows.flatMap((row) => row.cells.filter((cell) => cell !== null)));
  const mean = Math.max(0, ...cells.map((cell) => cell.mean));
  const high = Math.max(0, ...cells.map((cell) => cell.high ?? cell.mean));
  return mean > 0 ? Math.min(high, mean * 1.5) * 1.05 : 1;
}

export function titleOf({ title, columns_title, columns }: StudyTable, panel: string | null): string {
  const figures = [...new Set(columns.map(({ figure_title }) => figure_title))];
  const of = columns_title !== "" && figures.length === 1 ? ` (${figures[0] ?? ""})` : "";
  return `${title}${of}${panel === null ? "" : `: ${panel}`}`;
}
