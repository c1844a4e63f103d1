import type { Trouble } from "../data/trouble.ts";

/** A side of which something does not come, under the name that the reader knows it by. */
export interface Lacking {
  title: string;
  trouble: Trouble;
}

/** What is missing of single sides, each with the reason, while the others are shown. `what`
 * precedes the reasons. */
export function SideTroubles({ what, lacking, again }: { what: string; lacking: readonly Lacking[]; again: () => void }) {
  if (lacking.length === 0) return null;
  return (
    <div class="stale" role="status">
      <ul class="lacking">
        {lacking.map(({ title, trouble }) => (
          <li key={title}>
            <strong>{title}: {what}.</strong> {trouble.heading} {trouble.advice} {trouble.passes ? "It is tried again by itself, with growing pauses." : ""}
          </li>
        ))}
      </ul>
      <button type="button" class="button" onClick={again}>
        Try again
      </button>
    </div>
  );
}
