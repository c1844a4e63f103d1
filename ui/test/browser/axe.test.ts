import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { MockServer } from "../../scripts/mock-server.ts";
import { trialElements } from "../../scripts/pack.ts";
import { SERVED } from "../../scripts/views.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { sampleWorld } from "../sample/world.ts";
import { Harness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

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

interface Found {
  id: string;
  impact: string | null;
  nodes: { html: string; failureSummary?: string }[];
}

/** Serious and critical findings of axe-core, each with where it is. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  // The devtools protocol is not bound by the page's policy for scripts.
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: () => Promise<{ violations: Found[] }> } };
    return (await axe.run()).violations;
  });
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary ?? ""}`));
}

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
