import { describe, expect, test } from "vitest";
import { axisOf, pointsOf, titleOf, topOf } from "../../src/analysis/study-chart.ts";
import type { StudyTable, TableBlock } from "../../src/model.ts";
import { factors } from "../sample/factors.ts";

function block(titles: readonly string[]): TableBlock {
  return { title: null, rows: titles.map((title, place) => ({ title, cells: [{ mean: place + 1, low: null, high: null, n: 1 }, null] })) };
}

function table(blocks: TableBlock[]): StudyTable {
  return { title: "Throughput", rows: "Clients", columns_title: "Pooler", columns: ["none", "pgbouncer"].map((title) => ({ title, figure: "tps", figure_title: "TPS" })), blocks };
}

describe("axes of a study's charts", () => {
  test("numbers have their distances, ladders that double a logarithmic axis, all else names", () => {
    expect(axisOf(block(["10", "20", "40"]))).toMatchObject({ kind: "linear", xs: [10, 20, 40] });
    expect(axisOf(block(["1", "10", "1000"]))).toMatchObject({ kind: "log", xs: [1, 10, 1000] });
    expect(axisOf(block(["64MB", "1GB"]))).toMatchObject({ kind: "names", xs: [0, 1], names: ["64MB", "1GB"] });
    expect(axisOf(block(["", "8"])).kind).toBe("names");
  });

  test("zero has no logarithm: a ladder from zero is names, a short one stays linear", () => {
    expect(axisOf(block(["0", "10", "10000"])).kind).toBe("names");
    expect(axisOf(block(["0", "1", "2"])).kind).toBe("linear");
  });

  test("cells without a trial are no points", () => {
    const each = block(["1", "8"]);
    expect(pointsOf(each, axisOf(each))).toEqual([
      { line: 0, place: 0, x: 1, mean: 1, low: null, high: null },
      { line: 0, place: 1, x: 8, mean: 2, low: null, high: null },
    ]);
  });

  test("panels share their axis, and one wide interval does not flatten all means", () => {
    const wide = block(["1"]);
    wide.rows[0]?.cells.splice(0, 1, { mean: 100, low: 0, high: 5000, n: 2 });
    expect(topOf(table([block(["1"]), wide]))).toBeCloseTo(157.5);
    expect(topOf(table([]))).toBe(1);
  });

  test("a title has the figure and the panel", () => {
    expect(titleOf(table([]), null)).toBe("Throughput (TPS)");
    expect(titleOf(table([]), "fits")).toBe("Throughput (TPS): fits");
    expect((factors().charts ?? []).map(({ form }) => form)).toEqual(["lines", "bars", "heat"]);
  });
});
