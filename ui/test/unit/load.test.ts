import { expect, test } from "vitest";
import { loadReport } from "../../src/load.ts";
import { sampleReport } from "../sample/report.ts";

function refusal(text: string | null): string {
  const loaded = loadReport(text);
  return loaded.ok ? "accepted" : `${loaded.heading} ${loaded.advice}`;
}

test("a report is taken as it is", () => {
  const report = sampleReport();
  const loaded = loadReport(JSON.stringify(report));
  expect(loaded.ok && loaded.report).toEqual(report);
});

test.each([
  [null, "no measurements"],
  ["  ", "no measurements"],
  ['{"format": "pgdyno-rep', "damaged"],
  ['{"format": "pgdyno-report/2"}', "“pgdyno-report/2”"],
  ["[]", "no format"],
  ["null", "no format"],
  ['{"format": "pgdyno-report/1", "experiment": {}, "trials": []}', "Missing: decision, treatments, facts, restored"],
])("%s is refused with a sentence that helps", (text, expected) => {
  expect(refusal(text)).toContain(expected);
});
