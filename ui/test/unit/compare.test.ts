import { describe, expect, test } from "vitest";
import { merged } from "../../src/compare/merged.ts";
import { choicesOf, commonWarmup, endOf, firstChoice, panelOfSides, seriesOf, seriesOfReport, type Drawn } from "../../src/compare/series.ts";
import { figureTitle, plainComparison, settingLines, settingsDiffer, sideOf } from "../../src/compare/side.ts";
import { eachTreatment, firstSides, nextSide, parseSpec, trialOf, type Spec } from "../../src/compare/spec.ts";
import { answerOf } from "../../src/compare/words.ts";
import type { Comparison } from "../../src/model.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { nothingFinished } from "../sample/variants.ts";
import { COMPARISON } from "../sample/world.ts";

const report = sampleReport();

function spec(text: string): Spec {
  const found = parseSpec(text);
  if (found === null) throw new Error(`no side: ${text}`);
  return found;
}

function drawn(place: number, trial: number, seconds = 150): Drawn {
  const own = report.trials.find(({ id }) => id === trial);
  if (own === undefined) throw new Error("no sample");
  const document = sampleTrialDocument(report, own, seconds);
  return { place, title: `side ${String(place)}`, trial, warmup_s: document.warmup_s, measured_s: document.measured_s, series: seriesOf(document) };
}

describe("sides", () => {
  test("begin with the reference and what the answer is about", () => {
    expect(firstSides(report)).toEqual(["7:reference", "7:read-ahead"]);
    expect(eachTreatment(report)).toHaveLength(7);
    expect(firstSides(nothingFinished()).length).toBe(2);
  });

  test.each([
    ["7:reference,7:memory", "7:wal"],
    ["7:reference,7:wal", "7:memory"],
    ["7/1", "7/2"],
    ["8", ""],
    ["", ""],
  ])("after %s comes %s", (sides, expected) => {
    expect(nextSide(report, sides.split(",").map(parseSpec))).toBe(expected);
  });

  test("of a treatment the middle trial is drawn, of those that can be looked at", () => {
    const own = report.trials.filter(({ treatment, status }) => treatment === "memory" && status === "finished").toSorted((a, b) => (a.tps ?? 0) - (b.tps ?? 0));
    expect(trialOf(report, spec("7:memory"), () => true)).toBe(own[1]?.id);
    expect(trialOf(report, spec("7:memory"), (id) => id === own[0]?.id)).toBe(own[0]?.id);
    expect(trialOf(report, spec("7/3"), () => false)).toBe(3);
    expect(trialOf(report, spec("7/999"), () => true)).toBeNull();
    expect(trialOf(report, spec("7:nobody"), () => true)).toBeNull();
  });

  test("settings that all share are no difference", () => {
    const [a, b] = [sideOf(report, spec("7:reference")), sideOf(report, spec("7:memory"))];
    if (a === null || b === null) throw new Error("no sample");
    const rows = settingsDiffer([a.settings, b.settings, b.settings]);
    expect(rows.map(({ knob }) => knob)).toContain("shared_buffers");
    expect(rows.every(({ values }) => values.length === 3 && values[1] === values[2])).toBe(true);
    expect(settingsDiffer([b.settings, b.settings])).toEqual([]);
  });
});

test("settings that differ are copied as lines of one side", () => {
  const rows = [{ knob: "shared_buffers", values: [null, "8GB"] }, { knob: "vm.swappiness", values: ["60", "1"] }];
  expect(settingLines(rows, 0)).toBe("# shared_buffers: as it was\nvm.swappiness = 60");
  expect(settingLines(rows, 1)).toBe("shared_buffers = 8GB\nvm.swappiness = 1");
  expect(settingLines([], 0)).toBe("");
});

describe("figures", () => {
  const other: Comparison = { ...COMPARISON, pairs: COMPARISON.pairs.map((pair) => ({ ...pair, b: "experiment 7, wal", rows: pair.rows.slice(0, 1), differs: [{ what: "wal_compression", a: "off", b: "lz4" }] })) };

  test("of one first side are in one table; what a side lacks differs from zero", () => {
    const [table, ...more] = merged([COMPARISON, null, other]);
    expect(more).toEqual([]);
    expect(table?.columns).toEqual([{ place: 1, title: "experiment 7, memory", why_no_verdict: null }, { place: 3, title: "experiment 7, wal", why_no_verdict: null }]);
    expect(table?.rows.map(({ metric }) => metric)).toEqual(["tps", "p95_ms", "wal_bytes_per_tx", "energy_j_per_tx"]);
    expect(table?.rows[1]?.others[1]).toBeNull();
    expect(table?.differs).toEqual([
      { what: "shared_buffers", first: "128MB", others: ["8GB", "128MB"] },
      { what: "wal_compression", first: "off", others: ["off", "lz4"] },
    ]);
    expect(merged([null])).toEqual([]);
  });

  test("of experiments as a whole there is a table for each treatment", () => {
    const whole: Comparison = { ...COMPARISON, pairs: ["stock", "memory"].map((name) => ({ a: `experiment 7, ${name}`, b: `experiment 8, ${name}`, rows: [], why_no_verdict: "it is not over", differs: [] })) };
    expect(merged([whole]).map(({ first }) => first)).toEqual(["experiment 7, stock", "experiment 7, memory"]);
    expect(merged([whole])[0]?.columns).toEqual([{ place: 1, title: "experiment 8, stock", why_no_verdict: "it is not over" }]);
  });

  test("the answer names the side", () => {
    expect(answerOf("B", COMPARISON)).toBe("B is better: throughput +18.2\u202f% (+15.1 … +21.4).");
    expect(answerOf("C", { ...COMPARISON, pairs: [] })).toContain("no figure in common");
    const [a, b] = [sideOf(report, spec("7/1")), sideOf(report, spec("7/2"))];
    if (a === null || b === null) throw new Error("no sample");
    expect(answerOf("D", plainComparison(a, b))).toMatch(/^D: throughput .* without an interval\.$/);
  });
});

test.each([
  ["tps", "Throughput", "TPS"],
  ["dtlb_load_misses", "TLB misses, loads per transaction", ""],
  ["page_faults", "Page faults per transaction", ""],
  ["task_clock_ms", "Task clock per transaction", "ms"],
  ["disk_read_bytes_per_tx", "Read from disk per transaction", "bytes"],
  ["job_s", "Time of the job", "s"],
  ["rows_bytes_per_s", "rows", "bytes/s"],
])("%s is titled with what it is per", (metric, title, unit) => {
  expect(figureTitle(metric)).toEqual({ title, unit });
});

describe("series of sides", () => {
  const sides = [drawn(0, 1), drawn(2, 3, 60)];

  test("are drawn in the colours of their sides; those of labels and waits differ", () => {
    const ids = choicesOf(sides).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["tps", "p99_ms", "cpu.user_ratio all", "cpu.user_ratio cpu1", "waits.sessions IO"]));
    expect(new Set(ids).size).toBe(ids.length);
    expect(firstChoice(sides)).toEqual(["tps", "p99_ms"]);
    const panel = panelOfSides(sides, "cpu.user_ratio cpu1");
    expect(panel).toMatchObject({ title: "CPU: user, cpu1", unit: "ratio", stacked: false });
    expect(panel?.styles?.map(({ variable }) => variable)).toEqual(["--t0", "--t2"]);
    expect(panelOfSides(sides, "nothing")).toBeNull();
  });

  test("the p99 is read off inside its class", () => {
    const document = sampleTrialDocument(report, report.trials[0] ?? (() => { throw new Error("no sample"); })());
    const of = (counts: number[][]) => seriesOf({ ...document, latency_heat: { t_s: [1], edges_ms: [1, 10, 100], counts } }).find(({ metric }) => metric === "p99_ms");
    expect(of([[99, 1]])?.values[0]).toBeCloseTo(10, 9);
    expect(of([[0, 100]])?.values[0]).toBeCloseTo(10 * 10 ** 0.99, 9);
    expect(of([[0, 0]])?.values).toEqual([null]);
    const own = { metric: "p99_ms", label: null, unit: "ms", layer: "load", title: "p99", t_ms: [1000], values: [7] } as const;
    expect(seriesOf({ ...document, series: [{ ...own, t_ms: [1000], values: [7] }] }).filter(({ metric }) => metric === "p99_ms")).toHaveLength(1);
  });

  test("without a trial's details the report's own seconds are drawn", () => {
    const trial = report.trials[0];
    if (trial === undefined) throw new Error("no sample");
    const plain = [{ ...drawn(0, 1), series: seriesOfReport(trial) }];
    expect(firstChoice(plain)).toEqual(["tps", "p95_ms"]);
    expect(seriesOfReport({ ...trial, series: { t_s: [], tps: [], p95_ms: [] } })).toEqual([]);
  });

  test("the axis holds the longest; a warm-up is shaded where it is that of all", () => {
    expect(endOf(sides)).toBeGreaterThanOrEqual(150);
    expect(endOf([])).toBe(1);
    expect(commonWarmup(sides)).toBe(30);
    expect(commonWarmup([drawn(0, 1), { ...drawn(1, 2), warmup_s: 5 }])).toBeNull();
  });
});
