import { isKnown } from "../format/number.ts";
import type { Treatment } from "../model.ts";

/** Something that each transaction costs. */
export interface Cost {
  name: string;
  title: string;
  unit: string;
  of: (treatment: Treatment) => number | null;
  /** The largest of all treatments. */
  most: number;
}

const KNOWN: readonly [name: string, title: string, unit: string][] = [
  ["server_cpu_us_per_tx", "Server CPU", "µs"],
  ["client_cpu_us_per_tx", "Client CPU", "µs"],
  ["wal_bytes_per_tx", "WAL", "bytes"],
  ["disk_read_bytes_per_tx", "Read from disk", "bytes"],
  ["disk_write_bytes_per_tx", "Written to disk", "bytes"],
  ["energy_j_per_tx", "Energy", "J"],
  ["page_faults", "Page faults", ""],
  ["dtlb_load_misses", "TLB misses, loads", ""],
  ["dtlb_store_misses", "TLB misses, stores", ""],
  ["llc_load_misses", "Cache misses", ""],
  ["context_switches", "Context switches", ""],
  ["cycles", "Cycles", ""],
  ["instructions", "Instructions", ""],
];

/** More columns than these nobody compares. */
const COSTS_MAX = 8;

function of(name: string): (treatment: Treatment) => number | null {
  return (treatment) => {
    if (name === "server_cpu_us_per_tx" || name === "client_cpu_us_per_tx" || name === "wal_bytes_per_tx") return treatment[name];
    const figures = treatment.figures ?? {};
    return figures[name] ?? figures[`${name}_per_tx`] ?? null;
  };
}

/** The costs that at least one treatment has a value of. */
export function costs(treatments: readonly Treatment[]): Cost[] {
  const all = KNOWN.map(([name, title, unit]) => {
    const value = of(name);
    const values = treatments.map(value).filter(isKnown);
    return { name, title, unit, of: value, most: Math.max(0, ...values), known: values.length > 0 };
  });
  return all.filter(({ known }) => known).slice(0, COSTS_MAX);
}
