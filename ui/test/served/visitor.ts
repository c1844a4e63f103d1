import { type Heard, type Look, useHarness } from "../browser/harness.ts";

/** Views by the fragment of their address; the store behind them is the one of
 * crates/pgdyno/tests/all/page.rs. */
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
  private readonly harness = useHarness();
  readonly link: string;
  /** Without the token. */
  readonly base: string;

  constructor() {
    const link = process.env.PGDYNO_LINK;
    if (link === undefined) throw new Error("PGDYNO_LINK is not set: cargo test -p pgdyno --test all page starts a server and runs these tests.");
    this.link = link;
    this.base = `${new URL(link).origin}/`;
  }

  /** A browser of somebody who has not been here. */
  stranger(): Promise<Heard> {
    return this.harness.newPage({ apart: true });
  }

  /** In by the link, and on to a view. */
  async open(view: string, look: Look = {}): Promise<Heard> {
    const visited = await this.harness.openServed(this.link, look);
    await visited.page.locator(READY.index ?? "").first().waitFor();
    await visited.page.goto(this.base + (VIEWS[view] ?? view));
    await visited.page.locator(READY[view] ?? "main").first().waitFor();
    return visited;
  }
}
