import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchBrowser } from "../../scripts/browser.ts";

/** A view over the real server, and whatever was complained of: console errors and warnings, breaches of the policy, exceptions. */
export interface Visited {
  page: Page;
  complaints: string[];
}

/** Views by the fragment of their address; the store behind them is the one of crates/pgdyno/tests/page.rs. */
export const VIEWS: Record<string, string> = {
  index: "#/",
  experiment: "#/experiments/1",
  markup: "#/experiments/2",
  empty: "#/experiments/3",
  running: "#/experiments/4",
  trial: "#/experiments/1/trials/2",
  compare: "#/compare?a=1:reference&b=1:larger",
  targets: "#/targets",
  target: "#/targets/sandbox%20a",
  live: "#/live",
};

/** What a view has once it is all there. */
const READY: Record<string, string> = {
  index: ".index-table tbody tr",
  experiment: "#notes .note-form",
  markup: "#notes .note",
  empty: "#notes .note-form",
  running: ".live-figures",
  trial: ".panel canvas",
  compare: "#response svg",
  targets: ".target-list",
  target: "#advice",
  live: ".live-figures",
};

export class Visitor {
  private readonly browser: Promise<Browser> = launchBrowser();
  readonly link: string;
  /** Without the token. */
  readonly base: string;

  constructor() {
    const link = process.env.PGDYNO_LINK;
    if (link === undefined) throw new Error("PGDYNO_LINK is not set: cargo test -p pgdyno --test page starts a server and runs these tests.");
    this.link = link;
    this.base = `${new URL(link).origin}/`;
  }

  /** A browser of somebody who has not been here. */
  async stranger(options: BrowserContextOptions = {}): Promise<Visited> {
    const context = await (await this.browser).newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    return { page, complaints };
  }

  /** In by the link, and on to a view. */
  async open(view: string, options: BrowserContextOptions = {}): Promise<Visited> {
    const visited = await this.stranger(options);
    await visited.page.goto(this.link);
    await visited.page.locator(READY.index ?? "").first().waitFor();
    await visited.page.goto(this.base + (VIEWS[view] ?? view));
    await visited.page.locator(READY[view] ?? "main").first().waitFor();
    return visited;
  }

  async close(): Promise<void> {
    await (await this.browser).close();
  }
}
