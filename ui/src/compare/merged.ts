import type { Comparison, CompareRow, SideFigure } from "../model.ts";
import { shown } from "../format/json.ts";

/** One figure of the first side and of the others; null where a side has not been compared by
 * it. */
export interface MergedRow {
  metric: string;
  larger_is_better: boolean;
  first: SideFigure | null;
  others: (CompareRow | null)[];
}

export interface MergedDifference {
  what: string;
  first: string;
  /** The first's own where it does not differ; null where that side was not compared. */
  others: (string | null)[];
}

/** What one thing of the first side comes to on all others: a treatment, or a trial. */
export interface Merged {
  first: string;
  /** Place of each column among the sides, from 1 on, what is shown there, and why it has no
   * verdict. */
  columns: { place: number; title: string; why_no_verdict: string | null }[];
  rows: MergedRow[];
  differs: MergedDifference[];
}

/** Puts pairs with one and the same first side together. `comparisons` are of the sides from the
 * second on; null where there is none. */
export function merged(comparisons: readonly (Comparison | null)[]): Merged[] {
  const pairs = comparisons.flatMap((comparison, index) => (comparison?.pairs ?? []).map((pair) => ({ place: index + 1, pair })));
  const firsts = [...new Set(pairs.map(({ pair }) => pair.a))];
  return firsts.map((first) => {
    const own = pairs.filter(({ pair }) => pair.a === first);
    const metrics = [...new Set(own.flatMap(({ pair }) => pair.rows.map(({ metric }) => metric)))];
    const rows = metrics.map((metric): MergedRow => {
      const others = own.map(({ pair }) => pair.rows.find((row) => row.metric === metric) ?? null);
      const known = others.filter((row) => row !== null);
      return { metric, larger_is_better: known[0]?.larger_is_better ?? false, first: known.find(({ a }) => a !== null)?.a ?? null, others };
    });
    const whats = [...new Set(own.flatMap(({ pair }) => pair.differs.map(({ what }) => shown(what))))];
    const differs = whats.map((what): MergedDifference => {
      const found = own.map(({ pair }) => pair.differs.find((each) => shown(each.what) === what));
      const of_first = shown(found.find((each) => each !== undefined)?.a);
      return { what, first: of_first, others: found.map((each) => (each === undefined ? of_first : shown(each.b))) };
    });
    return { first, columns: own.map(({ place, pair }) => ({ place, title: pair.b, why_no_verdict: pair.why_no_verdict })), rows, differs };
  });
}
