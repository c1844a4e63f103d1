import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { trialElements } from "../../scripts/pack.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { findings } from "./findings.ts";
import { type Opened, useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

const MANY = "#/compare?a=7:reference&b=7:memory&c=7:wal&d=7:group-commit&e=7:huge-pages&f=7:read-ahead&g=7:control&h=7/4";
const ODD = /NaN|undefined|Infinity|\[object/;

const report = sampleReport();
const documents = report.trials.slice(0, 4).map((trial) => sampleTrialDocument(report, trial));

async function inFile(trials = trialElements(documents)): Promise<Opened> {
  const opened = await harness.open(report, {}, trials);
  await opened.page.getByRole("link", { name: "Compare treatments or trials" }).click();
  await opened.page.locator(".compare-table").first().waitFor();
  return opened;
}

const overflow = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

describe("in a report file", () => {
  test("treatments are compared without asking for anything, and sides are added, moved and removed", async () => {
    const { page, complaints, requests, url } = await inFile();
    expect(page.url()).toContain("a=7%3Areference&b=7%3Aread-ahead");
    expect(await page.locator(".answer").innerText()).toMatch(/^B: throughput \+\d.* without an interval/);
    expect(await page.locator(".lede").first().innerText()).toContain("no verdicts");
    await page.getByRole("button", { name: "Add a side" }).click();
    await expect.poll(() => page.url()).toContain("c=7%3Amemory");
    await expect.poll(() => page.getByRole("table", { name: "What is compared" }).getByRole("row").count()).toBe(4);
    await expect.poll(() => page.getByRole("table", { name: /^Figures/ }).getByRole("columnheader").count()).toBe(4);
    await page.getByRole("button", { name: "Hold the others against C" }).click();
    await expect.poll(() => page.url()).toContain("a=7%3Amemory&b=7%3Areference&c=7%3Aread-ahead");
    await page.getByRole("button", { name: "Remove B" }).click();
    await expect.poll(() => page.locator(".side-picker").count()).toBe(2);
    await page.getByRole("button", { name: "All treatments of this experiment" }).click();
    await expect.poll(() => page.getByRole("table", { name: "What is compared" }).getByRole("row").count()).toBe(8);
    expect(await page.locator("#settings").innerText()).toContain("shared_buffers");
    expect(requests.filter((request) => !/^(blob|data):/.test(request))).toEqual([url]);
    expect(complaints).toEqual([]);
    expect(await page.locator("body").innerText()).not.toMatch(ODD);
  });

  test("series stand on one axis of time, any of them by its name; the table holds them", async () => {
    const { page, complaints } = await inFile();
    await page.goto(`${page.url().split("#")[0] ?? ""}#/compare?a=7/1&b=7/2&c=7/3`);
    await page.locator(".panel canvas").first().waitFor();
    expect(await page.locator(".panel h3").allInnerTexts()).toEqual(["Throughput", "Response time, p99 by classes"]);
    expect(await page.locator(".panel").first().locator(".panel-keys li").allInnerTexts()).toEqual(["A · trial 1", "B · trial 2", "C · trial 3"]);
    await page.locator(".chooser > summary").click();
    await page.getByRole("searchbox", { name: "Search series" }).fill("run queue");
    await page.getByLabel("CPU: run queue").check();
    await page.getByRole("heading", { name: "CPU: run queue" }).waitFor();
    await page.locator(".panels").focus();
    await page.keyboard.press("+");
    await expect.poll(() => page.locator(".time-range").innerText()).toContain("0:30 – 2:00");
    await page.getByText("The same as a table: least").click();
    await expect.poll(() => page.getByRole("row", { name: /^CPU: run queue: B · trial 2/ }).count()).toBe(1);
    // What was chosen stays while sides come.
    await page.getByRole("button", { name: "Add a side" }).click();
    await expect.poll(() => page.locator(".panel").nth(2).locator(".panel-keys li").count()).toBe(4);
    // Curves of trials come with their documents; the table has what is drawn.
    await expect.poll(() => page.locator("#response svg.plot g[aria-label], #response svg.plot path").count()).toBeGreaterThan(3);
    await page.locator("#response summary").click();
    expect(await page.locator("#response tbody tr").count()).toBe(4);
    expect(complaints).toEqual([]);
  });

  test("without details the report's own seconds are drawn; what is not there is said", async () => {
    const { page, complaints } = await inFile("");
    await page.locator(".panel canvas").first().waitFor();
    expect(await page.locator(".panel h3").allInnerTexts()).toEqual(["Throughput", "Response time, p95"]);
    await page.evaluate(() => {
      location.hash = "#/compare?a=7:reference&b=7:nobody<img>&c=8";
    });
    await expect.poll(() => page.locator("main").innerText()).toContain("There is no such treatment or trial: B.");
    expect(complaints).toEqual([]);
  });
});

describe("with a server", () => {
  test("eight sides are each held against the first; what cannot be is said beside it", async () => {
    const { page, complaints, requests } = await harness.openServed(served().url + MANY);
    await expect.poll(() => page.locator(".answers li").count()).toBe(6);
    expect(await page.locator(".answers li").nth(3).innerText()).toContain("E is better: throughput +18.2");
    expect(requests.filter((request) => request.includes("/api/compare")).length).toBe(6);
    expect(await page.locator(".side-picker").last().innerText()).toContain("A trial is compared with a trial");
    expect(await page.getByRole("table", { name: /^Figures/ }).getByRole("columnheader").count()).toBe(8);
    expect(await page.getByRole("button", { name: "Add a side" }).count()).toBe(0);
    await page.locator(".panel canvas").first().waitFor();
    expect(await page.locator("body").innerText()).not.toMatch(ODD);
    expect(complaints.filter((complaint) => !complaint.includes("status of 404"))).toEqual([]);
  });

  test.each([390, 1280, 2560])("at %i pixels eight sides make nothing scroll sideways", async (width) => {
    const { page } = await harness.openServed(served().url + MANY, { viewport: { width, height: 900 } });
    await page.locator(".panel canvas").first().waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
    expect(await overflow(page)).toBe(0);
  });

  test("eight sides have no serious finding of axe", async () => {
    const { page } = await harness.openServed(served().url + MANY, { colorScheme: "dark" });
    await page.locator(".panel canvas").first().waitFor();
    expect(await findings(page)).toEqual([]);
  });
});

describe("a side that cannot be had for a while", () => {
  const THREE = "#/compare?a=7/1&b=7/2&c=7/3";

  test("is not drawn coarser without a word: it is said, and tried again", async () => {
    served().world.broken = "/api/experiments/7/trials/2";
    const { page } = await harness.openServed(served().url + THREE);
    await expect.poll(() => page.locator("#over-time .stale").innerText()).toMatch(/B · trial 2: its trial is not drawn\..*the store is locked.*tried again by itself/);
    expect(await page.locator("#response .stale").innerText()).toContain("B · trial 2: of its curve only some percentiles are known");
    expect(await page.locator(".panel").first().locator(".panel-keys li").allInnerTexts()).toEqual(["A · trial 1", "C · trial 3"]);
    delete served().world.broken;
    await expect.poll(() => page.locator(".stale").count()).toBe(0);
    expect(await page.locator(".panel").first().locator(".panel-keys li").allInnerTexts()).toEqual(["A · trial 1", "B · trial 2", "C · trial 3"]);
  });

  test("is compared when it can be, and the others are not asked for again", async () => {
    served().world.broken = "/api/compare?a=7%2F1&b=7%2F2";
    const { page } = await harness.openServed(served().url + THREE);
    await expect.poll(() => page.locator(".answers li").first().innerText()).toMatch(/^B: the store is locked.*tried again by itself/);
    delete served().world.broken;
    await expect.poll(() => page.locator(".answers li").first().innerText()).toContain("B is better");
    const asked = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => new URL(name)).filter(({ pathname }) => pathname === "/api/compare").map(({ search }) => search));
    expect(asked.filter((search) => search.includes("b=7%2F3"))).toHaveLength(1);
    expect(asked.filter((search) => search.includes("b=7%2F2")).length).toBeGreaterThan(1);
  });
});
