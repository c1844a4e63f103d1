import { describe, expect, test } from "vitest";
import { askedOf, NEWEST, NO_FILTER, queryOf } from "../../src/index/filter.ts";
import { addressOf, parseRoute } from "../../src/router.ts";

describe("the address of the index", () => {
  test.each([
    [NO_FILTER, NEWEST, ""],
    [{ ...NO_FILTER, words: "jit  wal? & #<b>", status: "running or killed" }, NEWEST, null],
    [{ words: "ä ", status: "killed", tag: "nightly", since: "2026-11-01" }, { by: "name", rising: true }, null],
    [NO_FILTER, { by: "started", rising: true }, "sort=started"],
  ] as const)("is read as it is written: %j %j", (filter, sorting, text) => {
    const query = queryOf(filter, sorting);
    if (text !== null) expect(query).toBe(text);
    expect(parseRoute(addressOf.index(query), "serve")).toEqual({ view: "index", query });
    expect(askedOf(query)).toEqual({ filter, sorting });
  });

  test("from elsewhere is read with care", () => {
    expect(askedOf("since=soon&sort=-toString&x=1&words")).toEqual({ filter: NO_FILTER, sorting: NEWEST });
  });
});
