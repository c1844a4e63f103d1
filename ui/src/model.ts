/** What the page reads: the types that are serialised (src/generated), and what is of the page
 * alone. */

import type { CapacityDocument, Experiment, JsonValue, StudyClaim, TrialColumn } from "./generated/model.ts";

export type * from "./generated/model.ts";

export const FORMAT = "pgdyno-report/1";
export const TRIAL_FORMAT = "pgdyno-trial/1";
export const CAPACITY_FORMAT = "pgdyno-capacity/1";

export type Design = Experiment["design"];
export type FactValue = JsonValue;
export type Layer = TrialColumn["layer"];
export type Outcome = StudyClaim["outcome"];

/** What is asked; null where nothing is said. */
export interface CapacityQuestion extends Pick<CapacityDocument, "tps" | "cpus" | "p99_ms"> {
  price: { per: "cpu" | "host"; an_hour: number } | null;
}
