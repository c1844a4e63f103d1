import { change, changeBounds } from "../format/number.ts";
import type { Comparison } from "../model.ts";
import { figureTitle } from "./side.ts";

export const BASIS: Record<Comparison["basis"], string> = {
  blocks: "Treatments of one experiment, compared within its blocks: drift of the machine cancels.",
  trials: "The two did not run in blocks: what drifted between them is not cancelled, and is part of the ratio.",
  "two-trials": "Single trials: the interval is made of their seconds, and trials of one and the same treatment usually differ by more.",
};

/** The answer first: what the first figure of the first pair says of a side. */
export function answerOf(letter: string, { pairs }: Comparison): string {
  const row = pairs[0]?.rows[0];
  if (row === undefined) return `${letter}: no figure in common with A.`;
  const { title } = figureTitle(row.metric);
  const { effect } = row;
  const of = pairs.length > 1 ? `${pairs[0]?.b ?? letter}: ` : "";
  if (effect === null) return row.ratio === null ? `${of}${letter}: ${title.toLowerCase()} is not known on both sides.` : `${of}${letter}: ${title.toLowerCase()} ${change(row.ratio)}, without an interval.`;
  const interval = `${change(effect.ratio)} (${changeBounds(effect.ratio_low, effect.ratio_high)})`;
  switch (effect.verdict) {
    case "better":
      return `${of}${letter} is better: ${title.toLowerCase()} ${interval}.`;
    case "worse":
      return `${of}${letter} is worse: ${title.toLowerCase()} ${interval}.`;
    case "same":
      return `${of}${letter}: no difference that matters: ${title.toLowerCase()} ${interval}.`;
    case "no-gain":
      return `${of}${letter}: no gain that matters: ${title.toLowerCase()} ${interval}.`;
    case "undecided":
      return `${of}${letter}: undecided: ${title.toLowerCase()} ${interval}.`;
  }
}
