import { plural } from "../format/number.ts";
import type { Report, Trial } from "../model.ts";

export interface Notice {
  kind: "grave" | "note";
  word: string;
  detail: string;
}

/** What a reader has to know before believing the answer. */
export function notices(report: Report): Notice[] {
  const result: Notice[] = [];
  const { experiment } = report;
  // What a search tries is in one block each.
  const done = experiment.design === "search" ? plural(report.trials.length, "trial") : `${plural(experiment.blocks_finished, "block")} of ${String(experiment.blocks_planned)}`;
  if (experiment.status === "interrupted") {
    const detail = `it ended after ${done}; the results are from those`;
    result.push({ kind: "grave", word: "interrupted", detail });
  }
  if (experiment.status === "killed") {
    const detail = `the process that ran it died after ${done}; the results are from those`;
    result.push({ kind: "grave", word: "killed", detail });
  }
  if (experiment.status === "running or killed") {
    result.push({ kind: "note", word: "running or killed", detail: "unknown from here whether its process still runs; the numbers may still change" });
  }
  if (experiment.status === "running") {
    result.push({ kind: "note", word: "running", detail: "the numbers still change" });
  }
  const durability = durabilityKnobs(report);
  if (durability.length > 0) {
    const detail = `tested with ${durability.join(", ")}: committed transactions can be lost in a crash`;
    result.push({ kind: "grave", word: "trades durability", detail });
  }
  for (const status of ["failed", "invalid"] as const) {
    const amount = report.trials.filter((trial) => trial.status === status).length;
    if (amount > 0) {
      result.push({ kind: "note", word: `${plural(amount, "trial")} ${status}`, detail: "excluded from every result, listed under Trials" });
    }
  }
  const excluded = excludedTrials(report).length;
  if (excluded > 0) {
    result.push({ kind: "note", word: `${plural(excluded, "trial")} excluded`, detail: "without a value that has a ratio to others, listed under Trials" });
  }
  return result;
}

export function durabilityKnobs(report: Report): string[] {
  const risky = report.treatments
    .filter((treatment) => treatment.status === "tested")
    .flatMap((treatment) => treatment.settings)
    .filter((setting) => setting.risk === "durability")
    .map((setting) => `${setting.knob} = ${setting.value}`);
  return [...new Set(risky)];
}

/** Trials whose numbers do not count. */
export function unfinishedTrials(report: Report): Trial[] {
  return report.trials.filter((trial) => trial.status !== "finished");
}

/** Finished trials that are in no figure: their value has no ratio to others. */
export function excludedTrials(report: Report): Trial[] {
  return report.trials.filter((trial) => trial.excluded === true);
}

/** Finished trials that a careful reader would check. */
export function doubtfulTrials(report: Report): Trial[] {
  return report.trials.filter(
    (trial) =>
      trial.status === "finished" &&
      trial.excluded !== true &&
      (trial.settled === false || trial.disturbances.length > 0 || trial.cross_check?.agrees === false),
  );
}
