/**
 * What a report holds: the shape of the JSON that pgdyno-report writes (crates/pgdyno-report/src/model.rs).
 * Units stand last in a name. `null` means "not known" or "not applicable", never zero.
 */

import type { Heat, Mark } from "./model-trial.ts";
import type { CapacityDocument, Curve, FactorEffect, LevelOf, PutBack, Study, StudyClaim, StudyTable } from "./model-found.ts";

export type * from "./model-found.ts";

export const FORMAT = "pgdyno-report/1";

export type Verdict = "better" | "worse" | "same" | "undecided";

/** A ratio to what it is compared with (1.10 = ten percent more), with its interval. */
export interface Effect {
  ratio: number;
  /** Bounds of the interval; family-wise confidence stands in `Decision.confidence`. */
  ratio_low: number;
  ratio_high: number;
  verdict: Verdict;
  /** Blocks in which both sides finished. */
  blocks: number;
}

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

export interface Setting {
  knob: string;
  value: string;
  /** What the target itself reported after the setting was applied; differs when it was overridden or filled in part. */
  effective: string | null;
  layer: "postgres" | "table" | "kernel" | "memory" | "block" | "cpu" | "net";
  /** "none" | "stability" | "durability": what this setting can cost the user. */
  risk: "none" | "stability" | "durability";
  /** True when this treatment adds or changes it relative to the one before (cumulative) or to the reference. */
  changed: boolean;
}

/** Null where an external program has not reported it. */
export interface Percentiles {
  mean_ms?: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  max_ms: number | null;
}

export interface Workload {
  name: string;
  scale: number;
  clients: number;
  threads: number;
  warmup_s: number;
  measure_s: number;
}

/** Optional fields of this file are missing in reports from before there were factors. */
export interface Treatment {
  /** Unique in the report, for example "reference" or "memory". */
  name: string;
  title: string;
  reason: string | null;
  /** "not-tested" carries why_not. */
  status: "tested" | "not-tested";
  why_not: string | null;
  settings: Setting[];
  trials_finished: number;
  trials_failed: number;
  /** Finished trials that are in no mean and no effect all the same. */
  trials_left_out?: number;
  levels?: LevelOf[];
  /** Name of the treatment that it is held against. */
  against?: string | null;
  /** Its load, where it is not the experiment's. */
  workload?: Workload | null;
  /** What else it has of its own, as ["server.pooler", "pgbouncer"]. */
  around?: [string, string][];
  /** Means over its trials by the name of the figure. */
  figures?: Record<string, number | null>;
  /** The figure that decides: see Decision.metric. */
  metric?: Interval | null;
  tps: Interval | null;
  percentiles: Percentiles | null;
  /** Merged response-time distribution: ascending percentile (0..100) against milliseconds. */
  distribution: { percentile: number; ms: number }[];
  /** Response times over time, of all its trials that count. */
  latency_heat?: Heat | null;
  /** Coefficient of variation of the per-second throughput, mean over trials: 0.05 = 5 %. */
  stability_cv: number | null;
  client_cpu_us_per_tx: number | null;
  server_cpu_us_per_tx: number | null;
  wal_bytes_per_tx: number | null;
  /** The figure that decides against the treatment before it (cumulative) or the one in `against`. null for the reference. */
  step: Effect | null;
  /** The figure that decides against the reference. null for the reference. */
  total: Effect | null;
  /** p95 response time against the same comparison as `step`: below 1 is quicker. */
  step_p95: Effect | null;
}

export interface Series {
  /** Seconds that a point stands for where that is more than one: their mean throughput, their highest p95. */
  bucket_s?: number | null;
  /** Seconds since the load began (warm-up included), one value per second: the end of each second. */
  t_s: number[];
  tps: number[];
  p95_ms: (number | null)[];
}

export interface Trial {
  id: number;
  /** 1-based. */
  block: number;
  /** 1-based position inside the block, after randomisation. */
  position: number;
  treatment: string;
  status: "finished" | "failed" | "invalid";
  reason: string | null;
  started_unix_ms: number;
  tps: number | null;
  committed: number;
  /** null where an external program does not report it. */
  failed: number | null;
  skipped?: number | null;
  /** Committed, but later than latency_limit_ms. */
  late?: number | null;
  latency_limit_ms?: number | null;
  retries?: number | null;
  rolled_back?: number | null;
  errors: { sqlstate: string; count: number; message?: string; place?: string }[];
  percentiles: Percentiles | null;
  /** The external program that has reported throughput and response times, if one has. */
  reported_by?: string | null;
  /** Whether throughput was found steady in the measured window; null where it could not be judged. */
  settled: boolean | null;
  warmup_s: number;
  measured_s: number;
  cross_check: { client: number; server: number; allowed_difference: number; agrees: boolean } | null;
  disturbances: string[];
  disturbed?: boolean;
  /** In no mean and no effect, though it finished. */
  left_out?: boolean;
  /** The server that it ran on, where that is not the target itself. */
  stand?: string | null;
  unsettled_s?: number | null;
  figures?: Record<string, number | null>;
  /** Checkpoints, vacuums and disturbances. */
  marks?: Mark[];
  series: Series;
}

/** What a fact holds: JSON. */
export type FactValue = string | number | boolean | null | FactValue[] | { [name: string]: FactValue };

export interface Fact {
  group: "host" | "server" | "load" | "sandbox";
  name: string;
  value: FactValue;
  /** Why it is missing, when value is null. */
  missing: string | null;
  source: string;
}

export interface Decision {
  /** Family-wise confidence of all intervals together, for example 0.95. */
  confidence: number;
  /** Differences below this do not matter: 0.02 = 2 %. */
  smallest_effect: number;
  /** Spread (standard deviation as a ratio) between trials of one and the same treatment: 0.015 = 1.5 %. */
  noise_floor: number | null;
  degrees_of_freedom: number;
  method: string;
  /** Name of the figure that decides; "tps" where none is said. */
  metric?: string;
  /** What it is, as it stands in a sentence. */
  metric_title?: string;
  /** Empty for a number without a unit. */
  metric_unit?: string;
  larger_is_better?: boolean;
  stop?: "after-blocks" | "when-decided";
  stop_rule?: string;
  excluded?: LeftOut[];
  /** The smallest effect (0.03 = 3 %) that so many blocks find with probability `power`. */
  minimum_detectable_effect?: number | null;
  power?: number;
}

/** A finished trial that is left out: disturbed, and far from what its block and treatment lead to expect. */
export interface LeftOut {
  trial: number;
  block: number;
  treatment: string;
  /** Robust standard deviations; null where its figure has no ratio to others. */
  deviations: number | null;
  disturbances: string[];
}

export interface Factor {
  name: string;
  title: string;
  /** A condition: its levels are not held against one another. */
  along: boolean;
  levels: string[];
}

export type Design =
  | "cumulative" | "one-at-a-time" | "a-b" | "a-a" | "full-factorial" | "fractional" | "screening" | "ladder" | "load";

export interface Report {
  format: string;
  generator: string;
  generated_unix_ms: number;
  experiment: {
    id: number;
    name: string;
    question: string;
    /** The answer in one sentence, written by pgdyno-report. */
    answer: string;
    design: Design;
    status: "running" | "killed" | "running or killed" | "finished" | "interrupted";
    started_unix_ms: number;
    finished_unix_ms: number | null;
    blocks_planned: number;
    blocks_finished: number;
    seed: number;
    reference: string;
    /** Name of the treatment that the answer is about. */
    headline?: string | null;
    factors?: Factor[];
    workload: Workload;
    /** The experiment file, whole. */
    file: string;
    /** Shell commands that repeat it. */
    repeat: string[];
  };
  decision: Decision;
  /** In the order of the plan; the reference first. */
  treatments: Treatment[];
  /** In the order of execution. */
  trials: Trial[];
  tables?: StudyTable[];
  study?: Study | null;
  claims?: StudyClaim[];
  effects?: FactorEffect[];
  curves?: Curve[];
  /** What some throughputs take, the usual one first; empty where neither CPUs nor clients were varied. */
  capacity?: CapacityDocument[];
  facts: Fact[];
  put_back: PutBack[];
}
