import { describe, expect, test } from "vitest";
import * as number from "../../src/format/number.ts";

const NARROW = "\u202f";

describe("figures", () => {
  test.each([
    [1902.6, "1,903"],
    [99.95, "100"],
    [12.34, "12.3"],
    [9.994, "9.99"],
    [0.4567, "0.46"],
    [0, "0.00"],
  ])("%f has three figures: %s", (value, text) => {
    expect(number.tps(value)).toBe(text);
  });

  test.each([null, undefined, Number.NaN, Number.POSITIVE_INFINITY])("%s is not known, and has no unit", (value) => {
    expect(number.milliseconds(value)).toBe("–");
    expect(number.bytes(value)).toBe("–");
    expect(number.change(value)).toBe("–");
    expect(number.share(value)).toBe("–");
    expect(number.roundShare(value)).toBe("–");
    expect(number.count(value)).toBe("–");
  });

  test("units stand behind a narrow space that does not break", () => {
    expect(number.milliseconds(32.71)).toBe(`32.7${NARROW}ms`);
    expect(number.microseconds(1184)).toBe(`1,184${NARROW}µs`);
    expect(number.bytes(5320)).toBe(`5.20${NARROW}KiB`);
    expect(number.bytes(812)).toBe(`812${NARROW}B`);
  });

  test("ticks carry no idle zeros, and whole numbers keep theirs", () => {
    expect(number.tick(0)).toBe("0");
    expect(number.tick(2.5)).toBe("2.5");
    expect(number.tick(200)).toBe("200");
    expect(number.tick(1000)).toBe("1,000");
    expect(number.tick(-5)).toBe("\u22125");
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
  });
});

test("shares and counts", () => {
  expect(number.share(0.0149)).toBe(`1.5${NARROW}%`);
  expect(number.roundShare(0.95)).toBe(`95${NARROW}%`);
  expect(number.roundShare(0.025)).toBe(`2.5${NARROW}%`);
  expect(number.plural(1, "trial")).toBe("1 trial");
  expect(number.plural(21, "trial")).toBe("21 trials");
});
