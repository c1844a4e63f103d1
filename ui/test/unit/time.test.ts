import { expect, test } from "vitest";
import { clockTime, dateTime, duration, isoTime } from "../../src/format/time.ts";

const MOMENT = Date.UTC(2025, 10, 18, 9, 4);

test("dates carry their zone", () => {
  expect(dateTime(MOMENT, "UTC")).toMatch(/^18 November 2025.*09:04 UTC$/);
  expect(dateTime(MOMENT, "Asia/Kolkata")).toContain("14:34");
  expect(clockTime(MOMENT, "UTC")).toBe("09:04");
  expect(isoTime(MOMENT)).toBe("2025-11-18T09:04:00.000Z");
});

test("what is not known stays unknown", () => {
  expect(dateTime(null)).toBe("–");
  expect(isoTime(null)).toBeUndefined();
  expect(duration(-1)).toBe("–");
});

test.each([
  [12_400, "12 s"],
  [59 * 60_000, "59 min"],
  [71 * 60_000, "1 h 11 min"],
  [26 * 3_600_000, "26 h 0 min"],
])("%d ms last %s", (milliseconds, text) => {
  expect(duration(milliseconds)).toBe(text);
});
