import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findings } from "../browser/findings.ts";
import { VIEWS, Visitor } from "./visitor.ts";

/** Where pictures of the views go, if anywhere. */
const PICTURES = process.env.PGDYNO_PICTURES;

const visitor = new Visitor();

describe.each(["light", "dark"] as const)("over the real server, %s", (colorScheme) => {
  test.each(Object.keys(VIEWS))("%s: no complaint, no markup of the data's, no serious finding", async (view) => {
    const { page, complaints } = await visitor.open(view, { colorScheme });
    if (PICTURES !== undefined) {
      mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: join(PICTURES, `${view}-${colorScheme}.png`), fullPage: true });
    }
    await expect.poll(() => page.locator(".trouble").count()).toBe(0);
    await expect.poll(() => page.locator("main img, main script").count()).toBe(0);
    expect(await page.evaluate(() => "pgdynoHit" in window)).toBe(false);
    expect(complaints).toEqual([]);
    expect(await findings(page)).toEqual([]);
  });
});

test.each(Object.keys(VIEWS))("%s at 390 px, dark: nothing scrolls sideways", async (view) => {
  const { page, complaints } = await visitor.open(view, { colorScheme: "dark", viewport: { width: 390, height: 900 } });
  if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${view}-390.png`), fullPage: true });
  for (const summary of await page.locator("summary").all()) await summary.click();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBe(0);
  expect(complaints).toEqual([]);
});
