import { useEffect, useState } from "preact/hooks";

/** What the fragment of the address asks for. In a report file `experiment` is null: there is
 * only the one. */
export type Route =
  | { view: "index"; query: string }
  | { view: "experiment"; experiment: number | null; section: string | null }
  | { view: "trial"; experiment: number | null; trial: number }
  | { view: "compare"; sides: string[] }
  | { view: "target"; name: string | null }
  | { view: "live" }
  | { view: "unknown"; asked: string };

/** Sides of a comparison, the first of which the others are compared with. More lines cannot be
 * distinguished. */
export const LETTERS = ["A", "B", "C", "D", "E", "F", "G", "H"] as const;

export type Mode = "file" | "serve";

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function number(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Reads a fragment. Plain anchors are sections of the experiment, as they have always been in
 * report files. */
export function parseRoute(hash: string, mode: Mode): Route {
  const unknown: Route = { view: "unknown", asked: decoded(hash) };
  const first: Route = mode === "serve" ? { view: "index", query: "" } : { view: "experiment", experiment: null, section: null };
  if (!hash.startsWith("#/")) {
    if (mode === "serve") return first;
    return { view: "experiment", experiment: null, section: hash === "" ? null : decoded(hash.slice(1)) };
  }
  const mark = hash.indexOf("?");
  const [path, query] = mark < 0 ? [hash.slice(2), ""] : [hash.slice(2, mark), hash.slice(mark + 1)];
  const parts = path.split("/").filter((part) => part !== "");
  const [head, second, third, fourth] = parts;
  if (head === undefined) return first.view === "index" ? { view: "index", query } : first;
  if (head === "compare") {
    const asked = new URLSearchParams(query);
    const named = LETTERS.map((letter) => asked.get(letter.toLowerCase()) ?? "");
    return { view: "compare", sides: named.slice(0, Math.max(2, named.findLastIndex((side) => side !== "") + 1)) };
  }
  if (mode === "file") {
    const trial = number(second);
    return head === "trials" && trial !== null ? { view: "trial", experiment: null, trial } : unknown;
  }
  if (head === "live") return { view: "live" };
  if (head === "targets") return { view: "target", name: second === undefined ? null : decoded(second) };
  const experiment = number(second);
  if (head !== "experiments" || experiment === null) return unknown;
  if (third === undefined) return { view: "experiment", experiment, section: null };
  const trial = number(fourth);
  return third === "trials" && trial !== null ? { view: "trial", experiment, trial } : unknown;
}

/** Addresses of views, each as the fragment that parseRoute reads. */
export const addressOf = {
  index: (query: string) => (query === "" ? "#/" : `#/?${query}`),
  experiment: (mode: Mode, id: number) => (mode === "file" ? "#/" : `#/experiments/${String(id)}`),
  trial: (mode: Mode, id: number, trial: number) => (mode === "file" ? `#/trials/${String(trial)}` : `#/experiments/${String(id)}/trials/${String(trial)}`),
  compare: (sides: readonly string[]) => `#/compare?${new URLSearchParams(LETTERS.slice(0, sides.length).map((letter, place) => [letter.toLowerCase(), sides[place] ?? ""])).toString()}`,
  target: (name: string) => `#/targets/${encodeURIComponent(name)}`,
} as const;

/** Changes the address of the view that is shown; the reader's way back leads to the view before,
 * not to each change. */
export function replaceAddress(hash: string): void {
  try {
    history.replaceState(null, "", hash);
  } catch {
    // Browsers refuse more than some hundred in half a minute; the next change is written again.
    return;
  }
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(mode: Mode): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash, mode));
  useEffect(() => {
    const look = () => {
      setRoute(parseRoute(location.hash, mode));
    };
    window.addEventListener("hashchange", look);
    return () => {
      window.removeEventListener("hashchange", look);
    };
  }, [mode]);
  return route;
}
