import { describe, expect, test } from "vitest";
import { costs, unmeasured, whyUnmeasured } from "../../src/analysis/efficiency.ts";
import { heatStretches, quantileOf, secondsHeat, treatmentHeat } from "../../src/analysis/heat.ts";
import { parseSpec, quoted, specText, whyNot } from "../../src/compare/spec.ts";
import { troubleOfStatus } from "../../src/data/trouble.ts";
import { shown } from "../../src/format/json.ts";
import { clock, ticksWithUnit, valueWithUnit } from "../../src/format/unit.ts";
import { filtered, NO_FILTER, sortedBy } from "../../src/index/filter.ts";
import { addressOf, parseRoute } from "../../src/router.ts";
import { adviceOf, keptInWords } from "../../src/target/shape.ts";
import { sampleReport } from "../sample/report.ts";
import { sampleWorld } from "../sample/world.ts";

const report = sampleReport();
const first = report.trials[0];
if (first === undefined) throw new Error("no sample");

describe("addresses", () => {
  test.each([
    ["", "serve", { view: "index", query: "" }],
    ["#/?words=a%3Fb&tag=x", "serve", { view: "index", query: "words=a%3Fb&tag=x" }],
    ["#/experiments/7", "serve", { view: "experiment", experiment: 7, section: null }],
    ["#/experiments/7/trials/42", "serve", { view: "trial", experiment: 7, trial: 42 }],
    ["#/compare?a=7&b=8%3Amemory", "serve", { view: "compare", sides: ["7", "8:memory"] }],
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
    expect(parseRoute(addressOf.compare(["7:a&b", "7/3"]), "serve")).toEqual({ view: "compare", sides: ["7:a&b", "7/3"] });
    expect(parseRoute(addressOf.compare(["7", "", "7/3"]), "file")).toEqual({ view: "compare", sides: ["7", "", "7/3"] });
    expect(parseRoute(addressOf.compare(Array.from({ length: 20 }, () => "7")), "serve")).toMatchObject({ sides: { length: 8 } });
    expect(parseRoute("#/compare", "file")).toEqual({ view: "compare", sides: ["", ""] });
  });

  test.each(["7", "7:memory", "7/12"])("%s is a side of a comparison", (text) => {
    const spec = parseSpec(text);
    expect(spec === null ? null : specText(spec)).toBe(text);
  });

  test("what is not a side is none; names are quoted for a shell", () => {
    expect([parseSpec(""), parseSpec("x"), parseSpec("7/x")]).toEqual([null, null, null]);
    expect(quoted("7:it's $HOME")).toBe("'7:it'\\''s $HOME'");
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
    expect(sortedBy(all, "notes", false)[0]?.notes).toBe(2);
  });

  test("a word that the server found in a note counts beside those that the table shows", () => {
    const found = new Map([["kernel", new Set([7])]]);
    expect(filtered(all, { ...NO_FILTER, words: "kernel" })).toEqual([]);
    expect(filtered(all, { ...NO_FILTER, words: "Kernel step" }, found).map(({ id }) => id)).toEqual([7]);
    expect(filtered(all, { ...NO_FILTER, words: "kernel nowhere" }, found)).toEqual([]);
  });
});

describe("what is worked out", () => {
  test("a heat map counts every second once; too few seconds are none", () => {
    const heat = secondsHeat(report.trials.slice(0, 3));
    const counted = heat?.counts.flat().reduce((sum, each) => sum + each, 0);
    expect(counted).toBe(report.trials.slice(0, 3).flatMap(({ series }) => series.p95_ms.filter((ms) => ms !== null)).length);
    expect(secondsHeat([])).toBeNull();
  });

  test("transactions that were counted go before seconds", () => {
    const treatment = report.treatments[0];
    if (treatment === undefined) throw new Error("no treatment");
    const heat = { from_s: 5, t_s: [6], edges_ms: [1, 2], counts: [[3]] };
    expect(treatmentHeat({ ...treatment, latency_heat: heat }, report.trials)).toEqual({ of: "transactions", heat });
    expect(treatmentHeat({ ...treatment, latency_heat: null }, report.trials)?.of).toBe("seconds");
    expect(treatmentHeat({ ...treatment, latency_heat: null }, [])).toBeNull();
  });

  test("an answer that is no success is shown as text, of a token in ours", () => {
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
    ["7:memory", "8/3", "compared with a trial"],
    ["7", "8:memory", null],
    ["7/1", "7/2", null],
  ])("%s against %s: %s", (a, b, expected) => {
    const [spec_a, spec_b] = [parseSpec(a), parseSpec(b)];
    if (spec_a === null || spec_b === null) throw new Error("no sides");
    const found = whyNot(spec_a, spec_b);
    if (expected === null) expect(found).toBeNull();
    else expect(found).toContain(expected);
  });

  test("what other commands print is read with care", () => {
    expect(keptInWords({ alive: false, kept: "until-restored" })).toContain("until it is restored");
    expect(keptInWords({ alive: false, kept: { "unless-confirmed": { until_unix_ms: 1_700_000_000_000 } } })).toContain("unless it is confirmed");
    expect([keptInWords({ alive: true, kept: null }), keptInWords({ alive: false, kept: null })].join()).toMatch(/at it now.*killed/);
    expect(adviceOf({ advice: [{ rule: "r", setting: { knob: "k" } }] })?.[0]?.title).toBe("k");
    const safety = adviceOf([{ rule: "r", now: "0", now_means: "20 %", procedure: ["ALTER SYSTEM ...;"], commands: [] }])?.[0];
    expect([safety?.now, safety?.steps, safety?.commands]).toEqual(["20 %", ["ALTER SYSTEM ...;"], []]);
    expect([adviceOf(null), adviceOf("x")]).toEqual([null, null]);
    expect(shown({ a: [1, null], b: true })).toBe("a 1, –, b yes");
  });
});

describe("a heat map as a table", () => {
  test("counts everything once, and reads shares off inside their classes", () => {
    const heat = secondsHeat(report.trials.slice(0, 3));
    if (heat === null) throw new Error("no sample");
    const rows = heatStretches(heat);
    expect(rows.length).toBeLessThanOrEqual(14);
    expect(rows.reduce((sum, { amount }) => sum + amount, 0)).toBe(heat.counts.flat().reduce((sum, each) => sum + each, 0));
    expect(rows[0]?.from_s).toBe(0);
    expect(rows.at(-1)?.to_s).toBe(heat.t_s.at(-1));
    for (const { p50, p95, p99, most } of rows) expect([p50, p95, p99, most]).toEqual([p50, p95, p99, most].toSorted((a, b) => (a ?? 0) - (b ?? 0)));
  });

  test.each([
    [[99, 1], 0.99, 10],
    [[0, 100], 0.5, 10 * Math.sqrt(10)],
    [[0, 0], 0.5, null],
    [[], 0.5, null],
  ])("%j at %d", (counts, share, expected) => {
    const found = quantileOf([1, 10, 100], counts, share);
    if (expected === null || found === null) expect(found).toBe(expected);
    else expect(found).toBeCloseTo(expected, 9);
  });
});

describe("what a transaction costs", () => {
  const tested = sampleReport().treatments;
  const gap = (text: string) => ({ at_ms: 0, until_ms: null, kind: "gap" as const, text });

  test("all that was measured is there, of the CPU's counters too; the rest is named", () => {
    const names = costs(tested).map(({ name }) => name);
    for (const name of ["energy_j_per_tx", "dtlb_load_misses", "disk_read_bytes_per_tx", "instructions"]) expect(names).toContain(name);
    expect([names.length, unmeasured(tested).map(({ name }) => name)]).toEqual([14, ["itlb_load_misses", "dtlb_load_walk_cycles", "dtlb_store_walk_cycles", "dtlb_loads", "dtlb_stores", "itlb_loads", "llc_loads", "task_clock_ms"]]);
  });

  test.each([
    ["dtlb_load_misses", [gap("perf: a general reason"), gap("perf.dtlb_load_misses: this CPU has none: none")], "this CPU has none: none"],
    ["dtlb_load_walk_cycles", [gap("perf.dtlb_*_walk_cycles: not known")], "not known"],
    ["cycles", [gap("perf, processes: refused")], "refused"],
    ["energy_j_per_tx", [gap("/sys/class/powercap: it has no zone of energy counters")], "it has no zone of energy counters"],
    ["energy_j_per_tx", [], "no such directory"],
    ["cycles", [gap("perf.instructions: refused")], null],
  ])("%s: why not", (name, marks, expected) => {
    const cost = unmeasured([]).find((each) => each.name === name);
    if (cost === undefined) throw new Error("no such cost");
    const facts = [{ group: "host" as const, name: "cpu.power_zones", value: null, missing: "no such directory", source: "x" }];
    expect(whyUnmeasured(cost, facts, marks)).toBe(expected);
  });
});
