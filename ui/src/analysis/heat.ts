import { isKnown } from "../format/number.ts";
import type { Treatment, Trial } from "../model.ts";
import type { Heat } from "../model-trial.ts";

const STRETCHES = 120;
const LEVELS = 28;

/** Edges with the same ratio from one to the next, from the least to the most. */
export function logEdges(least: number, most: number, levels: number): number[] {
  const ratio = Math.max(1.02, (most / least) ** (1 / levels));
  return Array.from({ length: levels + 1 }, (_, level) => least * ratio ** level);
}

/** How many seconds of all trials had their p95 where, over the time since the load began; null where too few are known. */
export function secondsHeat(trials: readonly Trial[]): Heat | null {
  const points = trials.flatMap(({ series }) =>
    series.t_s.flatMap((t_s, place) => {
      const ms = series.p95_ms[place];
      return isKnown(t_s) && isKnown(ms) && ms > 0 ? [{ t_s, ms }] : [];
    }),
  );
  if (points.length < 20) return null;
  let [least, most, last] = [Infinity, 0, 0];
  for (const { t_s, ms } of points) {
    least = Math.min(least, ms);
    most = Math.max(most, ms);
    last = Math.max(last, t_s);
  }
  const spacing = Math.max(1, ...trials.map(({ series }) => series.bucket_s ?? 1));
  const stretches = Math.max(1, Math.min(STRETCHES, Math.ceil(last / spacing)));
  const width = last / stretches;
  const edges_ms = logEdges(least, most, LEVELS);
  const step = Math.log((edges_ms[1] ?? 2) / (edges_ms[0] ?? 1));
  const counts = Array.from({ length: stretches }, () => new Array<number>(LEVELS).fill(0));
  for (const { t_s, ms } of points) {
    const column = counts[Math.min(stretches - 1, Math.max(0, Math.ceil(t_s / width) - 1))];
    const level = Math.min(LEVELS - 1, Math.floor(Math.log(ms / least) / step));
    if (column !== undefined) column[level] = (column[level] ?? 0) + 1;
  }
  return { t_s: counts.map((_, place) => (place + 1) * width), edges_ms, counts };
}

/** Of a treatment: of its transactions where they were counted, else of the seconds of its trials; null where neither is known. */
export function treatmentHeat(treatment: Treatment, trials: readonly Trial[]): { of: "transactions" | "seconds"; heat: Heat } | null {
  const counted = treatment.latency_heat ?? null;
  if (counted !== null) return { of: "transactions", heat: counted };
  const heat = secondsHeat(trials.filter((trial) => trial.treatment === treatment.name && trial.status === "finished"));
  return heat === null ? null : { of: "seconds", heat };
}
