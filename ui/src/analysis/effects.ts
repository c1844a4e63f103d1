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

/** Zero and the band of "does not matter" are always in view. */
export function effectDomain(rows: readonly EffectRow[], smallestEffect: number): [number, number] {
  const band = smallestEffect * 100 * 1.5;
  const ends = rows
    .flatMap(({ effect }) => (effect === null ? [] : [effect.ratio, effect.ratio_low, effect.ratio_high]))
    .filter(isKnown)
    .map(percentOf);
  return [Math.min(-band, ...ends), Math.max(band, ...ends)];
}
