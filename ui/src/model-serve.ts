/** What `pgdyno serve` answers beside reports and trials. Shapes that come from other commands are read with care. */

import type { Effect, Fact } from "./model.ts";

export interface Listed {
  id: number;
  name: string;
  question: string;
  status: string;
  started_unix_ms: number;
  finished_unix_ms: number | null;
  target: string;
  trials_finished: number;
  trials_failed: number;
  trials_planned: number | null;
  answer: string | null;
  tags: string[];
  /** How many there are. */
  notes: number;
}

export interface Note {
  id: number;
  written_unix_ms: number;
  text: string;
}

export interface Progress {
  trials_finished: number;
  trials_failed: number;
  trials_planned: number | null;
  elapsed_s: number | null;
  left_s: number | null;
  /** What its process does just now, where it says so. */
  phase: string | null;
  current: { treatment: string; block: number; phase: string } | null;
  decided: { treatment: string; verdict: string }[];
}

export interface SideFigure {
  mean: number;
  low: number | null;
  high: number | null;
  n: number;
}

export interface CompareRow {
  metric: string;
  larger_is_better: boolean;
  a: SideFigure | null;
  b: SideFigure | null;
  ratio: number | null;
  effect: Effect | null;
  why_no_interval: string | null;
  left_out: number;
}

export type Difference = Record<string, unknown>;

export interface ComparePair {
  a: string;
  b: string;
  rows: CompareRow[];
  differs: Difference[];
}

export interface Comparison {
  basis: "blocks" | "trials" | "two-trials";
  confidence: number;
  smallest_effect: number;
  pairs: ComparePair[];
}

/** A change that pgdyno has made and not put back, and how it stands. */
export interface ChangeLine {
  knob: string;
  /** Its file. */
  place: string;
  was: string;
  set_to: string;
  /** Empty where that is not known. */
  now: string;
  /** Why it is not known. */
  why?: string | null;
  /** "in-force", "as-before", "rebooted", "foreign" or "unknown". */
  standing: string;
  until_reboot: boolean;
}

/** What one process has changed, as `pgdyno status --json` prints it. */
export interface Journal {
  number: number;
  purpose: string;
  by: string | null;
  since_unix_ms: number;
  /** Whether that process is still there. */
  alive: boolean;
  /** "until-restored", or an object with the instant; null of what was left by a killed one. */
  kept: unknown;
  changes: ChangeLine[];
}

export interface Target {
  name: string;
  experiments: number[];
  /** null: not known, or not asked while an experiment runs. */
  changed: Journal[] | null;
  facts: Fact[] | null;
  /** The document of `pgdyno advise --json`. */
  advice: unknown;
}

export interface Targets {
  targets: Target[];
  /** Changes of the machine that the server runs on, which concern no PostgreSQL server; null: not known. */
  changed_on_host: Journal[] | null;
}
