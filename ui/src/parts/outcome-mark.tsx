import { OUTCOME } from "../analysis/claims.ts";
import type { StudyClaim } from "../model.ts";

/** Whether this host agrees with a finding. */
export function OutcomeMark({ claim }: { claim: StudyClaim }) {
  const { symbol, word, style } = OUTCOME[claim.outcome];
  return (
    <span class={`verdict verdict-${style}`}>
      <span class="verdict-symbol" aria-hidden="true">
        {symbol}
      </span>
      {word}
    </span>
  );
}
