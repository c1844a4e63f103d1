import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSource } from "../data/context.ts";
import type { Trouble } from "../data/trouble.ts";
import { useEach } from "../data/use-each.ts";
import { wordsOf, type FoundByWord } from "./filter.ts";

/** Who types is waited for. */
const TYPING_MS = 300;
/** Each is a request of its own. Further words are looked for in what the table shows. */
const WORDS_MAX = 6;

/** What is found in notes, what is the matter, and whether more may be found yet. */
export interface InNotes {
  found: FoundByWord;
  trouble: Trouble | null;
  isPending: boolean;
}

/** What of the search the server has to do, for the page does not have the notes' texts: each
 * word, once typing pauses, and again with each list that the server has sent, at
 * `received_unix_ms`. */
export function useNotesSearch(text: string, received_unix_ms: number): InNotes {
  const { server } = useSource();
  const [words, setWords] = useState<readonly string[]>([]);
  useEffect(() => {
    const timer = window.setTimeout(() => {
      setWords([...new Set(wordsOf(text))].slice(0, WORDS_MAX));
    }, TYPING_MS);
    return () => {
      window.clearTimeout(timer);
    };
  }, [text]);
  const keyOf = (word: string) => `${String(received_unix_ms)} ${word}`;
  const [{ values, troubles }] = useEach(words.map((word) => ({ key: keyOf(word), load: async () => new Set((await (server?.experiments(word) ?? Promise.resolve([]))).map(({ id }) => id)) })));
  /** Of the list before, until the answer for this one is here. */
  const last = useRef<FoundByWord>(new Map());
  const found = useMemo(() => {
    const entries = words.flatMap((word): [string, ReadonlySet<number>][] => {
      const ids = values.get(keyOf(word)) ?? last.current.get(word);
      return ids === undefined ? [] : [[word, ids]];
    });
    last.current = new Map(entries);
    return last.current;
  }, [words, values, received_unix_ms]);
  const isPending = wordsOf(text).slice(0, WORDS_MAX).some((word) => !found.has(word) && !troubles.has(keyOf(word)));
  return { found, trouble: [...troubles.values()][0] ?? null, isPending };
}
