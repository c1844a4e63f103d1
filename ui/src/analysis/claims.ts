import { change } from "../format/number.ts";
import type { Outcome, StudyClaim } from "../model.ts";

/** Symbol and word say what the colour says, for readers and printers without colour. */
export const OUTCOME: Record<Outcome, { symbol: string; word: string; style: string }> = {
  agrees: { symbol: "✓", word: "agrees", style: "better" },
  disagrees: { symbol: "✗", word: "disagrees", style: "worse" },
  undecided: { symbol: "?", word: "not decided", style: "undecided" },
  "not-tested": { symbol: "–", word: "not tested", style: "same" },
};

/** More pairs than this are counted, not named. */
const PAIRS_NAMED = 2;

export function studyFigure({ study_ratio, found }: StudyClaim): string {
  if (study_ratio !== null) return change(study_ratio);
  if (found === "not-worse") return "no loss that matters";
  return found === "same" ? "no difference that matters" : found;
}

/** What a finding was tested on, by title. */
export function testedOn({ treatments, against }: StudyClaim, titles: ReadonlyMap<string, string>): string[] {
  if (treatments.length > PAIRS_NAMED) return [`${String(treatments.length)} pairs of treatments`];
  const title = (name: string | undefined) => (name === undefined ? "" : (titles.get(name) ?? name));
  return treatments.map((treatment, place) => `${title(treatment)} against ${title(against[place])}`);
}
