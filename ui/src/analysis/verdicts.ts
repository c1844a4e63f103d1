import { change, changeBounds, roundShare } from "../format/number.ts";
import type { Decision, Effect, Verdict } from "../model.ts";

/** Symbol and word say what the colour says, for readers and printers without colour. */
export const VERDICT_SYMBOL: Record<Verdict, string> = { better: "▲", worse: "▼", same: "=", "no-gain": "≤", undecided: "?" };

export const VERDICT_WORD: Record<Verdict, string> = { better: "better", worse: "worse", same: "same", "no-gain": "no gain", undecided: "undecided" };

export const VERDICT_ORDER: readonly Verdict[] = ["better", "worse", "same", "no-gain", "undecided"];

/** "+17.2 % (+14.1 … +20.4)" */
export function effectWithInterval(effect: Effect): string {
  return `${change(effect.ratio)} (${changeBounds(effect.ratio_low, effect.ratio_high)})`;
}

/** What the interval means; for the undecided what is missing. */
export function intervalSentence(effect: Effect, decision: Decision): string {
  const interval = changeBounds(effect.ratio_low, effect.ratio_high);
  switch (effect.verdict) {
    case "better":
    case "worse":
      return interval;
    case "same":
      return `${interval}, within ±${roundShare(decision.smallest_effect)}`;
    case "no-gain":
      return `${interval}; a gain of ${roundShare(decision.smallest_effect)} is improbable`;
    case "undecided":
      return `the interval ${interval}\u202f% is too wide; more blocks would decide`;
  }
}

/** Response times have "better" downwards, which readers get wrong; "quicker" they do not. */
export function quicknessWord(effect: Effect): string {
  if (effect.verdict !== "better" && effect.verdict !== "worse") return VERDICT_WORD[effect.verdict];
  return effect.ratio < 1 ? "quicker" : "slower";
}

/** How many steps got each verdict, in a fixed order, without verdicts that none got. */
export function verdictCounts(effects: readonly (Effect | null)[]): { verdict: Verdict; steps: number }[] {
  return VERDICT_ORDER.map((verdict) => ({
    verdict,
    steps: effects.filter((effect) => effect?.verdict === verdict).length,
  })).filter((entry) => entry.steps > 0);
}
