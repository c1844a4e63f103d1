import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { trialElements } from "../../scripts/pack.ts";
import type { Report } from "../../src/model.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { useHarness } from "./harness.ts";

const harness = useHarness();

const inkOf = (page: Page, canvas: string) => page.locator(canvas).first().evaluate((found: HTMLCanvasElement) => found.toDataURL());

/** The sample with one trial that was not steady for so long. */
function withUnsettled(seconds: number | null): Report {
  const report = sampleReport();
  for (const trial of report.trials) trial.unsettled_s = trial.treatment === "reference" && trial.block === 2 ? seconds : null;
  return report;
}

describe("what was measured before it was steady", () => {
  test("is hatched in the experiment's chart, and the legend and the table say so", async () => {
    const steady = await harness.open(withUnsettled(null));
    const { page, complaints } = await harness.open(withUnsettled(25));
    expect(await steady.page.locator("#time .shade-key").innerText()).not.toContain("steady");
    expect(await page.locator("#time .shade-key").innerText()).toContain("measured before it was steady, in 1 of 6 trials");
    expect(await inkOf(page, "#time .time-chart canvas")).not.toBe(await inkOf(steady.page, "#time .time-chart canvas"));
    await page.locator("#time summary").first().click();
    expect(await page.locator("#time table").first().innerText()).toContain("not steady yet");
    expect(complaints).toEqual([]);
  });

  test("is hatched in all charts of the trial", async () => {
    const charts = async (seconds: number | null) => {
      const report = withUnsettled(seconds);
      const trial = report.trials.find(({ treatment, block }) => treatment === "reference" && block === 2);
      if (trial === undefined) throw new Error("no sample");
      const opened = await harness.open(report, {}, trialElements([sampleTrialDocument(report, trial)]));
      await opened.page.evaluate((id) => {
        location.hash = `#/trials/${String(id)}`;
      }, trial.id);
      await opened.page.locator(".panel canvas").first().waitFor();
      return { legend: await opened.page.locator(".shade-key").innerText(), ink: await inkOf(opened.page, ".panel canvas") };
    };
    const [steady, late] = [await charts(null), await charts(25)];
    expect(steady.legend).not.toContain("steady");
    expect(late.legend).toContain("measured before it was steady: 25 seconds");
    expect(late.ink).not.toBe(steady.ink);
  });
});

describe("the experiment's chart over time", () => {
  const range = (page: Page) => page.locator("#time .time-range").innerText();

  test("is a figure with a name and words on its use, and obeys the keyboard", async () => {
    const { page, complaints } = await harness.open(sampleReport());
    const figure = page.getByRole("figure", { name: "Throughput over time" });
    await figure.focus();
    const help = await figure.evaluate((found) => document.getElementById(found.getAttribute("aria-describedby") ?? "")?.innerText);
    expect(help).toContain("← → move, + − zoom, Home shows all");
    const whole = await inkOf(page, "#time .time-chart canvas");
    for (const [key, stretch] of [["+", "30 s – 120 s"], ["ArrowRight", "48 s – 138 s"], ["ArrowLeft", "30 s – 120 s"], ["-", "0 s – 150 s"], ["+", "30 s – 120 s"]] as const) {
      await page.keyboard.press(key);
      await expect.poll(() => range(page)).toContain(stretch);
    }
    await expect.poll(() => inkOf(page, "#time .time-chart canvas")).not.toBe(whole);
    await page.keyboard.press("Home");
    await expect.poll(() => range(page)).toContain("0 s – 150 s");
    await expect.poll(() => inkOf(page, "#time .time-chart canvas")).toBe(whole);
    expect(complaints).toEqual([]);
  });

  test("shows the same stretch when something else is drawn, and in other colours and widths", async () => {
    const { page } = await harness.open(sampleReport());
    await page.locator("#time").getByRole("button", { name: "Zoom in" }).click();
    await expect.poll(() => range(page)).toContain("30 s – 120 s");
    const box = await page.locator("#time .u-over").boundingBox();
    const zoomed = await inkOf(page, "#time .time-chart canvas");
    await page.locator("#time").getByRole("checkbox", { name: "memory", exact: true }).check();
    await expect.poll(() => inkOf(page, "#time .time-chart canvas")).not.toBe(zoomed);
    await page.locator("#time").getByRole("checkbox", { name: "memory", exact: true }).uncheck();
    await expect.poll(() => inkOf(page, "#time .time-chart canvas")).toBe(zoomed);
    await page.locator("#time").getByLabel("p95 response time, ms").check();
    await page.getByRole("button", { name: /^Colours/ }).click();
    await page.setViewportSize({ width: 1000, height: 900 });
    await expect.poll(async () => (await page.locator("#time .u-over").boundingBox())?.width).not.toBe(box?.width);
    expect(await range(page)).toContain("30 s – 120 s");
  });

  test.each(["#time figure", ".panels"])("%s looks nothing up while it is zoomed", async (figure) => {
    const report = sampleReport();
    const { page } = await harness.open(report, {}, trialElements(report.trials.slice(0, 1).map((trial) => sampleTrialDocument(report, trial))));
    if (figure === ".panels") {
      await page.evaluate(() => {
        location.hash = "#/trials/1";
      });
    }
    await page.locator(`${figure} canvas`).first().waitFor();
    await page.locator(figure).first().focus();
    await page.evaluate(() => {
      const counted = window as unknown as { lookups: number };
      const lookUp = window.getComputedStyle.bind(window);
      counted.lookups = 0;
      window.getComputedStyle = (...args) => {
        counted.lookups += 1;
        return lookUp(...args);
      };
    });
    const before = await inkOf(page, `${figure} canvas`);
    for (const key of ["+", "+", "ArrowRight", "-", "ArrowLeft"]) await page.keyboard.press(key);
    await expect.poll(() => inkOf(page, `${figure} canvas`)).not.toBe(before);
    expect(await page.evaluate(() => (window as unknown as { lookups: number }).lookups)).toBe(0);
  });

  test("nothing on the page claims to be an application", async () => {
    const report = sampleReport();
    const { page } = await harness.open(report, {}, trialElements(report.trials.slice(0, 1).map((trial) => sampleTrialDocument(report, trial))));
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    await page.getByRole("figure", { name: "Charts over time" }).waitFor();
    expect(await page.locator("[role=application]").count()).toBe(0);
  });
});
