import { isKnown } from "../format/number.ts";
import type { Fact, Treatment } from "../model.ts";
import type { Mark } from "../model-trial.ts";

/** Something that each transaction costs. */
export interface Cost {
  name: string;
  title: string;
  unit: string;
  of: (treatment: Treatment) => number | null;
  /** The largest of all treatments; 0 where nothing was measured. */
  most: number;
}

/** Costs that pgdyno knows, those first that say most; and whose gap tells why one is missing, as the beginning of its source, if any does. */
const KNOWN: readonly [name: string, title: string, unit: string, source: string | null][] = [
  ["server_cpu_us_per_tx", "Server CPU", "µs", null],
  ["client_cpu_us_per_tx", "Client CPU", "µs", null],
  ["wal_bytes_per_tx", "WAL", "bytes", "pg_stat_wal"],
  ["disk_read_bytes_per_tx", "Read from disk", "bytes", "/proc/diskstats"],
  ["disk_write_bytes_per_tx", "Written to disk", "bytes", "/proc/diskstats"],
  ["energy_j_per_tx", "Energy", "J", "/sys/class/powercap"],
  ["page_faults", "Page faults", "", "perf"],
  ["dtlb_load_misses", "TLB misses, loads", "", "perf"],
  ["dtlb_store_misses", "TLB misses, stores", "", "perf"],
  ["dtlb_load_walk_cycles", "TLB walks, loads", "cycles", "perf"],
  ["dtlb_store_walk_cycles", "TLB walks, stores", "cycles", "perf"],
  ["llc_load_misses", "Cache misses", "", "perf"],
  ["context_switches", "Context switches", "", "perf"],
  ["migrations", "Moves between CPUs", "", "perf"],
  ["cycles", "Cycles", "", "perf"],
  ["instructions", "Instructions", "", "perf"],
  ["dtlb_loads", "TLB look-ups, loads", "", "perf"],
  ["dtlb_stores", "TLB look-ups, stores", "", "perf"],
  ["llc_loads", "Cache look-ups", "", "perf"],
];

/** More columns than these nobody compares at first sight; the others are a button away. */
export const COSTS_FIRST = 8;

function of(name: string): (treatment: Treatment) => number | null {
  return (treatment) => {
    if (name === "server_cpu_us_per_tx" || name === "client_cpu_us_per_tx" || name === "wal_bytes_per_tx") return treatment[name];
    const figures = treatment.figures ?? {};
    return figures[name] ?? figures[`${name}_per_tx`] ?? null;
  };
}

function all(treatments: readonly Treatment[]): (Cost & { known: boolean })[] {
  return KNOWN.map(([name, title, unit]) => {
    const value = of(name);
    const values = treatments.map(value).filter(isKnown);
    return { name, title, unit, of: value, most: Math.max(0, ...values), known: values.length > 0 };
  });
}

/** The costs that at least one treatment has a value of. */
export function costs(treatments: readonly Treatment[]): Cost[] {
  return all(treatments).filter(({ known }) => known);
}

/** The costs that no treatment has a value of. */
export function unmeasured(treatments: readonly Treatment[]): Cost[] {
  return all(treatments).filter(({ known }) => !known);
}

/** What facts tell of a missing cost: the machine's power meters. */
function byFacts(name: string, facts: readonly Fact[]): string | null {
  if (name !== "energy_j_per_tx") return null;
  return facts.find((fact) => fact.name === "cpu.power_zones")?.missing ?? null;
}

/** Why a cost was not measured, by the facts and by what a trial lacked; null where neither tells. */
export function whyUnmeasured({ name }: Cost, facts: readonly Fact[], marks: readonly Mark[]): string | null {
  const source = KNOWN.find(([known]) => known === name)?.[3] ?? null;
  const gaps = marks.flatMap(({ kind, text }) => {
    const [from, ...reason] = text.split(": ");
    return kind === "gap" && from !== undefined && reason.length > 0 ? [{ from, reason: reason.join(": ") }] : [];
  });
  const walks = name.endsWith("_walk_cycles");
  // Its own before that of all counters.
  const own = gaps.find(({ from }) => from === `perf.${name}` || (walks && from === "perf.dtlb_*_walk_cycles"));
  const general = source === null ? undefined : gaps.find(({ from }) => (source === "perf" ? from === "perf" || from.startsWith("perf, ") : from.startsWith(source)));
  return own?.reason ?? general?.reason ?? byFacts(name, facts);
}
