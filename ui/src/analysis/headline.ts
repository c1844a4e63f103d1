import type { Report, Treatment } from "../model.ts";
import { meanTps, referenceOf } from "./throughput.ts";

/** The treatment that the key figures and the first charts set against the reference.
 *
 * Cumulative: the last step whose gain is established. The tested treatment with the highest
 * mean would often be one that did nothing and was lucky. One at a time: the highest mean among
 * the better ones. Where nothing is better, it is the last measured treatment, so that the page
 * still shows before and after. Reports that know of factors say themselves which it is. */
export function headlineTreatment(report: Report): Treatment | null {
  const named = report.experiment.headline;
  if (named !== undefined) return report.treatments.find(({ name }) => name === named) ?? null;
  const reference = referenceOf(report);
  const measured = report.treatments.filter(
    (treatment) => treatment !== reference && treatment.status === "tested" && meanTps(report, treatment) !== null,
  );
  if (report.experiment.design === "cumulative") {
    return measured.findLast((treatment) => (treatment.step ?? treatment.total)?.verdict === "better") ?? measured.at(-1) ?? null;
  }
  const better = measured.filter((treatment) => treatment.total?.verdict === "better");
  const byMean = (better.length > 0 ? better : measured).toSorted(
    (a, b) => (meanTps(report, b) ?? 0) - (meanTps(report, a) ?? 0),
  );
  return byMean[0] ?? null;
}
