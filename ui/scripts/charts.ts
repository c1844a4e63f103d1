import { mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launchBrowser } from "./browser.ts";

const WIDTH = 900;

/** A picture of each chart of reports' studies, beside what the study says of it: npm run
 * charts -- <directory> <report.html>... */
export async function main([directory, ...files]: string[]): Promise<void> {
  if (directory === undefined || files.length === 0) {
    throw new Error("Say where to and of what: npm run charts -- <directory> <report.html>...");
  }
  mkdirSync(directory, { recursive: true });
  const browser = await launchBrowser();
  try {
    for (const file of files) {
      const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 }, colorScheme: "light" });
      await page.goto(pathToFileURL(resolve(file)).href);
      await page.locator("main svg, [role=alert]").first().waitFor();
      const charts = await page.locator("#timelines .study-chart, #charts .study-chart, #steps:has(h3)").all();
      for (const [place, chart] of charts.entries()) {
        const path = join(directory, `${basename(file, ".html")}-${String(place + 1)}.png`);
        await chart.screenshot({ path });
        console.log(path);
      }
      await page.close();
    }
  } finally {
    await browser.close();
  }
}
