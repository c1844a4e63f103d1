import { isKnown } from "../format/number.ts";
import type { Report, Treatment, Trial } from "../model.ts";

export function trialsOf(report: Report, treatment: string): Trial[] {
  return report.trials.filter((trial) => trial.treatment === treatment);
}

export function finishedTrialsOf(report: Report, treatment: string): Trial[] {
  return trialsOf(report, treatment).filter((trial) => trial.status === "finished");
}

/** Mean throughput of a treatment. With a single block there is no interval and the report may
 * hold none at all; the plain mean over its finished trials is still known. */
export function meanTps(report: Report, treatment: Treatment): number | null {
  const mean = treatment.tps?.mean;
  if (isKnown(mean)) return mean;
  const known = finishedTrialsOf(report, treatment.name)
    .map((trial) => trial.tps)
    .filter(isKnown);
  return known.length === 0 ? null : known.reduce((sum, tps) => sum + tps, 0) / known.length;
}

/** What the treatment is compared with; the first one where it does not say. */
export function heldAgainst(report: Report, treatment: Treatment | null): Treatment | null {
  const against = treatment?.against;
  if (against === undefined || report.experiment.design === "cumulative") return referenceOf(report);
  return report.treatments.find(({ name }) => name === against) ?? null;
}

export function referenceOf(report: Report): Treatment | null {
  return report.treatments.find((treatment) => treatment.name === report.experiment.reference) ?? null;
}
