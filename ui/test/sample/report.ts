import { FORMAT, type Decision, type Report } from "../../src/model.ts";
import { EXPERIMENT_FILE, FACTS, RESTORED } from "./facts.ts";
import { sampleTreatments } from "./treatments.ts";
import { CLIENTS, fail, MEASURE_S, sampleTrials, STARTED, WARMUP_S } from "./trials.ts";
import type { Trial } from "../../src/model.ts";

export const DECISION: Decision = {
  confidence: 0.95,
  smallest_effect: 0.025,
  noise_floor: 0.0103,
  degrees_of_freedom: 11,
  method:
    "Throughput was compared inside each block, as the logarithm of the ratio, with the spread pooled over all treatments and Student's t distribution, corrected for the number of comparisons.",
};

/** Puts a report together around trials; whatever follows from them is worked out again. */
export function reportAround(trials: Trial[], blocks: number): Report {
  const treatments = sampleTreatments(trials, DECISION);
  const last = trials.at(-1);
  return {
    format: FORMAT,
    generator: "pgdyno 0.1.0",
    generated_unix_ms: STARTED + 5_400_000,
    experiment: {
      id: 7,
      name: "Stock to tuned, step by step",
      question: "What is each tuning step worth on this host?",
      answer: "Three of six steps help: memory, compression with group commit, and read-ahead bring 1,870 to 2,980 transactions per second.",
      design: "cumulative",
      status: "finished",
      started_unix_ms: STARTED,
      finished_unix_ms: (last?.started_unix_ms ?? STARTED) + 160_000,
      blocks_planned: blocks,
      blocks_finished: blocks,
      seed: 20_251_118,
      reference: "reference",
      workload: { name: "tpcb-like", scale: 1000, clients: CLIENTS, threads: 4, warmup_s: WARMUP_S, measure_s: MEASURE_S },
      file: EXPERIMENT_FILE,
      repeat: ["pgdyno run stock-to-tuned.toml --seed 20251118", "pgdyno report 7 --out report.html"],
    },
    decision: DECISION,
    treatments,
    trials,
    facts: FACTS,
    restored: RESTORED,
  };
}

/** Seven treatments in three blocks; one trial failed, one did not settle, two took longer than
 * their warm-up. */
export function sampleReport(): Report {
  const trials = sampleTrials(28, 3);
  const broken = trials.find((trial) => trial.block === 3 && trial.treatment === "huge-pages");
  if (broken !== undefined) {
    fail(broken, "the server ended all connections 71 s into the trial: terminating connection due to administrator command");
  }
  const noisy = trials.find((trial) => trial.block === 1 && trial.treatment === "control");
  noisy?.disturbances.push("cron started logrotate: 3.1 % of the processors for 8 s");
  const slow = trials.find((trial) => trial.block === 2 && trial.treatment === "reference");
  if (slow !== undefined) slow.unsettled_s = 25;
  const late = trials.find((trial) => trial.block === 1 && trial.treatment === "huge-pages");
  if (late !== undefined) late.unsettled_s = 18;
  return reportAround(trials, 3);
}
