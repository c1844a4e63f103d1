import { useEffect, useState } from "preact/hooks";
import { useSource } from "../data/context.ts";
import type { Trouble } from "../data/trouble.ts";
import { useEach } from "../data/use-each.ts";
import { wordsOf, type FoundByWord } from "./filter.ts";

/** Who types is waited for. */
const TYPING_MS = 300;
/** Each is a request of its own. Further words are looked for in what the table shows. */
const WORDS_MAX = 6;

/** What of the search the server has to do, for the page does not have the notes' texts: each word, once typing pauses. */
export function useNotesSearch(text: string): [found: FoundByWord, trouble: Trouble | null] {
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
  const [{ values, troubles }] = useEach(words.map((word) => ({ key: word, load: async () => new Set((await (server?.experiments(word) ?? Promise.resolve([]))).map(({ id }) => id)) })));
  return [values, [...troubles.values()][0] ?? null];
}
