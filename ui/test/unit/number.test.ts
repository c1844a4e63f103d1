import { describe, expect, test } from "vitest";
import * as number from "../../src/format/number.ts";
import * as span from "../../src/format/span.ts";
import { valueWithUnit } from "../../src/format/unit.ts";

const NARROW = "\u202f";

describe("figures", () => {
  test.each([
    [1902.6, "1,903"],
    [99.95, "100"],
    [12.34, "12.3"],
    [9.994, "9.99"],
    [0.4567, "0.457"],
    [0.9996, "1.00"],
    [0.00234, "0.00234"],
    [0.002, "0.00200"],
    [-0.0995, "\u22120.0995"],
    [0, "0"],
    [1e-17, "0"],
  ])("%f has three figures: %s", (value, text) => {
    expect(number.tps(value)).toBe(text);
  });

  test.each([null, undefined, Number.NaN, Number.POSITIVE_INFINITY])("%s is not known, and has no unit", (value) => {
    expect(span.milliseconds(value)).toBe("–");
    expect(number.bytes(value)).toBe("–");
    expect(number.change(value)).toBe("–");
    expect(number.share(value)).toBe("–");
    expect(number.roundShare(value)).toBe("–");
    expect(number.count(value)).toBe("–");
  });

  test("units stand behind a narrow space that does not break", () => {
    expect(number.bytes(5320)).toBe(`5.20${NARROW}KiB`);
    expect(number.bytes(812)).toBe(`812${NARROW}B`);
  });

  test("ticks carry no idle zeros, and whole numbers keep theirs", () => {
    expect(number.tick(0)).toBe("0");
    expect(number.tick(2.5)).toBe("2.5");
    expect(number.tick(0.1 + 0.2)).toBe("0.3");
    expect(number.tick(0.002)).toBe("0.002");
    expect(number.tick(200)).toBe("200");
    expect(number.tick(1000)).toBe("1,000");
    expect(number.tick(-5)).toBe("\u22125");
  });
});

describe("spans of time", () => {
  test.each([
    [32.71, "ms", "32.7", "ms"],
    [0.1, "ms", "0.100", "ms"],
    [0.0999, "ms", "99.9", "µs"],
    [0.002, "ms", "2.00", "µs"],
    [0.00002, "ms", "20.0", "ns"],
    [9_999, "ms", "9,999", "ms"],
    [61_234, "ms", "61.2", "s"],
    [1184, "µs", "1,184", "µs"],
    [12_345, "µs", "12.3", "ms"],
    [0.0012, "s", "1.20", "ms"],
    [86_400, "s", "86,400", "s"],
    [0, "ms", "0", "ms"],
    [-0.05, "ms", "\u221250.0", "µs"],
  ] as const)("%f %s is %s %s", (value, given, figure, unit) => {
    expect(span.span(value, given)).toBe(`${figure}${NARROW}${unit}`);
    expect(valueWithUnit(value, given)).toBe(`${figure}${NARROW}${unit}`);
  });

  test("in a column they keep the heading's unit, and their digits", () => {
    expect([0.002, 0.0456, 12.34, null].map(span.bareMilliseconds)).toEqual(["0.00200", "0.0456", "12.3", "–"]);
  });

  test("side by side they have one unit", () => {
    expect(span.together([0.02, 0.015])).toEqual({ figures: ["20.0", "15.0"], unit: "µs" });
    expect(span.together([32, undefined])).toEqual({ figures: ["32.0", "–"], unit: "ms" });
    expect(span.together([])).toEqual({ figures: [], unit: "ms" });
  });
});

describe("changes", () => {
  test.each([
    [1.172, "+17.2"],
    [0.979, "\u22122.1"],
    [1, "0.0"],
    [0.9999, "0.0"],
    [1.0004, "0.0"],
    [13, "+1,200"],
  ])("a ratio of %f reads %s", (ratio, text) => {
    expect(number.changeFigure(ratio)).toBe(text);
  });

  test("bounds have one unit for both", () => {
    expect(number.changeBounds(0.979, 1.06)).toBe("\u22122.1 … +6.0");
    expect(number.changeBounds(0, 1e40)).toBe("\u2212100.0 … over +99,900");
  });
});

test("shares and counts", () => {
  expect(number.share(0.0149)).toBe(`1.5${NARROW}%`);
  expect(number.roundShare(0.95)).toBe(`95${NARROW}%`);
  expect(number.roundShare(0.025)).toBe(`2.5${NARROW}%`);
  expect(number.plural(1, "trial")).toBe("1 trial");
  expect(number.plural(21, "trial")).toBe("21 trials");
});
