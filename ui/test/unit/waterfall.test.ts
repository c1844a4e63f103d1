import { describe, expect, test } from "vitest";
import { effectDomain, effectRows, percentOf } from "../../src/analysis/effects.ts";
import { connectors, waterfallDomain, waterfallRows } from "../../src/analysis/waterfall.ts";
import { sampleReport } from "../sample/report.ts";
import { notTested, nothingFinished, oneAtATime, singleBlock } from "../sample/variants.ts";

describe("waterfall", () => {
  test("each bar floats from the throughput before to the one after", () => {
    const rows = waterfallRows(sampleReport()).slice(0, 7);
    expect(rows[0]?.from_tps).toBe(0);
    for (const [place, row] of rows.entries()) {
      if (place > 0) expect(row.from_tps).toBe(rows[place - 1]?.to_tps);
    }
  });

  test("the last bar is all steps together, from zero, with their interval around its end", () => {
    const report = sampleReport();
    const rows = waterfallRows(report);
    expect(rows).toHaveLength(8);
    const [last, total] = rows.slice(-2);
    expect(total).toMatchObject({ index: 7, title: "All steps together", from_tps: 0, to_tps: last?.to_tps, effect: last?.treatment.total });
    expect(total?.low_tps).toBeLessThan(total?.to_tps ?? 0);
    expect(total?.high_tps).toBeGreaterThan(total?.to_tps ?? Infinity);
  });

  test("the whisker of an undecided step crosses where its bar starts, that of a better one does not", () => {
    const rows = waterfallRows(sampleReport());
    const undecided = rows.find((row) => row.verdict === "undecided");
    expect(undecided?.low_tps).toBeLessThan(undecided?.from_tps ?? 0);
    expect(undecided?.high_tps).toBeGreaterThan(undecided?.from_tps ?? Infinity);
    const better = rows.find((row) => row.verdict === "better");
    expect(better?.low_tps).toBeGreaterThan(better?.from_tps ?? Infinity);
  });

  test("a treatment that was not tested has no bar, and the next one starts before it", () => {
    const rows = waterfallRows(notTested());
    const gap = rows.findIndex((row) => row.treatment.status === "not-tested");
    expect(rows[gap]?.to_tps).toBeNull();
    expect(rows[gap]?.from_tps).toBeNull();
    expect(rows[gap + 1]?.from_tps).toBe(rows[gap - 1]?.to_tps);
    expect(connectors(rows)).toContainEqual({ tps: rows[gap - 1]?.to_tps, from: gap - 1, to: gap + 1 });
  });

  test("one block gives bars without whiskers", () => {
    const rows = waterfallRows(singleBlock());
    expect(rows.every((row) => row.to_tps !== null)).toBe(true);
    expect(rows.every((row) => row.low_tps === null && row.high_tps === null)).toBe(true);
  });

  test("the axis begins at zero and holds every whisker", () => {
    const rows = waterfallRows(sampleReport());
    const [low, high] = waterfallDomain(rows);
    expect(low).toBe(0);
    expect(high).toBeGreaterThan(Math.max(...rows.map((row) => row.high_tps ?? 0)));
    expect(waterfallDomain(waterfallRows(nothingFinished()))).toEqual([0, 1]);
  });
});

describe("effects one at a time", () => {
  test("the reference has no row", () => {
    expect(effectRows(oneAtATime()).map((row) => row.title)).not.toContain("stock");
  });

  test("zero and the band that does not matter are in view even without effects", () => {
    expect(effectDomain([], 0.02)).toEqual([-3, 3]);
    const [low, high] = effectDomain(effectRows(oneAtATime()), 0.02);
    expect(low).toBe(-3);
    expect(high).toBeGreaterThan(50);
    // An interval of two trials would dwarf all effects.
    const rows = effectRows(oneAtATime()).map((row) => (row.effect === null ? row : { ...row, effect: { ...row.effect, ratio_high: 1e40 } }));
    const largest = Math.max(...rows.flatMap(({ effect }) => (effect === null ? [] : [Math.abs(percentOf(effect.ratio))])));
    expect(effectDomain(rows, 0.02)[1]).toBeCloseTo(Math.max(100, 5 * largest));
  });

  test("a ratio becomes a percentage", () => {
    expect(percentOf(1.25)).toBeCloseTo(25);
  });
});
