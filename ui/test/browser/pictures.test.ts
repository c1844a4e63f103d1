import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { trialElements } from "../../scripts/pack.ts";
import type { Mark } from "../../src/model.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { useHarness } from "./harness.ts";

const harness = useHarness();

async function saved(page: Page, button: string): Promise<Buffer> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button, exact: true }).click()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Draws a saved SVG alone and says what is outside of it. */
async function outside(page: Page, svg: string): Promise<string[]> {
  await page.setContent(svg);
  return page.evaluate(() => {
    const frame = document.querySelector("svg")?.getBoundingClientRect();
    if (frame === undefined) return ["no picture"];
    return [...document.querySelectorAll("text")].filter((text) => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
    }).map((text) => text.textContent);
  });
}

const MARKS: Mark[] = [
  { at_ms: 40_000, until_ms: 85_000, kind: "checkpoint", text: "checkpoint" },
  { at_ms: 70_000, until_ms: 74_000, kind: "disturbance", text: "stolen" },
];

describe("saved pictures over time", () => {
  test("of an experiment have title, unit, warm-up, marks and the treatments' names", async () => {
    const report = sampleReport();
    for (const trial of report.trials) trial.marks = MARKS;
    const { page, complaints } = await harness.open(report);
    for (const name of ["memory", "huge pages"]) await page.locator("#time").getByRole("checkbox", { name, exact: true }).check();
    const svg = (await saved(page, "Save as SVG: Throughput over time")).toString();
    for (const wanted of [">Throughput over time, TPS<", ">stock<", ">memory<", ">huge pages<", ">Checkpoint<", ">Disturbance<", ">warm-up<", ">not steady yet<", ">seconds since the load began<"]) expect(svg).toContain(wanted);
    expect(svg).toContain('clip-path="url(#unsettled-');
    expect(svg).not.toMatch(/NaN|undefined|var\(/);
    expect((await saved(page, "Save as PNG: Throughput over time")).length).toBeGreaterThan(20_000);
    expect(complaints).toEqual([]);
    expect(await outside(page, svg)).toEqual([]);
  });

  test("of a heat map are vectors with title, scales and what the colours stand for", async () => {
    const report = sampleReport();
    const documents = report.trials.slice(0, 1).map((trial) => sampleTrialDocument(report, trial));
    const { page, complaints } = await harness.open(report, {}, trialElements(documents));
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    await page.locator(".heat-chart canvas").waitFor();
    const svg = (await saved(page, "Save as SVG: Response times over time")).toString();
    for (const wanted of [">Response times over time<", ">response time, ms<", ">since the load began<", ">transactions<", ">1:00<"]) expect(svg).toContain(wanted);
    expect(svg).not.toMatch(/NaN|undefined|var\(|<image/);
    expect((svg.match(/<rect/g) ?? []).length).toBeGreaterThan(100);
    expect((await saved(page, "Save as PNG: Response times over time")).length).toBeGreaterThan(10_000);
    expect(complaints).toEqual([]);
    expect(await outside(page, svg)).toEqual([]);
  });

  test("of a heat map have their legend inside the picture at 390 pixels too", async () => {
    const report = sampleReport();
    const documents = report.trials.slice(0, 1).map((trial) => sampleTrialDocument(report, trial));
    const { page } = await harness.open(report, { viewport: { width: 390, height: 900 } }, trialElements(documents));
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    await page.locator(".heat-chart canvas").waitFor();
    const svg = (await saved(page, "Save as SVG: Response times over time")).toString();
    expect(svg).toContain(">transactions<");
    expect(await outside(page, svg)).toEqual([]);
  });

  test("of a stack have its parts by name, at 390 pixels inside the picture too", async () => {
    const report = sampleReport();
    const documents = report.trials.slice(0, 1).map((trial) => sampleTrialDocument(report, trial));
    const { page } = await harness.open(report, { viewport: { width: 390, height: 900 } }, trialElements(documents));
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    await page.locator(".panel canvas").first().waitFor();
    const svg = (await saved(page, "Save as SVG: CPU, of all")).toString();
    // A gap parts an area in two, each of which goes down to zero by itself.
    for (const area of svg.match(/<path d="M[^"]+Z"/g) ?? []) expect((area.match(/M/g) ?? []).length).toBe((area.match(/Z/g) ?? []).length);
    expect(svg).toMatch(/<path d="M[^"]+ZM[^"]+Z"/);
    for (const wanted of [">CPU, of all, %<", ">user<", ">steal<", ">Vacuum<"]) expect(svg).toContain(wanted);
    expect(svg).not.toMatch(/NaN|undefined|var\(/);
    expect(await outside(page, svg)).toEqual([]);
  });
});
