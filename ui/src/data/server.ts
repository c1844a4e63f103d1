import { checkedReport } from "../load.ts";
import { CAPACITY_FORMAT, type CapacityDocument } from "../model.ts";
import type { Comparison, Journal, List, Listed, Note, Report, Target, Targets, TrialDocument } from "../model.ts";
import type { Server, Source } from "./source.ts";
import { cut, Trouble, troubleOfStatus } from "./trouble.ts";
import { checkedTrial } from "./unpack.ts";

/** Documents of trials that are kept: all sides of a comparison. An hour's trial takes some 20 MB
 * in memory. */
const TRIALS_KEPT = 8;

async function json(answer: Response): Promise<unknown> {
  try {
    return (await answer.json()) as unknown;
  } catch {
    return null;
  }
}

declare global {
  interface Window {
    /** What the server's early.js has asked for already. */
    pgdynoEarly?: { path: string; answer: Promise<Response> };
  }
}

/** An answer that is on its way; the next time it would be an old one. */
function early(path: string): Promise<Response> | null {
  const found = window.pgdynoEarly;
  if (found?.path !== path) return null;
  delete window.pgdynoEarly;
  return found.answer;
}

async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
  let answer: Response;
  try {
    const content = body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const begun = method === "GET" ? early(path) : null;
    answer = await (begun ?? fetch(path, { method, credentials: "same-origin", keepalive: method === "DELETE", ...content }));
  } catch {
    throw cut();
  }
  if (!answer.ok) {
    const said = (await json(answer)) as { error?: unknown; what_to_do?: unknown } | null;
    throw troubleOfStatus(answer.status, said?.error, said?.what_to_do);
  }
  if (answer.status === 204) return null;
  const data = await json(answer);
  if (data === null && method === "GET") throw new Trouble("cut", "The server's answer cannot be read.", "The connection may have been cut in the middle of it.");
  return data;
}

/** A list in an answer; what is not a list is none. */
function listOf<Item>(data: unknown, name: string): Item[] {
  const found = (data as Record<string, unknown> | null)?.[name];
  return Array.isArray(found) ? (found as Item[]) : [];
}

function of(experiment: number, rest = ""): string {
  return `/api/experiments/${String(experiment)}${rest}`;
}

function checkedCapacity(data: unknown): CapacityDocument {
  const found = data as Partial<CapacityDocument> | null;
  if (found?.format !== CAPACITY_FORMAT || !Array.isArray(found.answer?.rows)) throw new Trouble("damaged", "This page cannot show the server's answer.", `It reads the format “${CAPACITY_FORMAT}”; the server is of another version of pgdyno. Load the page again.`);
  return found as CapacityDocument;
}

async function list(search?: string): Promise<List> {
  const data = await ask("GET", `/api/experiments${search === undefined ? "" : `?${new URLSearchParams({ search }).toString()}`}`);
  // A server that says nothing of it is not asked for more.
  return { experiments: listOf<Listed>(data, "experiments"), is_whole: (data as { is_whole?: unknown } | null)?.is_whole !== false };
}

const server: Server = {
  experiments: async (search) => (await list(search)).experiments,
  list: () => list(),
  capacity: async (experiment, query) => checkedCapacity(await ask("GET", of(experiment, `/capacity?${query}`))),
  compare: async (a, b) => {
    const data = (await ask("GET", `/api/compare?${new URLSearchParams({ a, b }).toString()}`)) as { comparison?: Comparison } & Comparison;
    return data.comparison ?? data;
  },
  targets: async (): Promise<Targets> => {
    const data = await ask("GET", "/api/targets");
    const { changed_on_host: host, why_not_known: why, servers_asked: asked } = (data ?? {}) as Record<string, unknown>;
    return {
      targets: listOf<Target>(data, "targets"),
      changed_on_host: Array.isArray(host) ? (host as Journal[]) : null,
      why_not_known: typeof why === "string" ? why : null,
      servers_asked: asked !== false,
    };
  },
  notes: async (experiment) => listOf<Note>(await ask("GET", of(experiment, "/notes")), "notes"),
  addNote: async (experiment, text) => {
    await ask("POST", of(experiment, "/notes"), { text });
  },
  removeNote: async (experiment, note) => {
    await ask("DELETE", of(experiment, `/notes/${String(note)}`));
  },
  tags: async (experiment) => listOf<string>(await ask("GET", of(experiment, "/tags")), "tags"),
  addTag: async (experiment, word) => {
    await ask("PUT", of(experiment, `/tags/${encodeURIComponent(word)}`));
  },
  removeTag: async (experiment, word) => {
    await ask("DELETE", of(experiment, `/tags/${encodeURIComponent(word)}`));
  },
  liveAddress: (experiment) => of(experiment, "/live"),
  whyNoLive: async (experiment) => {
    const stop = new AbortController();
    try {
      const answer = await fetch(of(experiment, "/live"), { credentials: "same-origin", signal: stop.signal });
      if (answer.ok) return cut();
      const said = (await json(answer)) as { error?: unknown; what_to_do?: unknown } | null;
      return troubleOfStatus(answer.status, said?.error, said?.what_to_do);
    } catch {
      return cut();
    } finally {
      stop.abort();
    }
  },
};

/** Asks `pgdyno serve`, which knows us by its cookie. */
export function serverSource(): Source {
  const trials = new Map<string, Promise<TrialDocument>>();
  return {
    mode: "serve",
    report: async (experiment): Promise<Report> => checkedReport(await ask("GET", of(experiment ?? 0, "/report"))),
    trial: (experiment, trial) => {
      const path = of(experiment ?? 0, `/trials/${String(trial)}`);
      const known = trials.get(path) ?? ask("GET", path).then(checkedTrial);
      trials.set(path, known);
      known.catch(() => trials.delete(path));
      const oldest = trials.keys().next();
      if (trials.size > TRIALS_KEPT && oldest.done !== true) trials.delete(oldest.value);
      return known;
    },
    hasTrial: () => true,
    details: null,
    server,
  };
}
