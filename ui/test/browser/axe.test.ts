import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MockServer } from "../../scripts/mock-server.ts";
import { trialElements } from "../../scripts/pack.ts";
import { SERVED } from "../../scripts/views.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { sampleWorld } from "../sample/world.ts";
import { findings } from "./findings.ts";
import { Harness } from "./harness.ts";

let harness: Harness;
let server: MockServer;
beforeAll(async () => {
  harness = new Harness();
  server = await MockServer.start(sampleWorld(), join(import.meta.dirname, "../../dist"));
});
afterAll(async () => {
  await server.stop();
  await harness.close();
});

const THEMES = ["light", "dark"] as const;

describe.each(THEMES)("no serious finding, %s", (colorScheme) => {
  test.each(Object.keys(SERVED))("%s", async (name) => {
    const { page } = await harness.openServed(server.url + (SERVED[name] ?? ""), { colorScheme });
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
