import type { Series, Trial } from "../../src/model.ts";
import { STEPS } from "./plan.ts";
import { seeded, shuffled, type Random } from "./random.ts";

export const WARMUP_S = 30;
export const MEASURE_S = 120;
export const CLIENTS = 32;
export const STARTED = Date.UTC(2025, 10, 18, 9, 14);
const STOCK_TPS = 1_903;
const TRIAL_SPACING_MS = 205_000;

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** What the step at `index` truly reaches. */
export function trueTps(index: number): number {
  return STEPS.slice(0, index + 1).reduce((tps, step) => tps * step.ratio, STOCK_TPS);
}

export function percentilesAt(tps: number): Record<"p50_ms" | "p95_ms" | "p99_ms" | "max_ms", number> {
  const p50_ms = (CLIENTS / tps) * 1000 * 0.82;
  return { p50_ms, p95_ms: p50_ms * 2.35, p99_ms: p50_ms * 4.4, max_ms: p50_ms * 61 };
}

/** Rises while caches fill, then wanders; a checkpoint takes a bite now and then. */
function seriesAt(tps: number, random: Random, seconds: number, sags: boolean): Series & { checkpoint: number } {
  const checkpoint = 40 + Math.floor(random.uniform() * 70);
  const t_s = Array.from({ length: seconds }, (_, second) => second + 1);
  const perSecond = t_s.map((second) => {
    const warming = 1 - 0.55 * Math.exp(-second / 9);
    const sagging = sags ? 1 - 0.0006 * Math.max(0, second - WARMUP_S) : 1;
    const bite = second >= checkpoint && second < checkpoint + 6 ? 0.8 : 1;
    return tps * warming * sagging * bite * (1 + 0.028 * random.normal());
  });
  return { checkpoint, t_s, tps: perSecond, p95_ms: perSecond.map((value, second) => (second === 3 ? null : percentilesAt(value).p95_ms)) };
}

export function sampleTrials(seed: number, blocks: number): Trial[] {
  const random = seeded(seed);
  const trials: Trial[] = [];
  for (let block = 1; block <= blocks; block += 1) {
    const blockLuck = 1 + 0.006 * random.normal();
    shuffled(STEPS.map((_, index) => index), random).forEach((index, place) => {
      const tps = trueTps(index) * blockLuck * (1 + 0.006 * random.normal());
      const sags = block === 2 && index === 2;
      const { checkpoint, ...series } = seriesAt(tps, random, WARMUP_S + MEASURE_S, sags);
      const measured = meanOf(series.tps.slice(WARMUP_S));
      const committed = Math.round(measured * MEASURE_S);
      trials.push({
        id: trials.length + 1,
        block,
        position: place + 1,
        treatment: STEPS[index]?.name ?? "reference",
        status: "finished",
        reason: null,
        started_unix_ms: STARTED + trials.length * TRIAL_SPACING_MS,
        tps: measured,
        committed,
        failed: 0,
        errors: [],
        percentiles: percentilesAt(measured),
        settled: !sags,
        warmup_s: WARMUP_S,
        measured_s: MEASURE_S,
        cross_check: { client: committed, server: committed + Math.round(random.uniform() * 40), allowed_difference: 320, agrees: true },
        disturbances: sags ? ["throughput fell by 0.06 % per second through the measured window"] : [],
        marks: [{ at_ms: checkpoint * 1000, until_ms: (checkpoint + 6) * 1000, kind: "checkpoint", text: "checkpoint: its time had come" }],
        series,
      });
    });
  }
  return trials;
}

/** Turns a trial into one that broke off. */
export function fail(trial: Trial, reason: string): void {
  trial.status = "failed";
  trial.reason = reason;
  trial.tps = null;
  trial.percentiles = null;
  trial.settled = null;
  trial.cross_check = null;
  trial.failed = 32;
  trial.errors = [{ sqlstate: "57P01", count: 32 }];
  trial.series = {
    t_s: trial.series.t_s.slice(0, 71),
    tps: trial.series.tps.slice(0, 71),
    p95_ms: trial.series.p95_ms.slice(0, 71),
  };
}
