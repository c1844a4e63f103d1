import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { trialElements } from "../../scripts/pack.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { type Opened, useHarness } from "./harness.ts";

const harness = useHarness();

const report = sampleReport();
const documents = report.trials.slice(0, 4).map((trial) => sampleTrialDocument(report, trial));

async function openTrial(options = {}): Promise<Opened> {
  const opened = await harness.open(report, options, trialElements(documents));
  await opened.page.evaluate(() => {
    location.hash = "#/trials/2";
  });
  await opened.page.locator(".panel canvas").first().waitFor();
  return opened;
}

const range = (page: Page) => page.locator(".time-range").innerText();
const picture = (page: Page, place: number) => page.locator(".panel canvas").nth(place).evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());

describe("a trial in a report file", () => {
  test("opens from the table of trials, unpacked, without asking for anything", async () => {
    const { page, requests, complaints, url } = await harness.open(report, {}, trialElements(documents));
    await page.locator("#trials summary").click();
    await page.getByRole("link", { name: "block 1, no. 2" }).first().click();
    await page.locator(".panel canvas").first().waitFor();
    expect(await page.locator(".panel").count()).toBe(8);
    expect(await page.locator("h1").innerText()).toContain("block 1");
    expect(await page.locator(".chooser > summary").innerText()).toContain("8 of");
    expect(requests.filter((request) => !request.startsWith("blob:") && !request.startsWith("data:"))).toEqual([url]);
    expect(complaints).toEqual([]);
    await page.getByRole("navigation", { name: "Where this is" }).getByRole("link").first().click();
    await page.locator("#figures").waitFor();
  });

  test("dragging looks closer in all charts, a double click shows all, keys do the same", async () => {
    const { page, complaints } = await openTrial();
    const [beside, below] = [await picture(page, 1), await picture(page, 6)];
    const box = await page.locator(".panel .u-over").first().boundingBox();
    if (box === null) throw new Error("the chart has no place on the page");
    await page.mouse.move(box.x + 300, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => range(page)).not.toContain("0:00 – 2:30");
    await expect.poll(() => picture(page, 1)).not.toBe(beside);
    // What is out of view follows when it comes into it.
    await page.locator(".panel").nth(6).scrollIntoViewIfNeeded();
    await expect.poll(() => picture(page, 6)).not.toBe(below);
    await page.locator(".panel").first().scrollIntoViewIfNeeded();
    const again = await page.locator(".panel .u-over").first().boundingBox();
    await page.mouse.dblclick((again ?? box).x + 300, (again ?? box).y + 90);
    await expect.poll(() => range(page)).toContain("0:00 – 2:30");
    await page.locator(".panels").focus();
    await page.keyboard.press("+");
    await expect.poll(() => range(page)).toContain("0:30 – 2:00");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => range(page)).toContain("0:48 – 2:18");
    await page.keyboard.press("0");
    await expect.poll(() => range(page)).toContain("0:00 – 2:30");
    expect(complaints).toEqual([]);
  });

  test("series are found by words and drawn; marks can be left out", async () => {
    const { page, complaints } = await openTrial();
    await page.locator(".chooser > summary").click();
    await page.getByRole("searchbox", { name: "Search series" }).fill("run queue");
    await page.getByLabel("CPU: run queue").check();
    await page.getByRole("heading", { name: "CPU: run queue" }).waitFor();
    const before = await picture(page, 0);
    await page.getByLabel("1 checkpoint").uncheck();
    await expect.poll(() => picture(page, 0)).not.toBe(before);
    await page.getByRole("button", { name: "Remove CPU: run queue" }).click();
    await expect.poll(() => page.locator(".panel").count()).toBe(8);
    expect(complaints).toEqual([]);
  });

  test("the table behind the charts follows the zoom, statements are sorted by their headings", async () => {
    const { page } = await openTrial();
    await page.getByText("The same as a table: least").click();
    const cell = page.getByRole("row", { name: /Throughput: committed/ });
    const whole = await cell.innerText();
    await page.locator(".panels").focus();
    for (let press = 0; press < 4; press += 1) await page.keyboard.press("+");
    await expect.poll(() => cell.innerText()).not.toBe(whole);
    await page.getByRole("button", { name: "Calls" }).click();
    await page.getByRole("button", { name: "Calls" }).click();
    expect(await page.locator("#statements tbody tr").first().innerText()).toContain("900");
    expect(await page.locator("th[aria-sort=ascending]").innerText()).toContain("Calls");
  });

  test("each chart is given as PNG and SVG", async () => {
    const { page } = await openTrial();
    for (const [format, start] of [["SVG", "<svg"], ["PNG", "\u0089PNG"]] as const) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Save as ${format}: Throughput` }).click()]);
      expect(download.suggestedFilename()).toBe(`pgdyno-throughput.${format.toLowerCase()}`);
      const stream = await download.createReadStream();
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      const bytes = Buffer.concat(chunks);
      expect(bytes.toString("latin1").startsWith(start)).toBe(true);
      if (format !== "SVG") continue;
      const svg = bytes.toString();
      expect(svg).toMatch(/<path d="M[\d.,ML-]+"/);
      for (const wanted of [">Throughput, TPS<", ">committed<", ">Checkpoint<", ">Vacuum<", ">warm-up<", ">since the load began<"]) expect(svg).toContain(wanted);
    }
  });

  test("what is not in the file, or damaged, is said", async () => {
    const { page } = await openTrial();
    await page.evaluate(() => {
      location.hash = "#/trials/20";
    });
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("not in this file");
    await page.evaluate(() => {
      const element = document.getElementById("pgdyno-trial-3");
      if (element !== null) element.textContent = "eJwDAAAAAAE=";
      location.hash = "#/trials/3";
    });
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("damaged");
    await page.evaluate(() => {
      location.hash = "#/nothing<img src=x>";
    });
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("no such page");
  });

  test.each([390, 2560])("fits %i pixels", async (width) => {
    const { page, complaints } = await openTrial({ viewport: { width, height: 900 } });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBe(0);
    expect(complaints).toEqual([]);
  });

  test.each([
    ["no series, no waits", { series: [], waits: null, statements: [], distribution: [], latency_heat: null, marks: [] }],
    ["absurd values", { series: [{ metric: "x.y_ratio", label: null, unit: "ratio", layer: "host", title: "x: y", t_ms: [1000], values: [1e300] }, { metric: "z", label: null, unit: "", layer: "server", title: "z", t_ms: [], values: [] }], measured_s: 0, warmup_s: 1e9 }],
  ])("%s: the page stands", async (_name, change) => {
    const first = documents[0];
    if (first === undefined) throw new Error("no sample");
    const odd = { ...first, ...change } as typeof first;
    const { page, complaints } = await harness.open(report, {}, trialElements([odd]));
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    await page.locator("#settings").waitFor();
    expect(await page.locator("body").innerText()).not.toMatch(/NaN|undefined|Infinity|\[object/);
    expect(complaints).toEqual([]);
  });
});
