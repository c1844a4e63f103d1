import { describe, expect, test } from "vitest";
import { trialElements } from "../../scripts/pack.ts";
import { SERVED } from "../../scripts/views.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { findings } from "./findings.ts";
import { useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

const THEMES = ["light", "dark"] as const;

describe.each(THEMES)("no serious finding, %s", (colorScheme) => {
  test.each(Object.keys(SERVED))("%s", async (name) => {
    const { page } = await harness.openServed(served().url + (SERVED[name] ?? ""), { colorScheme });
    await page.locator("main h1, main h2, header h1").first().waitFor();
    if (name === "trial") await page.locator(".panel canvas").first().waitFor();
    if (name === "compare") await page.locator("#response svg").waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test("a report file and its trial", async () => {
    const report = sampleReport();
    const documents = report.trials.slice(0, 2).map((trial) => sampleTrialDocument(report, trial));
    const { page } = await harness.open(report, { colorScheme }, trialElements(documents));
    expect(await findings(page)).toEqual([]);
    await page.evaluate(() => {
      location.hash = "#/trials/1";
    });
    await page.locator(".panel canvas").first().waitFor();
    expect(await findings(page)).toEqual([]);
  });
});
