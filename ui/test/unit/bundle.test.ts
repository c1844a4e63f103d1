import { expect, test } from "vitest";
import { assemble } from "../../scripts/assemble.ts";
import { objection } from "../../scripts/bundle-guard.ts";
import { markerPath } from "../../src/charts/markers.ts";
import { treatmentStyle } from "../../src/charts/style.ts";

test.each([
  ["app.js", "const a = '</SCRIPT >'"],
  ["app.js", "const a = '<!-- '"],
  ["app.css", "a::after { content: '</style' }"],
  ["chunk-1.js", ""],
])("%s with %s cannot be put into a page", (name, text) => {
  expect(objection(name, text)).not.toBeNull();
});

test("what harms nothing passes", () => {
  expect(objection("app.js", "a < script && b")).toBeNull();
});

test("a build that is not there is named", () => {
  expect(() => assemble({}, "no-such-directory")).toThrow(/npm run build/);
});

test("no two of the first forty treatments look the same", () => {
  const looks = Array.from({ length: 40 }, (_, index) => {
    const { variable, dash, marker } = treatmentStyle(index);
    return `${variable} ${dash.join(",")} ${markerPath(marker, 4)}`;
  });
  expect(new Set(looks).size).toBe(40);
});
