import { describe, expect, test } from "vitest";
import { needed } from "../../src/analysis/capacity.ts";
import { secondsHeat } from "../../src/analysis/heat.ts";
import { parseSpec, quoted, specText, whyNot } from "../../src/compare/spec.ts";
import { troubleOfStatus } from "../../src/data/trouble.ts";
import { expand, times } from "../../src/data/unpack.ts";
import { shown } from "../../src/format/json.ts";
import { clock, ticksWithUnit, valueWithUnit } from "../../src/format/unit.ts";
import { filtered, NO_FILTER, sortedBy } from "../../src/index/filter.ts";
import { addressOf, parseRoute } from "../../src/router.ts";
import { adviceOf, keptInWords } from "../../src/target/shape.ts";
import { stack, stretchOf, table } from "../../src/trial/align.ts";
import { byKey, TimeAxis, within } from "../../src/trial/axis.ts";
import { choices, defaultPanels, searched, single } from "../../src/trial/panels.ts";
import { factors, ladder } from "../sample/factors.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleTrialDocument } from "../sample/trial-document.ts";
import { sampleWorld } from "../sample/world.ts";

const report = sampleReport();
const first = report.trials[0];
if (first === undefined) throw new Error("no sample");
const document = sampleTrialDocument(report, first);

describe("addresses", () => {
  test.each([
    ["", "serve", { view: "index", query: "" }],
    ["#/?words=a%3Fb&tag=x", "serve", { view: "index", query: "words=a%3Fb&tag=x" }],
    ["#/experiments/7", "serve", { view: "experiment", experiment: 7, section: null }],
    ["#/experiments/7/trials/42", "serve", { view: "trial", experiment: 7, trial: 42 }],
    ["#/compare?a=7&b=8%3Amemory", "serve", { view: "compare", a: "7", b: "8:memory" }],
    ["#/targets/a%2Fb", "serve", { view: "target", name: "a/b" }],
    ["#/targets/%E0%A4%A", "serve", { view: "target", name: "%E0%A4%A" }],
    ["#/experiments/1e9", "serve", { view: "unknown", asked: "#/experiments/1e9" }],
    ["#time", "file", { view: "experiment", experiment: null, section: "time" }],
    ["#/trials/42", "file", { view: "trial", experiment: null, trial: 42 }],
    ["#/experiments/7", "file", { view: "unknown", asked: "#/experiments/7" }],
  ] as const)("%s in %s", (hash, mode, route) => {
    expect(parseRoute(hash, mode)).toEqual(route);
  });

  test("are read as they are written", () => {
    expect(parseRoute(addressOf.target("x y/<b>"), "serve")).toEqual({ view: "target", name: "x y/<b>" });
    expect(parseRoute(addressOf.compare("7:a&b", "7/3"), "serve")).toEqual({ view: "compare", a: "7:a&b", b: "7/3" });
  });

  test.each(["7", "7:memory", "7/12"])("%s is a side of a comparison", (text) => {
    const spec = parseSpec(text);
    expect(spec === null ? null : specText(spec)).toBe(text);
  });

  test("what is no side is none; names are quoted for a shell", () => {
    expect([parseSpec(""), parseSpec("x"), parseSpec("7/x")]).toEqual([null, null, null]);
    expect(quoted("7:it's $HOME")).toBe("'7:it'\\''s $HOME'");
  });
});

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

  test("keeps what was looked at when it is made anew, as far as that is there", () => {
    expect(new TimeAxis([0, 100], [20, 80]).range).toEqual([20, 80]);
    expect(new TimeAxis([0, 60], [20, 80]).range).toBeNull();
    expect(new TimeAxis([0, 70], [20, 80]).range).toEqual([10, 70]);
    const axis = new TimeAxis([0, 100]);
    expect([axis.press("+"), axis.range, axis.press("Home"), axis.range, axis.press("End")]).toEqual([true, [20, 80], true, null, false]);
  });

  test("lines of several readings come on one axis; what is missing stays missing", () => {
    const panel = { id: "x", title: "x", unit: "", layer: "host" as const, stacked: false, more: 0, lines: [{ title: "a", t_ms: [1000, 2000], values: [1, null] }, { title: "b", t_ms: [1500], values: [3] }] };
    expect(table(panel)).toEqual({ seconds: [1, 1.5, 2], columns: [[1, undefined, null], [undefined, 3, undefined]] });
    expect(stack([[1, null, 2], [1, null, null]])).toEqual([[1, null, 2], [2, null, 2]]);
    expect(stretchOf({ title: "a", t_ms: [1000, 2000, 3000], values: [1, 5, null] }, [0, 2.5])).toEqual({ least: 1, mean: 3, most: 5 });
    expect(stretchOf({ title: "a", t_ms: [], values: [] }, null)).toBeNull();
  });
});

describe("series of a trial", () => {
  test("are eight charts at first, in the order load, CPU, waits", () => {
    expect(defaultPanels(document).map(({ id }) => id)).toEqual(["tps", "p95_ms", "cpu", "waits", "wal", "disk", "checkpoints", "memory"]);
  });

  test("are found by all words, in title or name", () => {
    const found = searched(choices(document), "cpu RUN").flatMap(({ choices: each }) => each.map(({ id }) => id));
    expect(found).toEqual(["cpu.run_queue"]);
  });

  test("each metric is a chart with a line for each label, the largest first", () => {
    expect(single(document, "cpu.user_ratio")?.lines.map(({ title }) => title)).toEqual(["cpu0", "all", "cpu1"]);
    expect(single(document, "no.such")).toBeNull();
  });

  test("times are told as steps", () => {
    expect(times([5, 1, 2])).toEqual([5, 6, 8]);
    const { series, ...rest } = document;
    const packed = { ...rest, axes: [[1000, 1000]], columns: series.slice(0, 1).map(({ metric, label, unit, layer, title, values }) => ({ metric, label, unit, layer, title, values, axis: 0 })) };
    expect(expand(packed).series[0]?.t_ms).toEqual([1000, 2000]);
  });
});

describe("values with units", () => {
  test.each([
    [0.123, "ratio", "12.3\u202f%"], [3 * 1024 ** 2, "bytes/s", "3.00\u202fMiB/s"], [1_234_567, "per second", "1.23M/s"], [0.0012, "", "0.0012"], [NaN, "ms", "–"], [31, "TPS", "31\u202fTPS"],
  ])("%d in %s", (value, unit, text) => {
    expect(valueWithUnit(value, unit)).toBe(text);
  });

  test("ticks share their unit; times have hours only where there are any", () => {
    expect(ticksWithUnit([0, 512 * 1024, 1024 ** 2], "bytes")).toEqual(["0", "0.5 MiB", "1 MiB"]);
    expect([clock(65), clock(3661)]).toEqual(["1:05", "1:01:01"]);
  });
});

describe("the index", () => {
  const all = sampleWorld().experiments;
  test("words, status, tag and day hold together", () => {
    expect(filtered(all, { ...NO_FILTER, words: "JIT worth" }).every(({ name }) => name.startsWith("jit"))).toBe(true);
    expect(filtered(all, { ...NO_FILTER, tag: "nightly", status: "killed" }).every(({ tags, status }) => tags.includes("nightly") && status === "killed")).toBe(true);
    expect(filtered(all, { ...NO_FILTER, since: "2025-11-19" })).toHaveLength(1);
    expect(sortedBy(all, "started", false)[0]?.id).toBe(9);
  });
});

describe("what is worked out", () => {
  test("a throughput beyond the peak is never reached, one within is read off the law", () => {
    const plain = [...(ladder().curves ?? []), ...(factors().curves ?? [])][0];
    if (plain === undefined) throw new Error("no curve");
    const exact = (value: number) => ({ value, low: value, high: value });
    const usl = { lambda: exact(1000), sigma: exact(0.05), kappa: exact(0.001), peak_x: exact(Math.sqrt(0.95 / 0.001)), peak_tps: exact(7_000), spread: 0.01 };
    const curve = { ...plain, usl };
    expect(needed({ ...plain, usl: null }, 1)).toBeNull();
    expect(needed(curve, 1e9)?.kind).toBe("unreachable");
    expect(needed(curve, 1)?.kind).toBe("measured");
  });

  test("a heat map counts every second once; too few seconds are none", () => {
    const heat = secondsHeat(report.trials.slice(0, 3));
    const counted = heat?.counts.flat().reduce((sum, each) => sum + each, 0);
    expect(counted).toBe(report.trials.slice(0, 3).flatMap(({ series }) => series.p95_ms.filter((ms) => ms !== null)).length);
    expect(secondsHeat([])).toBeNull();
  });

  test("an answer that is no success is told in words, of a token in ours", () => {
    expect(troubleOfStatus(401, "x", "y").advice).toContain("pgdyno serve");
    expect(troubleOfStatus(404, "there is no experiment 9", null).heading).toBe("there is no experiment 9");
    expect(troubleOfStatus(500, {}, 7).heading).toContain("500");
    const long = troubleOfStatus(400, "nothing is shared; ".repeat(9), null);
    expect(long.heading.length).toBeLessThan(40);
    expect(long.advice).toContain("nothing is shared");
  });

  test.each([
    ["7", "7", "choose a treatment"],
    ["7", "7:memory", "choose a treatment"],
    ["7:memory", "7:memory", "one and the same"],
    ["7:memory", "8/3", "against a trial"],
    ["7", "8:memory", null],
    ["7/1", "7/2", null],
  ])("%s against %s: %s", (a, b, expected) => {
    const [spec_a, spec_b] = [parseSpec(a), parseSpec(b)];
    if (spec_a === null || spec_b === null) throw new Error("no sides");
    const found = whyNot(spec_a, spec_b);
    if (expected === null) expect(found).toBeNull();
    else expect(found).toContain(expected);
  });

  test("what other commands tell is read with care", () => {
    expect(keptInWords({ alive: false, kept: "until-restored" })).toContain("until it is restored");
    expect(keptInWords({ alive: false, kept: { "unless-confirmed": { until_unix_ms: 1_700_000_000_000 } } })).toContain("unless it is confirmed");
    expect([keptInWords({ alive: true, kept: null }), keptInWords({ alive: false, kept: null })].join()).toMatch(/at it now.*killed/);
    expect(adviceOf({ advice: [{ rule: "r", setting: { knob: "k" } }] })?.[0]?.title).toBe("k");
    expect([adviceOf(null), adviceOf("x")]).toEqual([null, null]);
    expect(shown({ a: [1, null], b: true })).toBe("a 1, –, b yes");
  });
});
