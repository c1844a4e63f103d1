import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Page, type ViewportSize } from "playwright-core";
import { assemble } from "../../scripts/assemble.ts";
import { afterAll, afterEach, beforeEach, inject } from "vitest";
import { MockServer } from "../../scripts/mock-server.ts";
import { PATIENCE_MS } from "../patience.ts";
import { sampleWorld } from "../sample/world.ts";

export interface Heard {
  page: Page;
  /** Every address that the page asked for. */
  requests: string[];
  /** Console errors and warnings, breaches of the policy, uncaught exceptions. */
  complaints: string[];
}

export interface Opened extends Heard {
  url: string;
}

const DIST = join(import.meta.dirname, "../../dist");

function listen(page: Page): Heard {
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  return { page, requests, complaints };
}

function linked(report: unknown): string {
  const json = JSON.stringify(report).replaceAll("<", "\\u003c");
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="stylesheet" href="/app.css"></head>',
    `<body><div id="app"></div><script type="application/json" id="pgdyno-data">${json}</script>`,
    '<script src="/app.js"></script></body></html>',
  ].join("");
}

export interface Look {
  viewport?: ViewportSize;
  colorScheme?: "light" | "dark";
  /** Whether the page has a context of its own. A fake clock needs one, and who loses cookies:
   * both are the context's. */
  apart?: boolean;
}

/** A context of the run's browser and a directory for the pages it opens from disk, for one test
 * file. */
export class Harness {
  private readonly directory = mkdtempSync(join(tmpdir(), "pgdyno-ui-"));
  private readonly browser = chromium.connect(inject("browserEndpoint"));
  private readonly context = this.browser.then((browser) => browser.newContext());
  private readonly pages: Page[] = [];
  /** Pages of tests that have ended. They stay until the next page is there, so that their
   * renderer lives on for it. */
  private readonly ended: Page[] = [];
  private files = 0;

  async open(report: unknown, look: Look = {}, trials = ""): Promise<Opened> {
    this.files += 1;
    const path = join(this.directory, `report-${String(this.files)}.html`);
    writeFileSync(path, assemble(report, DIST, trials));
    return this.goTo(await this.newPage(look), pathToFileURL(path).href);
  }

  /** A view of a server; the network alone is real. */
  async openServed(url: string, look: Look = {}): Promise<Opened> {
    return this.goTo(await this.newPage(look), url);
  }

  /** The page as `pgdyno serve` would give it out: script and style as files, nothing inline
   * allowed. */
  async openStrictly(report: unknown): Promise<Opened> {
    const heard = await this.newPage({});
    const headers = { "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'" };
    await heard.page.route("**/*", async (route) => {
      const name = new URL(route.request().url()).pathname.slice(1);
      if (name === "app.js" || name === "app.css") await route.fulfill({ path: join(DIST, name) });
      else await route.fulfill({ contentType: "text/html", headers, body: linked(report) });
    });
    return this.goTo(heard, "http://pgdyno.test/");
  }

  async newPage({ viewport = { width: 1280, height: 900 }, colorScheme = "light", apart = false }: Look): Promise<Heard> {
    const context = apart ? await (await this.browser).newContext() : await this.context;
    const page = await context.newPage();
    this.pages.push(page);
    page.setDefaultTimeout(PATIENCE_MS);
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    return listen(page);
  }

  private async goTo(heard: Heard, url: string): Promise<Opened> {
    const { page } = heard;
    await page.goto(url);
    await page.locator("#app > *").first().waitFor();
    // Preact runs effects, which add the listeners, after the next frame.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    await Promise.all(this.ended.splice(0).map((each) => each.close()));
    return { ...heard, url };
  }

  /** Pages of a test leave nothing to those of the next. */
  async endTest(): Promise<void> {
    const pages = this.pages.splice(0);
    this.ended.push(...pages);
    for (const page of pages) await page.evaluate(() => { localStorage.clear(); });
  }

  async close(): Promise<void> {
    try {
      await (await this.browser).close();
    } finally {
      rmSync(this.directory, { recursive: true });
    }
  }
}

/** A harness for the tests of a file. */
export function useHarness(): Harness {
  const harness = new Harness();
  afterEach(() => harness.endTest());
  afterAll(() => harness.close());
  return harness;
}

/** A server over the sample world for each test of a file; what is returned gives that of the
 * test that runs. */
export function useServer(): () => MockServer {
  let server: MockServer | null = null;
  beforeEach(async () => {
    server = await MockServer.start(sampleWorld(), DIST);
  });
  afterEach(() => server?.stop());
  return () => {
    if (server === null) throw new Error("no test runs");
    return server;
  };
}
