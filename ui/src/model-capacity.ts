/** What throughputs take: the document of `pgdyno capacity --json` (docs/how-to/capacity.md). */

export const CAPACITY_FORMAT = "pgdyno-capacity/1";

/** high is null where there is no upper bound. */
export interface Estimate {
  value: number;
  low: number;
  high: number | null;
}

/** The best that a number of CPUs did. */
export interface Measured {
  cpus: number;
  clients: number;
  tps: number;
  p99_ms: number | null;
  trials: number;
}

export type Found =
  | { kind: "needs"; cpus: Estimate; connections: Estimate; extrapolates: number; cost_per_million: Estimate | null }
  | { kind: "unreachable"; peak_tps: number | null; cpus_low: number | null }
  | { kind: "zone"; peak_tps: number; peak_clients: number; lowest_clients: number; highest_clients: number; open: boolean; reaches: boolean }
  | { kind: "no"; why: string };

/** The answer for one combination of the factors that are neither CPUs nor clients. */
export interface CapacityRow {
  of: [factor: string, level: string][];
  model: "usl" | "power-law" | "two-levels" | null;
  measured: Measured[];
  found: Found;
  notes: string[];
}

export interface CapacityDocument {
  format: string;
  tps: number;
  p99_ms: number | null;
  price_per_cpu_hour: number | null;
  price_per_host_hour: number | null;
  answer: {
    experiment: number;
    name: string;
    /** Empty where CPUs were not varied. */
    cpu_factors: string[];
    client_factors: string[];
    confidence: number;
    rows: CapacityRow[];
  };
}

/** What is asked; null where nothing is said. */
export interface CapacityQuestion {
  tps: number;
  p99_ms: number | null;
  price: { per: "cpu" | "host"; an_hour: number } | null;
}
