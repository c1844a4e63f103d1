import { expect, test } from "vitest";
import { unsettledStretch, unsettledStretches, wordOf } from "../../src/analysis/steady.ts";

test.each([
  [25, { from_s: 30, to_s: 55 }],
  [500, { from_s: 30, to_s: 150 }],
  [0, null],
  [null, null],
  [undefined, null],
  [NaN, null],
])("%s s after the warm-up", (unsettled_s, stretch) => {
  expect(unsettledStretch({ warmup_s: 30, measured_s: 120, ...(unsettled_s === undefined ? {} : { unsettled_s }) })).toEqual(stretch);
});

test("a row of a table says what its seconds were", () => {
  const stretches = unsettledStretches([{ warmup_s: 30, measured_s: 120, unsettled_s: 25 }, { warmup_s: 30, measured_s: 120 }]);
  expect([0, 15, 30, 45, 60].map((from_s) => wordOf(from_s, 30, stretches))).toEqual(["warm-up", "warm-up", "not steady yet", "not steady yet", null]);
});
