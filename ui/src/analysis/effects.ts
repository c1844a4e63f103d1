import { isKnown } from "../format/number.ts";
import type { Effect, Report, Treatment } from "../model.ts";

/** One row of the one-at-a-time chart: the change against the reference, in percent. */
export interface EffectRow {
  index: number;
  treatment: Treatment;
  effect: Effect | null;
}

export function effectRows(report: Report): EffectRow[] {
  return report.treatments
    .filter((treatment) => treatment.name !== report.experiment.reference)
    .map((treatment, index) => ({ index, treatment, effect: treatment.step ?? treatment.total }));
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
