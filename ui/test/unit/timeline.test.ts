import { describe, expect, test } from "vitest";
import { levels } from "../../src/analysis/timeline.ts";
import type { Shift, Timeline } from "../../src/model.ts";

function shift(title: string, t_s: number, before_tps: number | null, after_tps: number | null): Shift {
  return { title, t_s, took_s: 1, before_tps, after_tps, standstills: 0, effect: null, trend: null };
}

function timeline(shifts: Shift[]): Timeline {
  return { treatment: "reference", trials: 1, warmup_s: 2, seconds: Array.from({ length: 30 }, (_, at) => ({ t_s: at + 1, tps: 100 })), shifts };
}

describe("levels between events", () => {
  test("the first begins with the measured time, each ends with the next event, the last with the load", () => {
    expect(levels(timeline([shift("a", 10, 100, 200), shift("b", 20, 200, 50)]))).toEqual([
      { from_s: 2, to_s: 10, tps: 100 },
      { from_s: 11, to_s: 20, tps: 200 },
      { from_s: 21, to_s: 30, tps: 50 },
    ]);
  });

  test("a level that is not known is not drawn", () => {
    expect(levels(timeline([shift("a", 10, null, 200)]))).toEqual([{ from_s: 11, to_s: 30, tps: 200 }]);
    expect(levels(timeline([]))).toEqual([]);
  });
});
