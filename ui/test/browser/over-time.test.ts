import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { trialElements } from "../../scripts/pack.ts";
import type { Report } from "../../src/model.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { Harness } from "./harness.ts";

let harness: Harness;
beforeAll(() => {
  harness = new Harness();
});
afterAll(() => harness.close());

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
    await page.locator("#time summary").click();
    expect(await page.locator("#time table").innerText()).toContain("not steady yet");
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
