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

/** The index of a store. */
export interface List {
  experiments: Listed[];
  /** Whether all answers and plans that can be known are there; the others come with a later request. */
  is_whole: boolean;
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

/** A change that pgdyno has made and not restored, and how it stands. */
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
  /** null: not known, and why. */
  changed: Journal[] | null;
  why_not_known: string | null;
  facts: Fact[] | null;
  /** The document of `pgdyno advise --json`. */
  advice: unknown;
  /** It is not made yet, and comes with a later request. */
  is_advice_due: boolean;
}

export interface Targets {
  targets: Target[];
  /** All that is changed by a pgdyno of the machine that the server runs on; null: not known, and why. */
  changed_on_host: Journal[] | null;
  why_not_known: string | null;
  /** Whether servers were asked how their own settings stand. */
  servers_asked: boolean;
}
