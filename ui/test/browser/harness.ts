import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { assemble } from "../../scripts/assemble.ts";
import { afterAll, afterEach, beforeEach } from "vitest";
import { launchBrowser } from "../../scripts/browser.ts";
import { MockServer } from "../../scripts/mock-server.ts";
import { sampleWorld } from "../sample/world.ts";

export interface Opened {
  page: Page;
  /** Every address that the page asked for. */
  requests: string[];
  /** Console errors and warnings, uncaught exceptions. */
  complaints: string[];
  url: string;
}

const DIST = join(import.meta.dirname, "../../dist");

function listen(page: Page): Pick<Opened, "requests" | "complaints"> {
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  return { requests, complaints };
}

function linked(report: unknown): string {
  const json = JSON.stringify(report).replaceAll("<", "\\u003c");
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="stylesheet" href="/app.css"></head>',
    `<body><div id="app"></div><script type="application/json" id="pgdyno-data">${json}</script>`,
    '<script src="/app.js"></script></body></html>',
  ].join("");
}

/** A browser and a directory for the pages it opens from disk. */
export class Harness {
  private readonly directory = mkdtempSync(join(tmpdir(), "pgdyno-ui-"));
  private readonly browser: Promise<Browser> = launchBrowser();
  private pages = 0;

  async open(report: unknown, options: BrowserContextOptions = {}, trials = ""): Promise<Opened> {
    const browser = await this.browser;
    this.pages += 1;
    const path = join(this.directory, `report-${String(this.pages)}.html`);
    writeFileSync(path, assemble(report, DIST, trials));
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    const { requests, complaints } = listen(page);
    const url = pathToFileURL(path).href;
    await page.goto(url);
    await page.locator("#app > *").first().waitFor();
    return { page, requests, complaints, url };
  }

  /** A view of a server; the network alone is real. */
  async openServed(url: string, options: BrowserContextOptions = {}): Promise<Opened> {
    const context = await (await this.browser).newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    const { requests, complaints } = listen(page);
    await page.goto(url);
    await page.locator("#app > *").first().waitFor();
    return { page, requests, complaints, url };
  }

  /** The page as `pgdyno serve` would give it out: script and style as files, nothing inline allowed. */
  async openStrictly(report: unknown): Promise<Opened> {
    const url = "http://pgdyno.test/";
    const context = await (await this.browser).newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    const { requests, complaints } = listen(page);
    const headers = { "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'" };
    await page.route("**/*", async (route) => {
      const name = new URL(route.request().url()).pathname.slice(1);
      if (name === "app.js" || name === "app.css") await route.fulfill({ path: join(DIST, name) });
      else await route.fulfill({ contentType: "text/html", headers, body: linked(report) });
    });
    await page.goto(url);
    await page.locator("#app > *").first().waitFor();
    return { page, requests, complaints, url };
  }

  async close(): Promise<void> {
    try {
      await (await this.browser).close();
    } finally {
      rmSync(this.directory, { recursive: true });
    }
  }
}

/** A browser for the tests of a file. */
export function useHarness(): Harness {
  const harness = new Harness();
  afterAll(() => harness.close());
  return harness;
}

/** A server over the sample world for each test of a file; what is returned gives that of the test that runs. */
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
