import { isKnown } from "../format/number.ts";
import type { Effect, Report, Treatment, Verdict } from "../model.ts";
import { meanTps } from "./throughput.ts";

/** One row of the waterfall: a bar that floats from the throughput before the step to the one
 * after it. */
export interface WaterfallRow {
  index: number;
  title: string;
  treatment: Treatment;
  /** null where the treatment has no throughput: not tested, or every trial failed. */
  from_tps: number | null;
  to_tps: number | null;
  /** The interval of the step, laid off from where the bar starts, so that it crosses the start
   * when undecided. */
  low_tps: number | null;
  high_tps: number | null;
  verdict: Verdict | null;
  effect: Effect | null;
}

/** A step is compared with the last treatment before it that has a throughput; the reference
 * starts at zero. */
export function waterfallRows(report: Report): WaterfallRow[] {
  let before: number | null = null;
  const rows = report.treatments.map((treatment, index) => {
    const to = meanTps(report, treatment);
    const isReference = treatment.name === report.experiment.reference;
    const from = isReference ? 0 : before;
    const effect = isReference ? null : treatment.step;
    const whisker = isReference ? treatment.tps : stepWhisker(effect, before);
    if (to !== null) before = to;
    return {
      index,
      title: treatment.title,
      treatment,
      from_tps: to === null ? null : (from ?? 0),
      to_tps: to,
      low_tps: whisker?.low ?? null,
      high_tps: whisker?.high ?? null,
      verdict: effect?.verdict ?? null,
      effect,
    };
  });
  return [...rows, ...total(report, rows)];
}

/** All steps together, where the last one that has a throughput is compared with the reference
 * over more than one step. */
function total(report: Report, rows: readonly WaterfallRow[]): WaterfallRow[] {
  const last = rows.findLast(({ to_tps }) => to_tps !== null);
  const effect = last?.treatment.total ?? null;
  const reference = report.treatments.find(({ name }) => name === report.experiment.reference);
  const start = reference === undefined ? null : meanTps(report, reference);
  if (last === undefined || effect === null || last.index < 2) return [];
  const whisker = stepWhisker(effect, start);
  return [
    {
      index: rows.length,
      title: "All steps together",
      treatment: last.treatment,
      from_tps: 0,
      to_tps: last.to_tps,
      low_tps: whisker?.low ?? null,
      high_tps: whisker?.high ?? null,
      verdict: effect.verdict,
      effect,
    },
  ];
}

function stepWhisker(effect: Effect | null, start: number | null): { low: number; high: number } | null {
  if (effect === null || start === null || !isKnown(effect.ratio_low) || !isKnown(effect.ratio_high)) return null;
  return { low: start * effect.ratio_low, high: start * effect.ratio_high };
}

/** From zero, always: a throughput axis cut off below makes small steps look large. */
export function waterfallDomain(rows: readonly WaterfallRow[]): [number, number] {
  const ends = rows.flatMap((row) => [row.from_tps, row.to_tps, row.high_tps]).filter(isKnown);
  const top = ends.length === 0 ? 0 : Math.max(...ends);
  return [0, top > 0 ? top * 1.02 : 1];
}

/** A thin line that carries one bar's end down to the next bar's start. */
export interface Connector {
  tps: number;
  /** Indexes of the rows. */
  from: number;
  to: number;
}

export function connectors(rows: readonly WaterfallRow[]): Connector[] {
  const placed = rows.filter((row) => row.to_tps !== null);
  return placed.slice(0, -1).flatMap((row, position) => {
    const next = placed[position + 1];
    return next === undefined || row.to_tps === null ? [] : [{ tps: row.to_tps, from: row.index, to: next.index }];
  });
}
