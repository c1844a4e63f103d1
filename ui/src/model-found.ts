/**
 * What a report holds of experiments with factors: tables, findings of a study, effects, curves
 * (crates/pgdyno-report/src/model/found.rs).
 */

import type { Effect, Interval } from "./model.ts";

export type { CapacityDocument } from "./model-capacity.ts";

/** Names of a factor and of a level of it; "step" is the factor of steps. */
export interface LevelOf {
  factor: string;
  level: string;
}

export interface TableCell {
  mean: number;
  /** null for a single trial. */
  low: number | null;
  high: number | null;
  n: number;
}

export interface StudyTable {
  title: string;
  /** Heading of the first column. */
  rows: string;
  /** What the columns differ in; empty where each is a figure. */
  columns_title: string;
  columns: { title: string; figure: string; figure_title: string }[];
  /** One for each combination of the factors that the table does not name. */
  blocks: { title: string | null; rows: { title: string; cells: (TableCell | null)[] }[] }[];
}

export interface Study {
  source: string;
  title: string;
  summary: string | null;
}

export type Outcome = "agrees" | "disagrees" | "undecided" | "not-tested";

/** What became of a finding of the study. */
export interface StudyClaim {
  text: string;
  treatments: string[];
  /** What each of them was held against. */
  against: string[];
  metric: string;
  found: "better" | "worse" | "same";
  study_ratio: number | null;
  effect: Effect | null;
  outcome: Outcome;
  sentence: string;
}

export interface FactorEffect {
  title: string;
  factor: string;
  level: string;
  against: string;
  /** For an interaction: how much more the two are worth together than the product of each alone. */
  other: LevelOf | null;
  effect: Effect | null;
}

/** null: at infinity, or no bound. */
export interface Bounded {
  value: number | null;
  low: number | null;
  high: number | null;
}

export interface CurvePoint {
  x: number;
  treatment: string;
  /** With a single trial the bounds are the value itself. */
  tps: Interval;
  p99_ms: number | null;
  n: number;
}

/** X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)). */
export interface UslCurve {
  lambda: Bounded;
  sigma: Bounded;
  kappa: Bounded;
  peak_x: Bounded;
  peak_tps: Bounded;
  spread: number;
}

export interface Zone {
  lowest: number;
  highest: number;
  best: number;
  peak: number;
  peak_tps: Interval;
  knee: number | null;
  why_no_knee: string | null;
  lower_edge: "throughput" | "unmeasured";
  upper_edge: "throughput" | "knee" | "unmeasured";
  past_knee: boolean;
}

export interface Curve {
  title: string | null;
  factor: string;
  /** "clients", "CPUs", or the factor's title. */
  x: string;
  points: CurvePoint[];
  usl: UslCurve | null;
  why_no_usl: string | null;
  zone: Zone | null;
  why_no_zone: string | null;
}

export interface PutBack {
  knob: string;
  where: string;
  was: string;
  set_to: string;
  /** "restored" | "already" | "left" (someone else changed it since; detail says what) | "failed" (detail says why). */
  outcome: "restored" | "already" | "left" | "failed";
  detail: string | null;
}
