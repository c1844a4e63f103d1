import { describe, expect, test } from "vitest";
import { intervalAt, logTicks, msAt, namedPoints, nines, percentileCurve } from "../../src/analysis/percentiles.ts";
import { align, atIndex, bucketWidth, buckets } from "../../src/analysis/series.ts";
import { spreadLabels } from "../../src/analysis/spread.ts";
import type { Treatment, Trial } from "../../src/model.ts";
import { sampleReport } from "../sample/report.ts";

function trialWith(t_s: number[], tps: number[]): Trial {
  const [first] = sampleReport().trials;
  if (first === undefined) throw new Error("the sample has no trial");
  return { ...first, series: { t_s, tps, p95_ms: tps.map(() => null) } };
}

function treatmentWith(distribution: Treatment["distribution"]): Treatment {
  const [first] = sampleReport().treatments;
  if (first === undefined) throw new Error("the sample has no treatment");
  return { ...first, distribution };
}

describe("percentiles", () => {
  test("each further nine has the same room", () => {
    expect([90, 99, 99.9].map((percentile) => Math.round(nines(percentile) * 1e6) / 1e6)).toEqual([1, 2, 3]);
  });

  test("what has no place on the axes is left out", () => {
    const curve = percentileCurve(
      treatmentWith([
        { percentile: 10, ms: 1 }, { percentile: 50, ms: 0 }, { percentile: 90, ms: 5 }, { percentile: 99, ms: 9 }, { percentile: 100, ms: 800 },
      ]),
    );
    expect(curve.map(({ percentile }) => percentile)).toEqual([90, 99]);
  });

  test("of percentiles only those that were recorded are shown", () => {
    const curve = percentileCurve(treatmentWith([{ percentile: 90, ms: 10 }, { percentile: 99, ms: 1000 }]));
    expect(msAt(curve, 90)).toBe(10);
    expect(msAt(curve, 95)).toBeNull();
    expect(msAt(curve, 99.9)).toBeNull();
    expect(msAt(curve, 50)).toBeNull();
    expect(namedPoints(curve).map(({ percentile }) => percentile)).toEqual([90, 99]);
  });

  test("a recorded percentile has its interval, one between none", () => {
    const curve = percentileCurve(
      treatmentWith([{ percentile: 90, ms: 10, low_ms: 9, high_ms: 12 }, { percentile: 95, ms: 15 }, { percentile: 99, ms: 20, low_ms: 18, high_ms: null }]),
    );
    const at = (percentile: number) => intervalAt(curve, percentile, String);
    expect([90, 95, 97, 99].map(at)).toEqual(["9 … 12", null, null, "18 and up"]);
  });

  test("log ticks are 1, 2 and 5", () => {
    expect(logTicks([8, 300])).toEqual([10, 20, 50, 100, 200]);
    expect(logTicks([0, 10])).toEqual([]);
    expect(logTicks([Infinity, -Infinity])).toEqual([]);
  });
});

describe("series", () => {
  const trials = [trialWith([1, 2, 3], [10, 20, 30]), trialWith([2, 4], [100, Number.NaN])];

  test("trials of different length share one axis, gaps stay gaps", () => {
    expect(align(trials, "tps")).toEqual({ seconds: [1, 2, 3, 4], columns: [[10, 20, 30, undefined], [undefined, 100, null, null]] });
  });

  test("trials with other instants do not break each other's lines, and are read at each other's", () => {
    const { seconds, columns } = align([trialWith([1, 2], [10, 20]), trialWith([1.1, 2.1], [100, 200])], "tps");
    expect(columns).toEqual([[10, undefined, 20, undefined], [undefined, 100, undefined, 200]]);
    expect(seconds.map((_, index) => atIndex(seconds, columns, index)?.mean)).toEqual([55, 55, 110, 110]);
    expect(seconds.map((_, index) => atIndex(seconds, columns, index, 0.05)?.mean)).toEqual([10, 100, 20, 200]);
  });

  test("a second holds mean, lowest and highest of what there is", () => {
    const { seconds, columns } = align(trials, "tps");
    expect(atIndex(seconds, columns, 1)).toEqual({ mean: 60, low: 20, high: 100 });
    expect(atIndex(seconds, columns, 3)).toBeNull();
  });

  test("buckets cover the time without overlap", () => {
    const result = buckets(trials, "tps", 2);
    expect(result.map(({ from_s, to_s }) => [from_s, to_s])).toEqual([[0, 2], [2, 4]]);
    expect(result[0]?.value).toEqual({ mean: 130 / 3, low: 10, high: 100 });
    expect(bucketWidth(150)).toBe(15);
    expect(bucketWidth(100_000)).toBe(1800);
  });
});

describe("labels", () => {
  test("those with room stay where they belong", () => {
    expect(spreadLabels([10, 100], 16, 0, 200)).toEqual([10, 100]);
  });

  test("neighbours keep their distance and their order, inside the frame", () => {
    const places = spreadLabels([198, 195, 199], 16, 0, 200);
    expect(places).toEqual([184, 168, 200]);
  });
});
