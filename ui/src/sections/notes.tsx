import { useEffect, useState } from "preact/hooks";
import { useSource } from "../data/context.ts";
import type { Server } from "../data/source.ts";
import { asTrouble, type Trouble } from "../data/trouble.ts";
import { useLoaded } from "../data/use-loaded.ts";
import type { Note } from "../model.ts";
import type { Acting } from "../notes/acting.ts";
import { NoteList } from "../notes/note-list.tsx";
import { Tags } from "../notes/tags.tsx";
import { useRemovals } from "../notes/use-removals.ts";
import { Section } from "../parts/section.tsx";
import { Loaded, TroubleBox } from "../parts/state.tsx";

interface Known {
  notes: Note[];
  tags: string[];
}

async function known(server: Server, experiment: number): Promise<Known> {
  const [notes, tags] = await Promise.all([server.notes(experiment), server.tags(experiment)]);
  return { notes, tags };
}

function Editor({ server, experiment }: { server: Server; experiment: number }) {
  const [loading, again] = useLoaded(`notes/${String(experiment)}`, () => known(server, experiment));
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [busy, setBusy] = useState(false);
  const fail = (error: unknown) => {
    setTrouble(asTrouble(error));
  };
  const removals = useRemovals(again, fail);
  const value = loading.state === "here" ? loading.value : null;
  useEffect(removals.settle, [value]);
  const act: Acting["act"] = async (what) => {
    setBusy(true);
    try {
      await what;
      setTrouble(null);
      again();
      return true;
    } catch (error) {
      fail(error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const acting = { act, busy, removals, experiment, server };
  return (
    <Loaded loading={loading} again={again} what="notes and tags">
      {({ notes, tags }) => (
        <>
          {trouble === null ? null : <TroubleBox trouble={trouble} again={null} />}
          <Tags tags={tags} {...acting} />
          <NoteList notes={notes} {...acting} />
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
