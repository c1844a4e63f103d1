import { describe, expect, test } from "vitest";
import { sampleReport } from "../sample/report.ts";
import { VARIANTS } from "../sample/variants.ts";
import { useHarness } from "./harness.ts";

/** What reports of experiments with factors have beyond the others. */
const MORE_SECTIONS: Record<string, number> = { factors: 6, ladder: 2, cores: 2, searched: 1 };

const harness = useHarness();

describe("the report", () => {
  test("shows answer, verdicts and charts, asks for nothing and complains of nothing", async () => {
    const { page, requests, complaints, url } = await harness.open(sampleReport());
    expect(await page.title()).toContain("Stock to tuned");
    expect(await page.locator("h1").innerText()).toBe("Stock to tuned, step by step");
    expect(await page.locator(".answer").innerText()).toContain("Three of six steps help");
    expect(await page.locator(".verdict-table tbody tr").count()).toBe(7);
    const wal = await page.locator(".verdict-table tbody tr").nth(2).innerText();
    expect(wal).toMatch(/undecided:\s*the interval .+ is too wide; more blocks would decide/);
    expect(await page.locator("#steps svg.plot rect").count()).toBeGreaterThanOrEqual(7);
    expect(await page.locator("#response svg.plot path").count()).toBeGreaterThan(0);
    expect(await page.locator("#time .time-chart canvas").count()).toBe(1);
    expect(await page.getByRole("img", { name: /Waterfall of throughput by step\. stock: 1,8/ }).count()).toBe(1);
    expect(requests).toEqual([url]);
    expect(complaints).toEqual([]);
  });

  test("the chart over time has ink of both treatments, and choosing changes it", async () => {
    const { page, complaints } = await harness.open(sampleReport());
    const picture = () => page.locator("#time .time-chart canvas").evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
    const before = await picture();
    await page.locator("#time").getByRole("checkbox", { name: "memory", exact: true }).check();
    await expect.poll(picture).not.toBe(before);
    await page.locator("#time").getByLabel("p95 response time, ms").check();
    expect(await page.locator("#time .time-chart").getAttribute("aria-label")).toContain("p95 response time");
    for (const name of ["stock", "memory", "read-ahead"]) await page.locator("#time").getByRole("checkbox", { name, exact: true }).uncheck();
    expect(await page.locator("#time .time-chart canvas").count()).toBe(1);
    expect(complaints).toEqual([]);
  });

  test("dragging looks closer, a double click shows all again", async () => {
    const { page } = await harness.open(sampleReport());
    const chart = page.locator("#time .u-over");
    await chart.scrollIntoViewIfNeeded();
    const picture = () => page.locator("#time .time-chart canvas").evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
    const whole = await picture();
    const box = await chart.boundingBox();
    if (box === null) throw new Error("the chart has no place on the page");
    await page.mouse.move(box.x + 200, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 350, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await expect.poll(picture).not.toBe(whole);
    await expect.poll(() => page.locator(".readout").innerText()).toMatch(/at \d+ s/);
    await page.mouse.dblclick(box.x + 300, box.y + 60);
    await expect.poll(picture).toBe(whole);
  });

  test("a chart of a study that the experiment has anyway says what the study has found", async () => {
    const { page, complaints } = await harness.open(VARIANTS.factors?.());
    const timelines = page.locator("#timelines");
    expect(await timelines.locator("h3").first().innerText()).toBe("jit is switched off under load");
    expect(await timelines.locator(".published").innerText()).toBe("[pooler-2021]: From 870 to 1,500 per second at once.");
    expect(complaints).toEqual([]);
  });

  test.each(Object.keys(VARIANTS))("the variant %s is shown whole, without complaint, at 390 px too", async (name) => {
    const { page, complaints, requests, url } = await harness.open(VARIANTS[name]?.(), { viewport: { width: 390, height: 800 } });
    expect(await page.locator("section").count()).toBe(11 + (MORE_SECTIONS[name] ?? 0));
    expect(await page.locator(".refusal").count()).toBe(0);
    expect(await page.locator("body").innerText()).not.toMatch(/NaN|undefined|Infinity|\[object|−−/);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBe(0);
    expect(complaints).toEqual([]);
    expect(requests).toEqual([url]);
  });
});

test("response times of microseconds keep their digits, everywhere on the page", async () => {
  const report = sampleReport();
  const small = (percentiles: object | null) =>
    percentiles === null ? null : { p50_ms: 0.0012, p95_ms: 0.0345, p99_ms: 0.0789, max_ms: 0.21 };
  for (const each of [...report.treatments, ...report.trials]) each.percentiles = small(each.percentiles);
  const { page } = await harness.open(report);
  expect(await page.locator("#figures").innerText()).toMatch(/34\.5 → 34\.5 µs/);
  expect(await page.locator(".verdict-table tbody tr").first().innerText()).toMatch(/0\.0345[^]*0\.0789/);
  await page.locator("#trials summary").click();
  expect(await page.getByRole("table", { name: "All trials" }).innerText()).toContain("0.0345");
});
