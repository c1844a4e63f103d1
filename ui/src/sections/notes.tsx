import { useState } from "preact/hooks";
import { useSource } from "../data/context.ts";
import type { Server } from "../data/source.ts";
import { asTrouble, type Trouble } from "../data/trouble.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { dateTime, isoTime } from "../format/time.ts";
import type { Note } from "../model-serve.ts";
import { Section } from "../parts/section.tsx";
import { Loaded, TroubleBox } from "../parts/state.tsx";

const NOTE_CHARS_MAX = 10_000;
const TAG_CHARS_MAX = 40;
const TAG = /^[A-Za-z0-9._-]{1,40}$/;

interface Known {
  notes: Note[];
  tags: string[];
}

async function known(server: Server, experiment: number): Promise<Known> {
  const [notes, all] = await Promise.all([server.notes(experiment), server.experiments()]);
  return { notes, tags: all.find(({ id }) => id === experiment)?.tags ?? [] };
}

interface Acting {
  /** Does something and loads anew; what goes wrong is shown. */
  act: (what: Promise<void>) => void;
  experiment: number;
  server: Server;
}

function Tags({ tags, act, experiment, server }: Acting & { tags: readonly string[] }) {
  const [word, setWord] = useState("");
  const fits = word === "" || TAG.test(word);
  return (
    <div class="tags-edit">
      <ul class="tags" aria-label="Tags">
        {tags.map((tag) => (
          <li key={tag} class="tag">
            {tag}
            <button type="button" class="button-bare" aria-label={`Remove tag ${tag}`} onClick={() => { act(server.removeTag(experiment, tag)); }}>
              ×
            </button>
          </li>
        ))}
        {tags.length === 0 ? <li class="quiet">no tags</li> : null}
      </ul>
      <form
        class="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (word === "" || !fits) return;
          act(server.addTag(experiment, word));
          setWord("");
        }}
      >
        <input aria-label="New tag" aria-invalid={!fits} maxLength={TAG_CHARS_MAX} placeholder="New tag" value={word} onInput={(event) => { setWord(event.currentTarget.value.trim()); }} />
        <button type="submit" class="button" disabled={word === "" || !fits}>
          Add tag
        </button>
        <span role="status" class="attention">{fits ? "" : "Letters, digits, dot, dash and underscore only."}</span>
      </form>
    </div>
  );
}

function NoteList({ notes, act, experiment, server }: Acting & { notes: readonly Note[] }) {
  const [text, setText] = useState("");
  return (
    <>
      <ol class="notes">
        {notes.map((note) => (
          <li key={note.id} class="note">
            <p class="note-head">
              <time dateTime={isoTime(note.written_unix_ms)}>{dateTime(note.written_unix_ms)}</time>
              <button type="button" class="button-bare" aria-label={`Remove the note of ${dateTime(note.written_unix_ms)}`} onClick={() => { act(server.removeNote(experiment, note.id)); }}>
                ×
              </button>
            </p>
            <p class="note-text">{note.text}</p>
          </li>
        ))}
      </ol>
      <form
        class="note-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === "") return;
          act(server.addNote(experiment, text.trim()));
          setText("");
        }}
      >
        <textarea aria-label="New note" placeholder="What is to be known of this experiment" maxLength={NOTE_CHARS_MAX} rows={3} value={text} onInput={(event) => { setText(event.currentTarget.value); }} />
        <button type="submit" class="button" disabled={text.trim() === ""}>
          Keep note
        </button>
      </form>
    </>
  );
}

function Editor({ server, experiment }: { server: Server; experiment: number }) {
  const [loading, again] = useLoaded(`notes/${String(experiment)}`, () => known(server, experiment));
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const act = (what: Promise<void>) => {
    what.then(
      () => {
        setTrouble(null);
        again();
      },
      (error: unknown) => {
        setTrouble(asTrouble(error));
      },
    );
  };
  return (
    <Loaded loading={loading} again={again} what="notes and tags">
      {({ notes, tags }) => (
        <>
          {trouble === null ? null : <TroubleBox trouble={trouble} again={null} />}
          <Tags tags={tags} act={act} experiment={experiment} server={server} />
          <NoteList notes={notes} act={act} experiment={experiment} server={server} />
        </>
      )}
    </Loaded>
  );
}

/** What people have to say about the experiment; kept by the server. */
export function Notes({ experiment }: { experiment: number }) {
  const { server } = useSource();
  if (server === null) return null;
  return (
    <Section id="notes">
      <Editor server={server} experiment={experiment} />
    </Section>
  );
}
