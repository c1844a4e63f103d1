import type { Decision, Effect, Interval, Treatment, Trial, Verdict } from "../../src/model.ts";
import { nines } from "../../src/analysis/percentiles.ts";
import { settingsUpTo, STEPS } from "./plan.ts";
import { percentilesAt } from "./trials.ts";

/** About what Student's t with so few blocks, and many comparisons at once, makes of the spread. */
const WIDTH = 3;
const PERCENTILES = [0, 10, 25, 50, 60, 75, 80, 90, 92.5, 95, 97.5, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 100];

function known(trials: readonly Trial[], treatment: string): Map<number, number> {
  return new Map(
    trials.flatMap((trial) => (trial.treatment === treatment && trial.tps !== null ? [[trial.block, trial.tps] as const] : [])),
  );
}

function spread(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0 };
}

function verdictOf(low: number, high: number, smallest: number): Verdict {
  if (low >= 1 - smallest && high <= 1 + smallest) return "same";
  if (low > 1) return "better";
  return high < 1 ? "worse" : "undecided";
}

/** Ratios inside blocks; the real statistics live in the Rust crates, this only has to look like
 * them. */
export function effectOf(trials: readonly Trial[], treatment: string, base: string, decision: Decision): Effect | null {
  const after = known(trials, treatment);
  const logs = [...known(trials, base)].flatMap(([block, tps]) => {
    const other = after.get(block);
    return other === undefined ? [] : [Math.log(other / tps)];
  });
  if (logs.length < 2) return null;
  const { mean } = spread(logs);
  const half = (WIDTH * (decision.noise_floor ?? 0.01)) / Math.sqrt(logs.length);
  const bounds = { ratio: Math.exp(mean), ratio_low: Math.exp(mean - half), ratio_high: Math.exp(mean + half) };
  return { ...bounds, verdict: verdictOf(bounds.ratio_low, bounds.ratio_high, decision.smallest_effect), blocks: logs.length };
}

function intervalOf(values: readonly number[]): Interval | null {
  if (values.length < 2) return null;
  const { mean } = spread(values);
  const half = mean * 0.014;
  return { mean, low: mean - half, high: mean + half };
}

function distributionAt(tps: number): Treatment["distribution"] {
  const { p50_ms, max_ms } = percentilesAt(tps);
  return PERCENTILES.map((percentile) => {
    const ms = percentile === 100 ? max_ms : p50_ms * (0.45 + 0.55 * Math.exp(0.93 * (nines(percentile) - 0.301)));
    return { percentile, ms, low_ms: percentile > 99.9 ? null : ms * 0.96, high_ms: percentile > 99.9 ? null : ms * 1.05 };
  });
}

/** With huge pages the TLB misses hardly; with compression less is written. */
function costsAt(index: number): Record<"client_cpu_us_per_tx" | "server_cpu_us_per_tx" | "wal_bytes_per_tx", number> & Record<string, number> {
  const pages = index >= 4 ? 0.22 : 1;
  const busy = 1 - 0.04 * index;
  return {
    client_cpu_us_per_tx: 96.4 - 0.8 * index, server_cpu_us_per_tx: 1_184 - 61 * index, wal_bytes_per_tx: index < 3 ? 5_320 : 3_110,
    disk_read_bytes_per_tx: 18_400 * (index === 0 ? 1 : 0.31), disk_write_bytes_per_tx: index < 3 ? 31_200 : 24_100, energy_j_per_tx: 0.0381 * busy,
    page_faults: 4.1 * pages, dtlb_load_misses: 2_310 * pages, dtlb_store_misses: 640 * pages, llc_load_misses: 5_120 * busy,
    context_switches: 6.4 * busy, migrations: 0.21, cycles: 3.4e6 * busy, instructions: 4.1e6 * busy,
  };
}

export function sampleTreatments(trials: readonly Trial[], decision: Decision): Treatment[] {
  return STEPS.map((step, index) => {
    const own = trials.filter((trial) => trial.treatment === step.name);
    const values = [...known(trials, step.name).values()];
    const mean = values.length === 0 ? null : spread(values).mean;
    const earlier = STEPS.slice(0, index).filter(({ name }) => known(trials, name).size > 0);
    const before = index === 0 ? undefined : (earlier.at(-1)?.name ?? "reference");
    const effect = before === undefined ? null : effectOf(trials, step.name, before, decision);
    return {
      name: step.name,
      title: step.title,
      reason: step.reason,
      status: "tested",
      why_not: null,
      settings: settingsUpTo(index),
      trials_finished: own.filter((trial) => trial.status === "finished").length,
      trials_failed: own.filter((trial) => trial.status === "failed").length,
      tps: intervalOf(values),
      percentiles: mean === null ? null : percentilesAt(mean),
      distribution: mean === null ? [] : distributionAt(mean),
      stability_cv: mean === null ? null : 0.041 - 0.002 * index,
      client_cpu_us_per_tx: mean === null ? null : costsAt(index).client_cpu_us_per_tx,
      server_cpu_us_per_tx: mean === null ? null : costsAt(index).server_cpu_us_per_tx,
      wal_bytes_per_tx: mean === null ? null : costsAt(index).wal_bytes_per_tx,
      // As pgdyno counts on a machine with counters and a power meter; TLB walks it cannot count
      // there.
      figures: mean === null ? {} : costsAt(index),
      step: effect,
      total: before === undefined ? null : effectOf(trials, step.name, "reference", decision),
      step_p95:
        effect === null
          ? null
          : { ...effect, ratio: 1 / effect.ratio, ratio_low: 1 / effect.ratio_high, ratio_high: 1 / effect.ratio_low },
    };
  });
}
