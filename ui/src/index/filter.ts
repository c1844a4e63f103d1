import type { Listed } from "../model-serve.ts";

export interface Filter {
  words: string;
  status: string;
  tag: string;
  /** A day as the browser's field gives it: 2026-11-01. */
  since: string;
}

export const NO_FILTER: Filter = { words: "", status: "", tag: "", since: "" };

export type Order = "name" | "status" | "started" | "target" | "trials";

/** Those that fit all of it; words are looked for in everything that the table shows. */
export function filtered(all: readonly Listed[], { words, status, tag, since }: Filter): Listed[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  // In the reader's zone, as the table's dates are.
  const from = since === "" ? -Infinity : new Date(`${since}T00:00`).getTime();
  return all.filter((row) => {
    if (status !== "" && row.status !== status) return false;
    if (tag !== "" && !row.tags.includes(tag)) return false;
    if (row.started_unix_ms < from) return false;
    const text = [String(row.id), row.name, row.question, row.answer ?? "", row.target, ...row.tags].join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

const KEY: Record<Order, (row: Listed) => string | number> = {
  name: (row) => row.name.toLowerCase(),
  status: (row) => row.status,
  started: (row) => row.started_unix_ms,
  target: (row) => row.target.toLowerCase(),
  trials: (row) => row.trials_finished,
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
