import { describe, expect, test } from "vitest";
import { factorParts, pathRange, turns } from "../../src/analysis/search.ts";
import type { Searched } from "../../src/model.ts";
import { sectionsOf } from "../../src/parts/section.tsx";
import { sampleReport } from "../sample/report.ts";
import { searched } from "../sample/search.ts";

const EMPTY: Searched = { best: null, reference: null, importance: [], path: [] };

function found(): Searched {
  const { search } = searched();
  if (search === undefined || search === null) throw new Error("the sample has no search");
  return search;
}

describe("a search", () => {
  test("has a section of its own, and other reports have none", () => {
    expect(sectionsOf(searched(), false)).toContain("search");
    expect(sectionsOf(sampleReport(), false)).not.toContain("search");
    expect(sectionsOf({ ...searched(), search: EMPTY }, false)).not.toContain("search");
  });

  test("the best so far changes where another treatment becomes it", () => {
    expect(turns(found()).map(({ at, step }) => [at, step.best?.treatment])).toEqual([[1, "reference"], [2, "advice"], [5, "candidate 4"]]);
    expect(turns(EMPTY)).toEqual([]);
  });

  test("the axis has room for each figure and interval, and a trial that failed takes none", () => {
    const [low, high] = pathRange(found());
    expect(low).toBeGreaterThan(900);
    expect(low).toBeLessThan(1010 * 0.96);
    expect(high).toBeGreaterThan(1490 * 1.04);
    expect(pathRange(EMPTY)).toEqual([0, 1]);
  });

  test("factors have the level before and that of the best", () => {
    expect(factorParts(searched(), found())).toEqual([
      { factor: "shared_buffers", part: 0.61, before: "128MB", best: "4GB" },
      { factor: "max_wal_size", part: 0.38, before: "1GB", best: "4GB" },
      { factor: "random_page_cost", part: 0.01, before: "4", best: "1.1" },
    ]);
    expect(factorParts(searched(), EMPTY)).toEqual([]);
  });
});
