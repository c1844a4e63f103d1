import { isKnown } from "../format/number.ts";
import type { Timeline } from "../model.ts";

/** Throughput between two events, where it is known. */
export interface Level {
  from_s: number;
  to_s: number;
  tps: number;
}

export function levels({ seconds, shifts, warmup_s }: Timeline): Level[] {
  const end = seconds.at(-1)?.t_s ?? 0;
  const first = shifts[0];
  const before: Level[] = isKnown(first?.before_tps) ? [{ from_s: warmup_s, to_s: first.t_s, tps: first.before_tps }] : [];
  const after = shifts.flatMap(({ t_s, took_s, after_tps }, place) => (isKnown(after_tps) ? [{ from_s: t_s + took_s, to_s: shifts[place + 1]?.t_s ?? end, tps: after_tps }] : []));
  return [...before, ...after];
}
