import { useState } from "preact/hooks";
import type { Acting } from "./acting.ts";
import { UndoLine } from "./undo-line.tsx";

const TAG_CHARS_MAX = 40;
const TAG = /^[A-Za-z0-9._-]{1,40}$/;

const keyOf = (tag: string) => `tag ${tag}`;

export function Tags({ tags, act, busy, removals, experiment, server }: Acting & { tags: readonly string[] }) {
  const [word, setWord] = useState("");
  const fits = word === "" || TAG.test(word);
  const shown = tags.filter((tag) => !removals.hidden.has(keyOf(tag)));
  const add = async () => {
    if (word === "" || !fits) return;
    // Whoever adds what was just taken away wants it back.
    removals.undo(keyOf(word));
    if (await act(server.addTag(experiment, word))) setWord((now) => (now === word ? "" : now));
  };
  return (
    <div class="tags-edit">
      <ul class="tags" aria-label="Tags">
        {shown.map((tag) => (
          <li key={tag} class="tag">
            {tag}
            <button
              type="button"
              class="button-bare"
              aria-label={`Remove tag ${tag}`}
              onClick={() => { removals.remove({ key: keyOf(tag), kind: "tag", text: `Tag ${tag}` }, () => server.removeTag(experiment, tag)); }}
            >
              ×
            </button>
          </li>
        ))}
        {shown.length === 0 ? <li class="quiet">no tags</li> : null}
      </ul>
      <UndoLine removals={removals} kind="tag" />
      <form
        class="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <input aria-label="New tag" aria-invalid={!fits} maxLength={TAG_CHARS_MAX} placeholder="New tag" value={word} onInput={(event) => { setWord(event.currentTarget.value.trim()); }} />
        <button type="submit" class="button" disabled={busy || word === "" || !fits}>
          Add tag
        </button>
        <span role="status" class="attention">{fits ? "" : "Letters, digits, dot, dash and underscore only."}</span>
      </form>
    </div>
  );
}
