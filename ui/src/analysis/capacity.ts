import { isKnown } from "../format/number.ts";
import type { CapacityDocument, CapacityQuestion, CapacityRow, Estimate } from "../model.ts";

const SECONDS_PER_HOUR = 3600;

const MODELS: Record<NonNullable<CapacityRow["model"]>, string> = { usl: "scalability law", "power-law": "power law", "two-levels": "two points" };

export function modelInWords(model: CapacityRow["model"]): string {
  return model === null ? "none" : MODELS[model];
}

/** Levels of the other factors; "all" where there are none. */
export function rowName({ of }: CapacityRow): string {
  return of.length === 0 ? "all" : of.map(([, level]) => level).join(", ");
}

/** The bounds of the CPUs where there is no number of them; null where there is one, or not even
 * that. */
export function boundsAlone({ found }: CapacityRow): Pick<Estimate, "low" | "high"> | null {
  return found.kind === "beyond" && isKnown(found.cpus_low) ? { low: found.cpus_low, high: found.cpus_high } : null;
}

/** "4.34 … 11.2", or "4.34 and up, no upper bound". */
export function estimateBounds({ low, high }: Pick<Estimate, "low" | "high">, figure: (value: number) => string): string {
  return isKnown(high) ? `${figure(low)} … ${figure(high)}` : `${figure(low)} and up, no upper bound`;
}

/** Lowest and highest measured p99 of the numbers of clients that did best; null where none is
 * known. */
export function measuredP99({ measured }: CapacityRow): [number, number] | null {
  const known = measured.map(({ p99_ms }) => p99_ms).filter(isKnown);
  return known.length === 0 ? null : [Math.min(...known), Math.max(...known)];
}

/** A million transactions at the wanted rate: the price of an hour over those of an hour. The
 * same sum as in pgdyno-stats, for report files, where the CPUs are worked out already and only
 * a price comes to them. */
export function costPerMillion({ found }: CapacityRow, tps_wanted: number, price: CapacityQuestion["price"]): Estimate | null {
  if (found.kind !== "needs" || price === null || !(tps_wanted > 0) || !(price.an_hour > 0)) return null;
  const at = (cpus: number) => ((price.per === "cpu" ? price.an_hour * cpus : price.an_hour) / (tps_wanted * SECONDS_PER_HOUR)) * 1e6;
  const { value, low, high } = found.cpus;
  return { value: at(value), low: at(low), high: isKnown(high) ? at(high) : null };
}

/** The command that answers the same. */
export function capacityCommand(experiment: number, { tps: wanted, cpus, p99_ms, price }: CapacityQuestion): string {
  const given = cpus === null ? "" : ` --cpus ${String(cpus)}`;
  const limit = p99_ms === null ? "" : ` --p99 ${String(p99_ms)}ms`;
  const cost = price === null ? "" : ` --price-per-${price.per}-hour ${String(price.an_hour)}`;
  return `pgdyno capacity ${String(experiment)} --tps ${String(wanted)}${given}${limit}${cost}`;
}

/** Parts of the address by which a server is asked. */
export function capacityQuery({ tps: wanted, cpus, p99_ms, price }: CapacityQuestion): string {
  const asked = new URLSearchParams({ tps: String(wanted) });
  if (cpus !== null) asked.set("cpus", String(cpus));
  if (p99_ms !== null) asked.set("p99_ms", String(p99_ms));
  if (price !== null) asked.set(`price_per_${price.per}_hour`, String(price.an_hour));
  return asked.toString();
}

/** The stored answer to a question without CPUs, limit and price, which a report file has for
 * some throughputs. */
export function storedAnswer(documents: readonly CapacityDocument[], { tps: wanted, cpus, p99_ms, price }: CapacityQuestion): CapacityDocument | null {
  if (cpus !== null || p99_ms !== null || price !== null) return null;
  return documents.find((document) => document.tps === wanted && document.p99_ms === null) ?? null;
}

/** A number above 0 that somebody has typed; null of anything else. */
export function typedNumber(text: string): number | null {
  const number = Number(text.trim().replace(",", "."));
  return text.trim() !== "" && isKnown(number) && number > 0 ? number : null;
}
