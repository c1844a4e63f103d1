import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { CapacityDocument, Comparison, Journal, Listed, Note, Progress, Report, Target, TrialDocument } from "../src/model.ts";

/** What the mock answers with; tests change it while it runs. */
export interface World {
  reports: Map<number, Report>;
  trial: (report: Report, trial: number) => TrialDocument | null;
  experiments: Listed[];
  /** Answers are still missing in the list. */
  lacks_answers: boolean;
  notes: Note[];
  comparison: Comparison;
  capacity: (tps: number) => CapacityDocument;
  targets: Target[];
  changed_on_host: Journal[] | null;
  /** Why it is null. */
  why_not_known: string | null;
  servers_asked: boolean;
  progress: Progress | null;
  /** Refuses whoever asks. */
  refuses: boolean;
  /** Ends each stream before it begins. */
  cuts: boolean;
  /** Cannot read its store. */
  is_broken: boolean;
  /** Cannot answer addresses that begin so. */
  broken?: string;
}

const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const SHELL =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>pgdyno</title>' +
  '<meta name="pgdyno-mode" content="serve"><link rel="stylesheet" href="/app.css"></head><body><script src="/app.js" defer></script></body></html>';

function send(answer: ServerResponse, status: number, data: unknown): Promise<void> {
  answer.writeHead(status, { "content-type": "application/json" });
  answer.end(status === 204 ? undefined : JSON.stringify(data));
  return Promise.resolve();
}

/** The sample's pair under the name of the side that was asked for. */
function compared(comparison: Comparison, b: string): Comparison {
  const [experiment, treatment] = b.split(":", 2);
  const name = treatment === undefined ? b : `experiment ${experiment ?? ""}, ${treatment}`;
  return { ...comparison, pairs: comparison.pairs.map((pair) => ({ ...pair, b: name })) };
}

function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      resolve(text);
    });
  });
}

/** A small stand-in for `pgdyno serve`: the same addresses, answers and headers, and no store
 * behind it. */
export class MockServer {
  private readonly server: Server;
  private readonly streams = new Set<ServerResponse>();
  /** What was asked of the interface, as "GET /api/experiments". */
  readonly asked: string[] = [];

  private constructor(
    readonly world: World,
    private readonly dist: string,
  ) {
    this.server = createServer((request, answer) => void this.answer(request, answer));
  }

  static async start(world: World, dist: string): Promise<MockServer> {
    const mock = new MockServer(world, dist);
    await new Promise<void>((resolve) => mock.server.listen(0, "127.0.0.1", resolve));
    return mock;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}/`;
  }

  /** Ends all streams, as a server does that dies. */
  cut(): void {
    for (const stream of this.streams) stream.destroy();
    this.streams.clear();
  }

  send(event: string, data: unknown): void {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  async stop(): Promise<void> {
    this.cut();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async answer(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    if (url.pathname.startsWith("/api/")) this.asked.push(`${request.method ?? ""} ${url.pathname}`);
    if (url.pathname === "/") {
      answer.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-security-policy": CSP });
      answer.end(SHELL);
    } else if (url.pathname === "/app.js" || url.pathname === "/app.css") {
      answer.writeHead(200, { "content-type": url.pathname.endsWith("js") ? "text/javascript" : "text/css" });
      answer.end(readFileSync(join(this.dist, url.pathname)));
    } else if (!url.pathname.startsWith("/api/")) {
      await send(answer, 404, { error: "no such page", what_to_do: null });
    } else if (this.world.refuses) {
      await send(answer, 401, { error: "wrong token", what_to_do: null });
    } else if (this.world.is_broken || (this.world.broken !== undefined && (url.pathname + url.search).startsWith(this.world.broken))) {
      await send(answer, 503, { error: "the store is locked", what_to_do: "wait until the other process has ended" });
    } else {
      await this.api(request, answer, url);
    }
  }

  private async api(request: IncomingMessage, answer: ServerResponse, url: URL): Promise<void> {
    const [head, id, part, rest] = url.pathname.slice("/api/".length).split("/");
    const { world } = this;
    if (head === "experiments" && id === undefined) return send(answer, 200, { experiments: this.listed(url.searchParams.get("search")), is_whole: !world.lacks_answers });
    if (head === "compare") return send(answer, 200, { format: "pgdyno-compare/1", comparison: compared(world.comparison, url.searchParams.get("b") ?? ""), gates: [] });
    if (head === "targets") return send(answer, 200, { targets: world.targets, changed_on_host: world.changed_on_host, why_not_known: world.why_not_known, servers_asked: world.servers_asked });
    const report = world.reports.get(Number(id));
    if (head !== "experiments" || report === undefined) return send(answer, 404, { error: `there is no experiment ${id ?? ""}`, what_to_do: "`pgdyno list` shows those there are" });
    if (part === "capacity") return send(answer, 200, this.capacity(url.searchParams));
    if (part === "report") return send(answer, 200, report);
    if (part === "trials") {
      const document = world.trial(report, Number(rest));
      return document === null ? send(answer, 404, { error: `there is no trial ${rest ?? ""}`, what_to_do: null }) : send(answer, 200, document);
    }
    if (part === "live") return this.stream(answer);
    if (part === "notes") return this.notes(request, answer, rest);
    if (part === "tags") return this.tags(request, answer, Number(id), decodeURIComponent(rest ?? ""));
    return send(answer, 404, { error: "no such page", what_to_do: null });
  }

  /** Notes are those of the experiments that have any. */
  private listed(search: string | null): Listed[] {
    const { experiments, notes } = this.world;
    const has = (text: string) => text.toLowerCase().includes((search ?? "").toLowerCase());
    return experiments.filter((row) => search === null || has(row.name) || has(row.question) || has(row.target) || (row.notes > 0 && notes.some(({ text }) => has(text))));
  }

  /** The same sum for the cost as pgdyno-stats does. */
  private capacity(asked: URLSearchParams): CapacityDocument {
    const number = (name: string) => (asked.has(name) ? Number(asked.get(name)) : null);
    const document = { ...this.world.capacity(number("tps") ?? 60_000), cpus: number("cpus"), p99_ms: number("p99_ms"), price_per_cpu_hour: number("price_per_cpu_hour"), price_per_host_hour: number("price_per_host_hour") };
    for (const row of document.answer.rows) {
      const { found } = row;
      if (document.cpus !== null && row.measured.length > 0) {
        const tps = { value: document.cpus * 1000, low: document.cpus * 900, high: document.cpus * 1100 };
        row.gives = { tps, connections: { value: 16, low: 12, high: 24 }, extrapolates: document.cpus / 8, cost_per_million: null };
      }
      const price = document.price_per_cpu_hour;
      if (found.kind !== "needs" || price === null) continue;
      const at = (cpus: number) => ((price * cpus) / (document.tps * 3600)) * 1e6;
      found.cost_per_million = { value: at(found.cpus.value), low: at(found.cpus.low), high: found.cpus.high === null ? null : at(found.cpus.high) };
    }
    return document;
  }

  private stream(answer: ServerResponse): Promise<void> {
    if (this.world.cuts) {
      answer.destroy();
      return Promise.resolve();
    }
    answer.writeHead(200, { "content-type": "text/event-stream" });
    this.streams.add(answer);
    answer.on("close", () => this.streams.delete(answer));
    if (this.world.progress !== null) answer.write(`event: progress\ndata: ${JSON.stringify(this.world.progress)}\n\n`);
    return Promise.resolve();
  }

  private async notes(request: IncomingMessage, answer: ServerResponse, note: string | undefined): Promise<void> {
    const { world } = this;
    if (request.method === "POST") {
      const { text } = JSON.parse(await bodyOf(request)) as { text: string };
      world.notes.push({ id: world.notes.length + 1, written_unix_ms: Date.UTC(2026, 10, 22, 9, 30), text });
      return send(answer, 201, world.notes.at(-1));
    }
    if (request.method === "DELETE") {
      world.notes = world.notes.filter(({ id }) => id !== Number(note));
      return send(answer, 204, null);
    }
    return send(answer, 200, { notes: world.notes });
  }

  private tags(request: IncomingMessage, answer: ServerResponse, id: number, word: string): Promise<void> {
    const row = this.world.experiments.find((each) => each.id === id);
    if (request.method === "GET") return send(answer, 200, { tags: row?.tags ?? [] });
    if (row !== undefined) row.tags = request.method === "PUT" ? [...row.tags, word] : row.tags.filter((tag) => tag !== word);
    return send(answer, 204, null);
  }
}
