import { isKnown } from "../format/number.ts";
import type { Effect, Report } from "../model.ts";

/** One row of a chart of effects: the change against something else, in percent. */
export interface EffectRow {
  index: number;
  title: string;
  effect: Effect | null;
  /** What is shown there without an effect. */
  missing: string;
}

export function effectRows(report: Report): EffectRow[] {
  return report.treatments
    .filter(({ name, against, status }) =>
      against === undefined ? name !== report.experiment.reference : against !== null || status === "not-tested",
    )
    .map((treatment, index) => ({
      index,
      title: treatment.title,
      effect: treatment.step ?? treatment.total,
      missing: treatment.status === "not-tested" ? "not tested" : "no effect known",
    }));
}

/** Main effects first, then what two levels are worth together. */
export function factorRows(report: Report): EffectRow[] {
  return (report.effects ?? []).map(({ title, effect }, index) => ({ index, title, effect, missing: "not known" }));
}

export function percentOf(ratio: number): number {
  return (ratio - 1) * 100;
}

/** Intervals are in view up to so many times the largest effect, and to this many percent: those
 * of few trials would dwarf all effects. */
const EFFECTS_WIDE = 5;
const PERCENT_WIDE = 100;

/** Zero and the band of "does not matter" are always in view. */
export function effectDomain(rows: readonly EffectRow[], smallestEffect: number): [number, number] {
  const band = smallestEffect * 100 * 1.5;
  const known = rows.flatMap(({ effect }) => (effect === null ? [] : [effect]));
  const effects = known.map(({ ratio }) => percentOf(ratio));
  const most = Math.max(PERCENT_WIDE, EFFECTS_WIDE * Math.max(...effects.map(Math.abs)));
  const bounds = known
    .flatMap(({ ratio_low, ratio_high }) => [ratio_low, ratio_high])
    .filter(isKnown)
    .map((ratio) => Math.min(most, percentOf(ratio)));
  return [Math.min(-band, ...effects, ...bounds), Math.max(band, ...effects, ...bounds)];
}
