import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MockServer } from "../../scripts/mock-server.ts";
import { SERVED } from "../../scripts/views.ts";
import type { Report } from "../../src/model.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { VARIANTS } from "../sample/variants.ts";
import { sampleWorld } from "../sample/world.ts";
import { useHarness } from "./harness.ts";

const directory = mkdtempSync(join(tmpdir(), "pgdyno-debug-"));
const harness = useHarness();
beforeAll(async () => {
  await build({
    configFile: false,
    logLevel: "error",
    define: { "process.env.NODE_ENV": JSON.stringify("development") },
    build: {
      outDir: directory,
      cssCodeSplit: false,
      minify: false,
      lib: { entry: join(import.meta.dirname, "debug-entry.ts"), formats: ["iife"], name: "pgdyno", fileName: () => "app.js", cssFileName: "app" },
    },
  });
});
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const twice = <Item>(items: readonly Item[]): Item[] => [...items, ...items];

/** Everything that may be listed twice is. */
function doubled(report: Report): Report {
  for (const trial of report.trials) {
    trial.disturbances = twice(["a neighbour", ...trial.disturbances]);
    trial.errors = twice(trial.errors);
  }
  for (const treatment of report.treatments) {
    treatment.settings = twice(treatment.settings);
    treatment.levels = twice(treatment.levels ?? []);
  }
  for (const claim of report.claims ?? []) claim.treatments = twice(claim.treatments);
  for (const block of (report.tables ?? []).flatMap(({ blocks }) => blocks)) block.rows = twice(block.rows);
  report.facts = twice(report.facts);
  report.restored = twice(report.restored);
  report.experiment.repeat = twice(report.experiment.repeat);
  return report;
}

test("no list has a key twice, whatever is listed twice", async () => {
  const world = sampleWorld();
  const server = await MockServer.start(world, directory);
  try {
    let id = 1000;
    for (const make of Object.values(VARIANTS)) world.reports.set((id += 1), doubled(make()));
    for (const report of world.reports.values()) doubled(report);
    world.trial = (report, trial) => {
      const found = report.trials.find((each) => each.id === trial) ?? sampleReport().trials[0];
      if (found === undefined) return null;
      const document = sampleTrialDocument(report, found);
      return { ...document, series: twice(document.series), statements: twice(document.statements), errors: twice(document.errors), marks: twice(document.marks) };
    };
    world.targets = world.targets.map((target) => ({ ...target, facts: twice(target.facts ?? []), experiments: target.experiments }));
    const views = [...Object.values(SERVED), "#/targets/targets", ...Array.from({ length: id - 1000 }, (_, place) => `#/experiments/${String(1001 + place)}`)];
    const { page, complaints } = await harness.openServed(server.url);
    for (const hash of views) {
      await page.evaluate((to) => {
        location.hash = to;
      }, hash);
      await page.locator("main h1, main h2, header h1").first().waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
    }
    expect(complaints.filter((complaint) => !complaint.includes("status of 404")).map((complaint) => complaint.slice(0, 600))).toEqual([]);
  } finally {
    await server.stop();
  }
});
