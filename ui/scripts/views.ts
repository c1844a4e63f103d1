import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { sampleReport } from "../test/sample/report.ts";
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

/** Views whose heads stand in docs/images, and how much of each, in pixels: they are to stay below 200 kB. */
const HEADS: Record<string, number> = { trial: 1000, compare: 760, index: 760 };

/** Pictures of every view, or with "head" as views those for docs/: npm run views -- <directory> [width,…] [view,…] */
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
  try {
    for (const [name, url] of Object.entries(views)) {
      const head = only === "head" ? HEADS[name] : undefined;
      if (only === "head" ? head === undefined : only !== undefined && !only.split(",").includes(name)) continue;
      for (const width of widths.split(",").map(Number)) {
        for (const colorScheme of head === undefined ? (["light", "dark"] as const) : (["light"] as const)) {
          const page = await browser.newPage({ viewport: { width, height: head ?? 1000 }, colorScheme });
          page.on("pageerror", (error) => {
            console.log(`${name}: ${error.message}`);
          });
          page.on("console", (message) => {
            if (message.type() === "error") console.log(`${name}: ${message.text()}`);
          });
          await page.goto(url);
          await page.locator("main h1, main h2, header h1").first().waitFor();
          await page.waitForTimeout(400);
          const path = join(directory, head === undefined ? `${name}-${String(width)}-${colorScheme}.png` : `docs-${name}.png`);
          await page.screenshot({ path, fullPage: head === undefined });
          await page.close();
          console.log(path);
        }
      }
    }
  } finally {
    await browser.close();
    await server.stop();
  }
}
