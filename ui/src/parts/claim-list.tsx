import type { StudyClaim } from "../model.ts";
import { OutcomeMark } from "./outcome-mark.tsx";

/** Findings beside the chart that shows them. */
export function ClaimList({ claims }: { claims: readonly StudyClaim[] }) {
  if (claims.length === 0) return null;
  return (
    <ul class="remarks chart-claims">
      {claims.map((claim) => (
        <li key={claim.text}>
          <OutcomeMark claim={claim} /> {claim.text}: {claim.sentence}
        </li>
      ))}
    </ul>
  );
}
