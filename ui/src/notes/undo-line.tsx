import type { Removal, Removals } from "./use-removals.ts";

/** What was taken away a moment ago, each with the way back. */
export function UndoLine({ removals, kind }: { removals: Removals; kind: Removal["kind"] }) {
  return (
    <div role="status">
      {removals.offered
        .filter((removal) => removal.kind === kind)
        .map(({ key, text }) => (
          <p key={key} class="undo">
            {text} was removed.
            <button type="button" class="button" aria-label={`Undo: restore ${text}`} onClick={() => { removals.undo(key); }}>
              Undo
            </button>
          </p>
        ))}
    </div>
  );
}
