import { VERDICT_SYMBOL, VERDICT_WORD } from "../analysis/verdicts.ts";
import type { Verdict } from "../model.ts";

/** Symbol and word together; the colour only repeats them. */
export function VerdictMark({ verdict, word }: { verdict: Verdict; word?: string }) {
  return (
    <span class={`verdict verdict-${verdict}`}>
      <span class="verdict-symbol" aria-hidden="true">
        {VERDICT_SYMBOL[verdict]}
      </span>
      {word ?? VERDICT_WORD[verdict]}
    </span>
  );
}
