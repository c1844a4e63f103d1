import { describe, expect, test } from "vitest";
import { expand, times } from "../../src/data/unpack.ts";
import { stack, stretchOf, table } from "../../src/trial/align.ts";
import { byKey, TimeAxis, within } from "../../src/trial/axis.ts";
import { choices, defaultPanels, searched, single, folded, panelOf } from "../../src/trial/panels.ts";
import { sorted } from "../../src/trial/statements.tsx";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";

const report = sampleReport();
const first = report.trials[0];
if (first === undefined) throw new Error("no sample");
const document = sampleTrialDocument(report, first);

describe("the axis of time", () => {
  test("keeps a stretch within the whole, and wide enough", () => {
    expect(within([-5, 5], [0, 100])).toEqual([0, 10]);
    expect(within([50, 50.1], [0, 100])).toEqual([50, 52]);
    expect(within([0, 100], [0, 100])).toBeNull();
    expect(within([NaN, 4], [0, 100])?.every(Number.isFinite) ?? true).toBe(false);
  });

  test.each([["+", [20, 80]], ["ArrowRight", null], ["0", null], ["Home", null], ["x", undefined]] as const)("%s from all of it", (key, range) => {
    expect(byKey(key, [0, 100], [0, 100])).toEqual(range);
  });

  test("keeps what was looked at when it is made again, as far as that is there", () => {
    expect(new TimeAxis([0, 100], [20, 80]).range).toEqual([20, 80]);
    expect(new TimeAxis([0, 60], [20, 80]).range).toBeNull();
    expect(new TimeAxis([0, 70], [20, 80]).range).toEqual([10, 70]);
    const axis = new TimeAxis([0, 100]);
    expect([axis.press("+"), axis.range, axis.press("Home"), axis.range, axis.press("End")]).toEqual([true, [20, 80], true, null, false]);
  });

  test("lines of several readings come on one axis; what is missing stays missing", () => {
    const panel = { id: "x", title: "x", unit: "", layer: "host" as const, stacked: false, more: 0, lines: [{ title: "a", t_ms: [1000, 2000], values: [1, null] }, { title: "b", t_ms: [1500], values: [3] }] };
    expect(table(panel)).toEqual({ seconds: [1, 1.5, 2], columns: [[1, undefined, null], [undefined, 3, undefined]] });
    const missed = { ...panel, lines: [{ title: "a", t_ms: [1000, 2000, 3000, 7000], values: [1, 2, 3, 4] }] };
    expect(table(missed)).toEqual({ seconds: [1, 2, 3, 4, 7], columns: [[1, 2, 3, null, 4]] });
    expect(stack([[1, null, 2], [1, null, null]])).toEqual([[1, null, 2], [2, null, 2]]);
    expect(stretchOf({ title: "a", t_ms: [1000, 2000, 3000], values: [1, 5, null] }, [0, 2.5])).toEqual({ least: 1, mean: 3, most: 5 });
    expect(stretchOf({ title: "a", t_ms: [], values: [] }, null)).toBeNull();
  });
});

describe("series of a trial", () => {
  test("are eight charts at first, in the order load, CPU, waits", () => {
    expect(defaultPanels(document).map(({ id }) => id)).toEqual(["tps", "p95_ms", "cpu", "waits", "wal", "disk", "checkpoints", "memory"]);
  });

  test("waits are stacked by event, and the smallest of many are one", () => {
    const panel = defaultPanels(document).find(({ id }) => id === "waits");
    expect(panel?.lines.map(({ title }) => title)).toEqual(["CPU", "LWLock: WALWrite", "IO: WalSync", "Client: ClientRead", "IO: DataFileRead", "Lock: transactionid", "LWLock: BufferMapping", "other"]);
    const sum = (all: readonly { values: readonly (number | null)[] }[]) => all.reduce((total, { values }) => total + (values[3] ?? 0), 0);
    expect(sum(panel?.lines ?? [])).toBeCloseTo(sum(document.waits?.events ?? []));
    expect(panelOf(document, "wait-types")?.lines).toHaveLength(6);
    expect(choices(document).map(({ id }) => id)).toContain("wait-types");
    const old = { ...document, waits: document.waits === null ? null : { t_ms: document.waits.t_ms, types: document.waits.types } };
    expect(panelOf(old, "waits")?.lines).toHaveLength(6);
    expect(panelOf(old, "wait-types")).toBeNull();
    expect(folded([])).toEqual([]);
  });

  test("are found by all words, in title or name", () => {
    const found = searched(choices(document), "cpu RUN").flatMap(({ choices: each }) => each.map(({ id }) => id));
    expect(found).toEqual(["cpu.run_queue"]);
  });

  test("each metric is a chart with a line for each label, the largest first", () => {
    expect(single(document, "cpu.user_ratio")?.lines.map(({ title }) => title)).toEqual(["cpu0", "all", "cpu1"]);
    expect(single(document, "no.such")).toBeNull();
  });

  test("times are shown as steps", () => {
    expect(times([5, 1, 2])).toEqual([5, 6, 8]);
    const { series, ...rest } = document;
    const packed = { ...rest, axes: [[1000, 1000]], columns: series.slice(0, 1).map(({ metric, label, unit, layer, title, values }) => ({ metric, label, unit, layer, title, values, axis: 0 })) };
    expect(expand(packed).series[0]?.t_ms).toEqual([1000, 2000]);
  });
});

test.each([[true, [1, 2, 5, null, undefined]], [false, [5, 2, 1, null, undefined]]])("statements, rising %s: what is not known stands last", (rising, expected) => {
  const statements = [5, null, 1, undefined, 2].map((calls) => (calls === undefined ? {} : { calls }));
  expect(sorted(statements, "calls", rising).map(({ calls }) => calls)).toEqual(expected);
});
