import { useState } from "preact/hooks";
import { dateTime, isoTime } from "../format/time.ts";
import type { Note } from "../model.ts";
import type { Acting } from "./acting.ts";
import { UndoLine } from "./undo-line.tsx";

const NOTE_CHARS_MAX = 10_000;

const keyOf = ({ id }: Note) => `note ${String(id)}`;

export function NoteList({ notes, act, busy, removals, experiment, server }: Acting & { notes: readonly Note[] }) {
  const [text, setText] = useState("");
  const keep = async () => {
    const wanted = text.trim();
    if (wanted === "") return;
    // What was typed stays until the server has it, and what is typed meanwhile stays too.
    if (await act(server.addNote(experiment, wanted))) setText((now) => (now === text ? "" : now));
  };
  return (
    <>
      <ol class="notes">
        {notes.filter((note) => !removals.hidden.has(keyOf(note))).map((note) => (
          <li key={note.id} class="note">
            <p class="note-head">
              <time dateTime={isoTime(note.written_unix_ms)}>{dateTime(note.written_unix_ms)}</time>
              <button
                type="button"
                class="button-bare"
                aria-label={`Remove the note of ${dateTime(note.written_unix_ms)}`}
                onClick={() => {
                  removals.remove({ key: keyOf(note), kind: "note", text: `The note of ${dateTime(note.written_unix_ms)}` }, () => server.removeNote(experiment, note.id));
                }}
              >
                ×
              </button>
            </p>
            <p class="note-text">{note.text}</p>
          </li>
        ))}
      </ol>
      <UndoLine removals={removals} kind="note" />
      <form
        class="note-form"
        onSubmit={(event) => {
          event.preventDefault();
          void keep();
        }}
      >
        <textarea aria-label="New note" placeholder="What is to be known of this experiment" maxLength={NOTE_CHARS_MAX} rows={3} value={text} onInput={(event) => { setText(event.currentTarget.value); }} />
        <button type="submit" class="button" disabled={busy || text.trim() === ""}>
          Keep note
        </button>
      </form>
    </>
  );
}
