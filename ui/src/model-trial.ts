/**
 * One trial with everything recorded beside it: the JSON of crates/pgdyno-report/src/detail/model.rs.
 * Times are milliseconds after the start of the load.
 */

import type { Setting, Trial } from "./model.ts";

export const TRIAL_FORMAT = "pgdyno-trial/1";

export type Layer = "load" | "host" | "server";

export interface TrialColumn {
  /** Unit last; "tps" and "p95_ms" are the load's. */
  metric: string;
  /** Which one of several: a disk, a CPU. */
  label: string | null;
  /** "ratio" goes from 0 to 1; empty for a number without a unit. */
  unit: string;
  layer: Layer;
  title: string;
  t_ms: number[];
  values: (number | null)[];
}

export type MarkKind = "checkpoint" | "vacuum" | "disturbance" | "gap";

export interface Mark {
  at_ms: number;
  until_ms: number | null;
  kind: MarkKind;
  text: string;
}

export interface WaitSessions {
  name: string;
  values: (number | null)[];
}

export interface Waits {
  t_ms: number[];
  /** Mean number of sessions in each second, the busiest type first; CPU are those that ran. */
  types: WaitSessions[];
  /** The same by event: "IO: WalSync". Missing in files of an earlier pgdyno. */
  events?: WaitSessions[];
}

/** What is known of a statement; samples know its number and how many sessions were at it, the server's own counts the rest. */
export interface Statement {
  query_id?: string | null;
  query?: string | null;
  mean_sessions?: number | null;
  max_sessions?: number | null;
  share_ratio?: number | null;
  calls?: number | null;
  total_ms?: number | null;
  mean_ms?: number | null;
  rows?: number | null;
  shared_hit?: number | null;
  shared_read?: number | null;
  wal_bytes?: number | null;
}

export interface Heat {
  /** Where the first stretch begins; at the load's start where it is not said. */
  from_s?: number;
  /** Ends of the stretches. */
  t_s: number[];
  /** One more than there are classes. */
  edges_ms: number[];
  /** For each stretch a count for each class. */
  counts: number[][];
}

export interface TrialDocument {
  format: string;
  experiment_id: number;
  trial: Trial & { title?: string | null; settings?: Setting[] };
  load_begun_unix_ms: number | null;
  warmup_s: number;
  measured_s: number;
  series: TrialColumn[];
  marks: Mark[];
  waits: Waits | null;
  statements: Statement[];
  errors: { sqlstate: string; count: number; message?: string; place?: string }[];
  distribution?: { percentile: number; ms: number }[];
  latency_heat: Heat | null;
}

/** What the trials of a report file hold. */
export interface Details {
  /** null: all points that were recorded. */
  points_max: number | null;
  scope: "all" | "main";
  /** Trials without details, for the file would be too large. */
  left_out: number;
}
