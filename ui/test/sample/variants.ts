import type { Report } from "../../src/model.ts";
import { cores, zoneDocument } from "./capacity.ts";
import { factors, jobs, ladder } from "./factors.ts";
import { DECISION, reportAround, sampleReport } from "./report.ts";
import { searched } from "./search.ts";
import { fail, sampleTrials } from "./trials.ts";

/** Every trial failed: nothing is known, and the page has to say so. */
export function nothingFinished(): Report {
  const trials = sampleTrials(3, 1);
  for (const trial of trials) fail(trial, "could not connect to the server");
  const report = reportAround(trials, 1);
  report.decision = { ...DECISION, noise_floor: null, degrees_of_freedom: 0 };
  report.experiment.answer = "No trial finished, so nothing can be said.";
  report.experiment.blocks_finished = 0;
  return report;
}

export function noTrials(): Report {
  const report = reportAround([], 3);
  report.experiment.blocks_finished = 0;
  report.experiment.status = "running";
  report.experiment.finished_unix_ms = null;
  return report;
}

/** One block: throughput is known, intervals are not. */
export function singleBlock(): Report {
  const report = reportAround(sampleTrials(5, 1), 1);
  report.decision = { ...DECISION, noise_floor: null, degrees_of_freedom: 0 };
  return report;
}

/** NaN and infinity become null in JSON, also where the types promise a number. */
export function nullNumbers(): Report {
  const report = sampleReport();
  const text = JSON.stringify(report, (key: string, value: unknown) =>
    ["ratio_low", "p99_ms", "noise_floor", "stability_cv"].includes(key) ? null : value,
  );
  return JSON.parse(text) as Report;
}

export function notTested(): Report {
  const trials = sampleTrials(28, 3).filter((trial) => trial.treatment !== "huge-pages");
  const report = reportAround(trials, 3);
  for (const treatment of report.treatments) {
    if (treatment.name !== "huge-pages") continue;
    treatment.status = "not-tested";
    treatment.why_not = "the host could give 212 of the 8,600 huge pages asked for: memory is in pieces";
  }
  return report;
}

export function durabilityTraded(): Report {
  const report = sampleReport();
  report.treatments.forEach((treatment, index) => {
    if (index < 3) return;
    treatment.settings.push({
      knob: "synchronous_commit", value: "off", effective: "off", layer: "postgres", risk: "durability", changed: index === 3,
    });
  });
  return report;
}

export function interrupted(): Report {
  const report = reportAround(sampleTrials(28, 2), 3);
  report.experiment.status = "interrupted";
  report.experiment.blocks_finished = 2;
  return report;
}

/** Nine blocks of seven, one trial short of 64: a long night. */
export function manyTrials(): Report {
  return reportAround(sampleTrials(17, 9).slice(0, 60), 9);
}

export function oneAtATime(): Report {
  const report = sampleReport();
  report.experiment.design = "one-at-a-time";
  for (const treatment of report.treatments) treatment.step = treatment.total;
  return report;
}

/** Names that try to be markup. */
export function hostile(): Report {
  const report = sampleReport();
  const markup = '<img src=x onerror="window.pgdynoHit=1">';
  report.experiment.name = `</script><script>window.pgdynoHit=2</script>`;
  report.experiment.question = markup;
  report.experiment.file = `</pre>${markup}<!-- <script>`;
  const first = report.treatments[1];
  if (first !== undefined) {
    first.title = "<img src=x onerror=alert(1)>";
    first.reason = markup;
    const setting = first.settings[0];
    if (setting !== undefined) setting.value = markup;
  }
  const trial = report.trials[0];
  if (trial !== undefined) trial.disturbances.push(markup);
  return report;
}

export const VARIANTS: Record<string, () => Report> = {
  sample: sampleReport, nothingFinished, noTrials, singleBlock, nullNumbers, notTested, durabilityTraded, interrupted, manyTrials, oneAtATime, hostile, factors, jobs, cores, searched,
  ladder: () => ({ ...ladder(), capacity: [60_000, 930, 1_900].map(zoneDocument) }),
};
