import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { sampleReport } from "../sample/report.ts";
import { useHarness } from "./harness.ts";

const harness = useHarness();

const background = (page: Page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

/** Goes through the page with the Tab key and names what gets the focus. */
async function tabThrough(page: Page): Promise<string[]> {
  const names: string[] = [];
  for (let step = 0; step < 120; step += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === null || element === document.body) return null;
      return `${element.tagName.toLowerCase()} ${element.getAttribute("aria-label") ?? element.textContent}`.trim();
    });
    if (name === null) break;
    names.push(name);
  }
  return names;
}

describe("keyboard", () => {
  test("reaches contents, choices, folded parts, tables and copy buttons", async () => {
    const { page } = await harness.open(sampleReport());
    const reached = (await tabThrough(page)).join("\n");
    for (const wanted of [
      "a Key figures", "button Colours: auto", "input", "summary The same as a table", "summary All 21 trials",
      "div Settings of each treatment", "button Copy – Command 1", "button Copy – Experiment file",
    ]) {
      expect(reached).toContain(wanted);
    }
  });

  test("unfolds the list of trials", async () => {
    const { page } = await harness.open(sampleReport());
    await page.locator("#trials summary").focus();
    await page.keyboard.press("Enter");
    expect(await page.getByRole("table", { name: "All trials" }).getByRole("row").count()).toBe(22);
  });
});

describe("colours", () => {
  test("follow the system, and the button overrules it", async () => {
    const { page } = await harness.open(sampleReport(), { colorScheme: "dark" });
    const dark = await background(page);
    await page.emulateMedia({ colorScheme: "light" });
    await expect.poll(() => background(page)).not.toBe(dark);
    const light = await background(page);
    const button = page.getByRole("button", { name: /^Colours/ });
    await button.click();
    expect(await background(page)).toBe(light);
    await button.click();
    await expect.poll(() => background(page)).toBe(dark);
    await page.reload();
    await expect.poll(() => background(page)).toBe(dark);
  });

  test("paper is light, one page wide, and has the folded list", async () => {
    const { page } = await harness.open(sampleReport(), { colorScheme: "dark" });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    await page.emulateMedia({ media: "print" });
    expect(await background(page)).toBe("rgb(255, 255, 255)");
    expect(await page.locator("#trials details").getAttribute("open")).not.toBeNull();
    expect(await page.locator(".contents").isVisible()).toBe(false);
    expect((await page.pdf({ preferCSSPageSize: true })).length).toBeGreaterThan(20_000);
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    await page.emulateMedia({ media: "screen" });
    expect(await page.locator("#trials details").getAttribute("open")).toBeNull();
    await expect.poll(() => background(page)).not.toBe("rgb(255, 255, 255)");
  });
});

describe("small and large screens", () => {
  test.each([390, 768, 1100, 1280, 1920, 2560])("at %d px nothing makes the page scroll sideways", async (width) => {
    const { page } = await harness.open(sampleReport(), { viewport: { width, height: 900 } });
    for (const summary of await page.locator("summary").all()) await summary.click();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBe(0);
  });

  test("rows that became cards are still a table to a screen reader", async () => {
    const { page } = await harness.open(sampleReport(), { viewport: { width: 390, height: 900 } });
    const table = page.getByRole("table", { name: /^Verdicts/ });
    expect(await table.getByRole("rowheader").count()).toBe(7);
    expect(await table.getByRole("columnheader").count()).toBe(10);
  });
});

describe("copying", () => {
  test("a refused clipboard leaves the text selected", async () => {
    const { page } = await harness.open(sampleReport());
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("refused"));
    });
    await page.getByRole("button", { name: "Copy – Command 1" }).click();
    const selected = await page.locator(".copy textarea").evaluate((area: HTMLTextAreaElement) => area.value.slice(area.selectionStart, area.selectionEnd));
    expect(selected).toBe("pgdyno run stock-to-tuned.toml --seed 20251118");
  });

  test("a granted one takes the text", async () => {
    const { page } = await harness.open(sampleReport());
    await page.evaluate(() => {
      navigator.clipboard.writeText = (text) => {
        document.title = text;
        return Promise.resolve();
      };
    });
    await page.getByRole("button", { name: "Copy – Command 2" }).click();
    await expect.poll(() => page.title()).toBe("pgdyno report 7 --out report.html");
  });
});
