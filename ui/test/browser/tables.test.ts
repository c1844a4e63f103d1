import { describe, expect, test } from "vitest";
import { trialElements } from "../../scripts/pack.ts";
import { factors } from "../sample/factors.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { useHarness } from "./harness.ts";

const harness = useHarness();

describe("behind each chart stands its table", () => {
  test("of factors' effects", async () => {
    const { page, complaints } = await harness.open(factors());
    await page.locator("#effects summary").click();
    const rows = page.locator("#effects tbody tr");
    expect(await rows.count()).toBe(3);
    expect(await rows.first().innerText()).toMatch(/Pooler pgbouncer\s+\+20\.0\s%\s+\+18\.2 … \+21\.8\s+.*better/);
    expect(await rows.last().innerText()).toContain("not known");
    expect(complaints).toEqual([]);
  });

  test("of the heat of seconds", async () => {
    const { page } = await harness.open(sampleReport());
    await page.locator(".heat summary").click();
    await expect.poll(() => page.locator(".heat tbody tr").count()).toBeGreaterThan(5);
    expect(await page.locator(".heat tbody tr").first().innerText()).toMatch(/^0:00 – 0:\d\d/);
  });

  test("of a trial's response times", async () => {
    const report = sampleReport();
    const documents = report.trials.slice(0, 1).map((trial) => sampleTrialDocument(report, trial));
    const { page } = await harness.open(report, {}, trialElements(documents));
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    const folded = page.locator("#response summary");
    await folded.first().waitFor();
    expect(await folded.count()).toBe(2);
    for (const summary of await folded.all()) await summary.click();
    expect(await page.getByRole("row", { name: /^this trial/ }).count()).toBe(1);
    await expect.poll(() => page.getByRole("table", { name: /Response times over time/ }).getByRole("row").count()).toBeGreaterThan(5);
  });
});
