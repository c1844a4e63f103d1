import type { Listed } from "../model.ts";

export interface Filter {
  words: string;
  status: string;
  tag: string;
  /** A day as the browser's field gives it: 2026-11-01. */
  since: string;
}

export const NO_FILTER: Filter = { words: "", status: "", tag: "", since: "" };

export type Order = "name" | "status" | "started" | "target" | "trials" | "notes";

export interface Sorting {
  by: Order;
  rising: boolean;
}

/** The newest first. */
export const NEWEST: Sorting = { by: "started", rising: false };

/** What is in the address of the index: the filter, and the order where it is another than the
 * first. */
export function queryOf(filter: Filter, { by, rising }: Sorting): string {
  const asked = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ""));
  if (by !== NEWEST.by || rising !== NEWEST.rising) asked.set("sort", `${rising ? "" : "-"}${by}`);
  return asked.toString();
}

function sortingOf(text: string): Sorting {
  const by = text.replace(/^-/, "");
  return Object.hasOwn(KEY, by) ? { by: by as Order, rising: !text.startsWith("-") } : NEWEST;
}

/** Reads what queryOf wrote; of an address from elsewhere what cannot be is ignored. */
export function askedOf(query: string): { filter: Filter; sorting: Sorting } {
  const asked = new URLSearchParams(query);
  const text = (name: string) => asked.get(name) ?? "";
  const since = /^\d{4}-\d{2}-\d{2}$/.test(text("since")) ? text("since") : "";
  return { filter: { words: text("words"), status: text("status"), tag: text("tag"), since }, sorting: sortingOf(text("sort")) };
}

/** What is searched for, word by word. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter((word) => word !== "");
}

/** Experiments by a word that the server has found in them. */
export type FoundByWord = ReadonlyMap<string, ReadonlySet<number>>;

/** Those that fit all of it; words are looked for in everything that the table shows, and in what
 * the server has found besides: notes. */
export function filtered(all: readonly Listed[], { words, status, tag, since }: Filter, found: FoundByWord = new Map()): Listed[] {
  const wanted = wordsOf(words);
  // In the reader's zone, as the table's dates are.
  const from = since === "" ? -Infinity : new Date(`${since}T00:00`).getTime();
  return all.filter((row) => {
    if (status !== "" && row.status !== status) return false;
    if (tag !== "" && !row.tags.includes(tag)) return false;
    if (row.started_unix_ms < from) return false;
    const text = [String(row.id), row.name, row.question, row.answer ?? "", row.target, ...row.tags].join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word) || found.get(word)?.has(row.id) === true);
  });
}

const KEY: Record<Order, (row: Listed) => string | number> = {
  name: (row) => row.name.toLowerCase(),
  status: (row) => row.status,
  started: (row) => row.started_unix_ms,
  target: (row) => row.target.toLowerCase(),
  trials: (row) => row.trials_finished,
  notes: (row) => row.notes,
};

export function sortedBy(rows: readonly Listed[], by: Order, rising: boolean): Listed[] {
  const key = KEY[by];
  const sign = rising ? 1 : -1;
  const compared = (a: string | number, b: string | number) => (a < b ? -1 : a > b ? 1 : 0);
  return rows.toSorted((a, b) => sign * compared(key(a), key(b)) || b.id - a.id);
}

export function tagsOf(all: readonly Listed[]): string[] {
  return [...new Set(all.flatMap(({ tags }) => tags))].sort();
}

export function statusesOf(all: readonly Listed[]): string[] {
  return [...new Set(all.map(({ status }) => status))].sort();
}
