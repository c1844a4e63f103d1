import { isKnown } from "../format/number.ts";
import { METRICS, type Metric } from "../generated/metrics.ts";
import type { Fact, Mark, Treatment } from "../model.ts";

/** Something that each transaction costs. */
export interface Cost {
  name: string;
  title: string;
  unit: string;
  of: (treatment: Treatment) => number | null;
  /** The largest of all treatments; 0 where nothing was measured. */
  most: number;
}

const COSTS: readonly Metric[] = METRICS.filter(({ is_cost }) => is_cost);

/** More columns than these nobody compares at first sight; the others are a button away. */
export const COSTS_FIRST = 8;

function all(treatments: readonly Treatment[]): (Cost & { known: boolean })[] {
  return COSTS.map(({ id: name, heading: title, unit }) => {
    const value = (treatment: Treatment): number | null => treatment.figures?.[name] ?? null;
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

/** What facts say of a missing cost: the machine's power meters. */
function byFacts(name: string, facts: readonly Fact[]): string | null {
  if (name !== "energy_j_per_tx") return null;
  return facts.find((fact) => fact.name === "cpu.power_zones")?.missing ?? null;
}

/** Why a cost was not measured, by the facts and by what a trial lacked; null where neither says
 * so. */
export function whyUnmeasured({ name }: Cost, facts: readonly Fact[], marks: readonly Mark[]): string | null {
  const source = COSTS.find(({ id }) => id === name)?.source ?? "";
  const gaps = marks.flatMap(({ kind, text }) => {
    const [from, ...reason] = text.split(": ");
    return kind === "gap" && from !== undefined && reason.length > 0 ? [{ from, reason: reason.join(": ") }] : [];
  });
  const walks = name.endsWith("_walk_cycles");
  // Its own before that of all counters.
  const own = gaps.find(({ from }) => from === `perf.${name}` || (walks && from === "perf.dtlb_*_walk_cycles"));
  const general = source === "" ? undefined : gaps.find(({ from }) => (source === "perf" ? from === "perf" || from.startsWith("perf, ") : from.startsWith(source)));
  return own?.reason ?? general?.reason ?? byFacts(name, facts);
}
