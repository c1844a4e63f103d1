import { describe, expect, test } from "vitest";
import { doubtfulTrials, durabilityKnobs, unfinishedTrials, notices } from "../../src/analysis/badges.ts";
import { headlineTreatment } from "../../src/analysis/headline.ts";
import { byLayer, isOverridden, settingsMatrix } from "../../src/analysis/settings.ts";
import { meanTps } from "../../src/analysis/throughput.ts";
import { intervalSentence, quicknessWord, verdictCounts } from "../../src/analysis/verdicts.ts";
import type { Effect, Setting } from "../../src/model.ts";
import { DECISION, sampleReport } from "../sample/report.ts";
import { durabilityTraded, interrupted, noTrials, nothingFinished, oneAtATime, singleBlock } from "../sample/variants.ts";

const effect = (ratio: number, low: number, high: number, verdict: Effect["verdict"]): Effect => ({
  ratio, ratio_low: low, ratio_high: high, verdict, blocks: 3,
});

describe("headline treatment", () => {
  test("cumulative: the last step that helped, not the luckiest one that did nothing", () => {
    const report = sampleReport();
    const control = report.treatments.find((treatment) => treatment.name === "control");
    if (control?.tps) control.tps = { mean: 9_000, low: 8_900, high: 9_100 };
    expect(headlineTreatment(report)?.name).toBe("read-ahead");
  });

  test("without verdicts the last measured one stands; without measurements none does", () => {
    expect(headlineTreatment(singleBlock())?.name).toBe("control");
    expect(headlineTreatment(nothingFinished())).toBeNull();
    expect(headlineTreatment(noTrials())).toBeNull();
  });

  test("a step without an interval of its own counts by its total", () => {
    const report = sampleReport();
    const control = report.treatments.find((treatment) => treatment.name === "control");
    if (control) control.step = null;
    expect(headlineTreatment(report)?.name).toBe("control");
  });

  test("one at a time: the best of the better ones", () => {
    const report = oneAtATime();
    const better = report.treatments.filter((treatment) => treatment.total?.verdict === "better");
    const best = Math.max(...better.map((treatment) => meanTps(report, treatment) ?? 0));
    const chosen = headlineTreatment(report);
    expect(chosen && meanTps(report, chosen)).toBe(best);
  });
});

test("mean throughput comes from the trials where the report gives no interval", () => {
  const report = singleBlock();
  const [first] = report.treatments;
  expect(first?.tps).toBeNull();
  expect(first && meanTps(report, first)).toBe(report.trials.find((trial) => trial.treatment === "reference")?.tps);
});

describe("verdicts in words", () => {
  test("an interval too wide to decide is said", () => {
    expect(intervalSentence(effect(1.02, 0.979, 1.06, "undecided"), DECISION)).toBe(
      "the interval \u22122.1 … +6.0\u202f% is too wide; more blocks would decide",
    );
  });

  test("the same says within what", () => {
    expect(intervalSentence(effect(1, 0.99, 1.01, "same"), DECISION)).toBe("\u22121.0 … +1.0, within ±2.5\u202f%");
  });

  test("no gain says of what", () => {
    expect(intervalSentence(effect(0.99, 0.95, 1.05, "no-gain"), DECISION)).toBe("\u22125.0 … +5.0; a gain of 2.5\u202f% is improbable");
    expect(quicknessWord(effect(0.99, 0.95, 1.05, "no-gain"))).toBe("no gain");
  });

  test("a response time that fell is quicker, whatever its verdict is called", () => {
    expect(quicknessWord(effect(0.8, 0.7, 0.9, "better"))).toBe("quicker");
    expect(quicknessWord(effect(0.8, 0.7, 0.9, "worse"))).toBe("quicker");
    expect(quicknessWord(effect(1.2, 1.1, 1.3, "better"))).toBe("slower");
    expect(quicknessWord(effect(0.98, 0.9, 1.1, "undecided"))).toBe("undecided");
  });

  test("counts leave out what nobody got", () => {
    const better = effect(1.2, 1.1, 1.3, "better");
    expect(verdictCounts([null, better, better])).toEqual([{ verdict: "better", steps: 2 }]);
  });
});

describe("notices", () => {
  test("failed trials, interruption and traded durability are said", () => {
    expect(notices(sampleReport()).map(({ word }) => word)).toEqual(["1 trial failed"]);
    expect(notices(interrupted()).map(({ word }) => word)).toEqual(["interrupted"]);
    const [traded] = notices(durabilityTraded());
    expect(traded?.kind).toBe("grave");
    expect(traded?.detail).toContain("synchronous_commit = off");
  });

  test("a durability setting that was never tested trades nothing", () => {
    const report = durabilityTraded();
    for (const treatment of report.treatments.slice(3)) treatment.status = "not-tested";
    expect(durabilityKnobs(report)).toEqual([]);
  });

  test("excluded and doubtful trials do not mix", () => {
    const report = sampleReport();
    expect(unfinishedTrials(report).map((trial) => trial.treatment)).toEqual(["huge-pages"]);
    expect(doubtfulTrials(report).map((trial) => trial.treatment)).toEqual(["control", "wal"]);
  });
});

describe("settings", () => {
  test("the matrix has a row per knob and a cell per treatment", () => {
    const { treatments } = durabilityTraded();
    const rows = settingsMatrix(treatments);
    const risky = rows.find((row) => row.knob === "synchronous_commit");
    expect(risky?.risk).toBe("durability");
    expect(risky?.cells.map((cell) => cell?.value ?? null)).toEqual([null, null, null, "off", "off", "off", "off"]);
    expect(byLayer(rows).map(({ layer }) => layer)).toEqual(["postgres", "memory", "block"]);
  });

  test("overridden means another value, not another spelling", () => {
    const setting: Setting = { knob: "k", value: "16GB", effective: "16 gb", layer: "postgres", risk: "none", changed: true };
    expect(isOverridden(setting)).toBe(false);
    expect(isOverridden({ ...setting, effective: "8GB" })).toBe(true);
    expect(isOverridden({ ...setting, effective: null })).toBe(false);
  });
});
