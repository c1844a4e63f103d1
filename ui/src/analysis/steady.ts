/** What of a trial was measured before its throughput was steady. */

import { isKnown } from "../format/number.ts";

/** A stretch of time in seconds since the load began. */
export interface Stretch {
  from_s: number;
  to_s: number;
}

interface Judged {
  warmup_s: number;
  measured_s: number;
  unsettled_s?: number | null;
}

/** From the end of the warm-up to where the trial's throughput became steady; null where it was
 * steady at once, or that is unknown. */
export function unsettledStretch({ warmup_s, measured_s, unsettled_s }: Judged): Stretch | null {
  if (!isKnown(unsettled_s) || unsettled_s <= 0) return null;
  return { from_s: warmup_s, to_s: warmup_s + Math.min(unsettled_s, measured_s) };
}

export function unsettledStretches(trials: readonly Judged[]): Stretch[] {
  return trials.map(unsettledStretch).filter((stretch) => stretch !== null);
}

/** What a stretch of seconds was, for a row of a table over several trials; null where all of it
 * was steady in all of them. */
export function wordOf(from_s: number, warmup_s: number, unsettled: readonly Stretch[]): string | null {
  if (from_s < warmup_s) return "warm-up";
  return unsettled.some((stretch) => from_s >= stretch.from_s && from_s < stretch.to_s) ? "not steady yet" : null;
}
