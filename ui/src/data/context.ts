import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Source } from "./source.ts";

export const SourceContext = createContext<Source | null>(null);

/** Where the page has its data from. */
export function useSource(): Source {
  const source = useContext(SourceContext);
  if (source === null) throw new Error("there is no source of data");
  return source;
}
