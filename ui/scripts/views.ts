import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import type { Report } from "../src/model.ts";
import { factors } from "../test/sample/factors.ts";
import { sampleReport } from "../test/sample/report.ts";
import { searched } from "../test/sample/search.ts";
import { sampleTrialDocument } from "../test/sample/trial-document.ts";
import { sampleWorld } from "../test/sample/world.ts";
import { assemble } from "./assemble.ts";
import { launchBrowser } from "./browser.ts";
import { MockServer } from "./mock-server.ts";
import { trialElements } from "./pack.ts";

/** Views of the server by the fragment of their address. */
export const SERVED: Record<string, string> = {
  index: "#/",
  running: "#/experiments/9",
  ladder: "#/experiments/8",
  cores: "#/experiments/12",
  trial: "#/experiments/7/trials/4",
  compare: "#/compare?a=7:reference&b=7:memory",
  "compare-many": "#/compare?a=7:reference&b=7:memory&c=7:wal&d=7:group-commit&e=7:huge-pages&f=7:read-ahead&g=7:control&h=7/4",
  target: "#/targets/sandbox%20demo",
  live: "#/live",
};

interface Head {
  view: string;
  height: number;
  width?: number;
  colorScheme?: "light" | "dark";
  /** What stands at the top of the picture; none: the top of the page. */
  from?: string;
}

/** Pictures for docs/images, and how much of which view each shows, in pixels: they are to stay
 * below 200 kB. */
const HEADS: Record<string, Head> = {
  index: { view: "index", height: 760 },
  trial: { view: "trial", height: 1000 },
  compare: { view: "compare", height: 760 },
  ladder: { view: "ladder", height: 1000, from: "#curves" },
  target: { view: "target", height: 900 },
  live: { view: "live", height: 420 },
  experiment: { view: "report", height: 1000 },
  waterfall: { view: "report", height: 900, from: "#steps" },
  charts: { view: "factors", height: 1900, from: "#charts" },
  timeline: { view: "factors", height: 760, from: "#timelines" },
  effects: { view: "factors", height: 700, from: "#effects" },
  search: { view: "searched", height: 860, from: "#search" },
  "heat-map": { view: "trial", height: 1000, from: "#response" },
  efficiency: { view: "report", height: 700, from: "#efficiency" },
  settings: { view: "report", height: 800, from: "#settings" },
  targets: { view: "targets", height: 560 },
  dark: { view: "trial", height: 1000, colorScheme: "dark" },
  narrow: { view: "running", height: 1300, width: 390 },
};

const WIDTH = 1280;

/** Pictures of every view, or with "head" as views those for docs/: npm run views -- <directory>
 * [width,…] [view,…] */
export async function main([directory, widths = "1280", only]: string[]): Promise<void> {
  if (directory === undefined) throw new Error("Say where to: npm run views -- <directory> [widths] [views]");
  mkdirSync(directory, { recursive: true });
  const report = sampleReport();
  const file = resolve(directory, "report.html");
  const documents = report.trials.map((trial) => sampleTrialDocument(report, trial));
  writeFileSync(file, assemble(report, "dist", trialElements(documents)));
  const server = await MockServer.start(sampleWorld(), "dist");
  const browser = await launchBrowser();
  const local = pathToFileURL(file).href;
  const views = { ...Object.fromEntries(Object.entries(SERVED).map(([name, hash]) => [name, server.url + hash])), report: local, "report-trial": `${local}#/trials/4` };
  const alone = (name: string, of: Report) => {
    const path = resolve(directory, `${name}.html`);
    writeFileSync(path, assemble(of, "dist"));
    return pathToFileURL(path).href;
  };
  const ofHeads = { ...views, factors: alone("factors", factors()), searched: alone("searched", searched()), targets: `${server.url}#/targets` };
  const shots = only === "head" ? headsOf(ofHeads) : wholesOf(views, widths.split(",").map(Number), only);
  try {
    for (const shot of shots) console.log(await take(browser, shot, directory));
  } finally {
    await browser.close();
    await server.stop();
  }
}

interface Shot extends Omit<Head, "view" | "height"> {
  name: string;
  url: string;
  /** null: the whole page. */
  height: number | null;
}

function headsOf(views: Record<string, string>): Shot[] {
  return Object.entries(HEADS).map(([name, { view, ...head }]) => ({ ...head, name: `docs-${name}`, url: views[view] ?? "" }));
}

function wholesOf(views: Record<string, string>, widths: readonly number[], only: string | undefined): Shot[] {
  return Object.entries(views)
    .filter(([name]) => only === undefined || only.split(",").includes(name))
    .flatMap(([name, url]) => widths.flatMap((width) => (["light", "dark"] as const).map((colorScheme) => ({ name: `${name}-${String(width)}-${colorScheme}`, url, width, colorScheme, height: null }))));
}

async function take(browser: Browser, { name, url, width = WIDTH, colorScheme = "light", height, from }: Shot, directory: string): Promise<string> {
  const page = await browser.newPage({ viewport: { width, height: height ?? 1000 }, colorScheme });
  page.on("pageerror", (error) => {
    console.log(`${name}: ${error.message}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("404")) console.log(`${name}: ${message.text()}`);
  });
  await page.goto(url);
  await page.locator("main h1, main h2, header h1").first().waitFor();
  await page.waitForTimeout(400);
  if (from !== undefined) await page.locator(from).evaluate((part) => { part.scrollIntoView({ behavior: "instant" }); });
  await page.waitForTimeout(200);
  const path = join(directory, `${name}.png`);
  await page.screenshot({ path, fullPage: height === null });
  await page.close();
  return path;
}
