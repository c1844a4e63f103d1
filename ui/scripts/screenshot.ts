import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launchBrowser } from "./browser.ts";

/** What fits a read-me: the answer, the key figures and the steps. */
const HEAD_HEIGHT = 1400;

/** Pictures of a report, whole page and its head: npm run screenshot -- <report.html>
 * <directory> */
export async function main([file, directory]: string[]): Promise<void> {
  if (file === undefined || directory === undefined) {
    throw new Error("Say of what and where to: npm run screenshot -- <report.html> <directory>");
  }
  if (!existsSync(file)) throw new Error(`There is no file ${file}`);
  mkdirSync(directory, { recursive: true });
  const browser = await launchBrowser();
  try {
    for (const width of [1280, 390]) {
      for (const colorScheme of ["light", "dark"] as const) {
        const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
        await page.goto(pathToFileURL(resolve(file)).href);
        await page.locator("main svg, [role=alert]").first().waitFor();
        const path = join(directory, `report-${String(width)}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: true });
        if (width === 1280 && colorScheme === "light") {
          await page.setViewportSize({ width, height: HEAD_HEIGHT });
          await page.screenshot({ path: join(directory, "report-head.png") });
        }
        await page.close();
        console.log(path);
      }
    }
  } finally {
    await browser.close();
  }
}
