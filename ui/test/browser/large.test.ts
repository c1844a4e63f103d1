import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { trialElements } from "../../scripts/pack.ts";
import { SERVED } from "../../scripts/views.ts";
import { cores } from "../sample/capacity.ts";
import { hugeLadder } from "../sample/huge.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

const ODD = /NaN|undefined|Infinity|\[object/;

const overflow = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Texts of charts that overlap along an axis, or lie outside of their chart. */
function misplaced(page: Page, chart: string): Promise<string[]> {
  return page.locator(chart).evaluateAll((charts) =>
    charts.flatMap((svg) => {
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent !== "").map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
      const outside = texts.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1).map(({ text }) => `outside: ${text}`);
      const last = Math.max(...texts.map(({ box }) => box.top));
      const along = texts.filter(({ box }) => box.top < last - 4 && box.top > last - 40).toSorted((a, b) => a.box.left - b.box.left);
      const over = along.flatMap(({ text, box }, place) => ((along[place + 1]?.box.left ?? Infinity) < box.right ? [`overlap: ${text}`] : []));
      return [...outside, ...over];
    }),
  );
}

describe("a ladder up to 10,000 clients with absurd values", () => {
  test.each([390, 1280, 2560])("is drawn at %i pixels, its labels apart and inside", async (width) => {
    const { page, complaints } = await harness.open(hugeLadder(), { viewport: { width, height: 900 } });
    const chart = page.locator("#curves svg.plot");
    expect(await chart.count()).toBe(2);
    expect(await chart.first().locator("circle").count()).toBeGreaterThan(40);
    expect(await chart.first().innerHTML()).not.toMatch(ODD);
    expect(await page.locator("body").innerText()).not.toMatch(ODD);
    expect(await misplaced(page, "#curves svg.plot")).toEqual([]);
    for (const summary of await page.locator("#curves summary, #capacity summary").all()) await summary.click();
    expect(await page.locator("#curves tbody tr").last().innerText()).toContain("10,000");
    expect(await page.locator("#capacity").innerText()).toContain("extrapolated to 1.9 times");
    expect(await overflow(page)).toBe(0);
    expect(complaints).toEqual([]);
  });
});

/** A4 with the margins of print.css, in CSS pixels. */
const PAPER_WIDTH = Math.round(((210 - 28) / 25.4) * 96);

async function onPaper(page: Page): Promise<void> {
  await page.setViewportSize({ width: PAPER_WIDTH, height: 1000 });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  await page.emulateMedia({ media: "print" });
  // Charts on canvas are drawn again for paper.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Charts and tables that are wider than the paper, or whose inside is cut off. */
function cut(page: Page): Promise<string[]> {
  return page.locator(".chart, .chart svg, .chart canvas, table").evaluateAll((all) =>
    all.filter((each) => each.getClientRects().length > 0).flatMap((each) => {
      const box = each.getBoundingClientRect();
      const name = `${each.tagName} ${each.closest("section")?.id ?? ""} ${each.getAttribute("class") ?? ""}`;
      const wide = box.right > document.documentElement.clientWidth + 1 || box.left < -1 ? [`wider than the paper: ${name}`] : [];
      const inner = each.matches(".chart") && each.scrollWidth > each.clientWidth + 1 ? [`cut: ${name}`] : [];
      return [...wide, ...inner];
    }),
  );
}

describe("on A4", () => {
  test.each([["the sample", sampleReport], ["a ladder of CPUs", cores], ["10,000 clients", hugeLadder]])("%s is one page wide, and no chart is cut", async (_name, make) => {
    const { page, complaints } = await harness.open(make());
    await onPaper(page);
    await expect.poll(() => overflow(page)).toBe(0);
    await expect.poll(() => cut(page)).toEqual([]);
    const pdf = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
    // Points of an inch: A4 upright, each page.
    const boxes = [...pdf.matchAll(/\/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]/g)];
    expect(boxes.length).toBeGreaterThan(1);
    for (const [, width, height] of boxes) expect([Math.round(Number(width)), Math.round(Number(height))]).toEqual([595, 842]);
    expect(complaints).toEqual([]);
  });

  test("a trial and a comparison are one page wide, and no chart is cut", async () => {
    const report = sampleReport();
    const documents = report.trials.slice(0, 4).map((trial) => sampleTrialDocument(report, trial));
    const { page } = await harness.open(report, {}, trialElements(documents));
    for (const hash of ["#/trials/1", "#/compare?a=7:reference&b=7:memory&c=7:wal&d=7:group-commit&e=7:huge-pages"]) {
      await page.evaluate((next) => {
        location.hash = next;
      }, hash);
      await page.locator(".panel canvas").first().waitFor();
      await onPaper(page);
      await expect.poll(() => overflow(page)).toBe(0);
      await expect.poll(() => cut(page)).toEqual([]);
      await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
      await page.emulateMedia({ media: "screen" });
    }
  });
});

describe("2560 pixels over the served page", () => {
  test.each(Object.entries(SERVED))("%s uses the room and scrolls no way sideways", async (_name, hash) => {
    const { page, complaints } = await harness.openServed(served().url + hash, { viewport: { width: 2560, height: 1300 } });
    await page.locator("main h1, main h2, header h1").first().waitFor();
    if (hash.includes("trials") || hash.includes("compare")) await page.locator(".panel canvas").first().waitFor();
    expect(await overflow(page)).toBe(0);
    const content = await page.locator(".content").boundingBox();
    expect(content?.width).toBeGreaterThan(1100);
    // In the middle, or beside the contents: never at one edge of a wide screen.
    expect(content?.x).toBeGreaterThan(200);
    expect(await misplaced(page, "svg.plot")).toEqual([]);
    expect(await page.locator("body").innerText()).not.toMatch(ODD);
    expect(complaints.filter((complaint) => !complaint.includes("status of 404"))).toEqual([]);
  });
});
