import { expect, test } from "vitest";
import { pauseAfter_ms } from "../../src/data/pauses.ts";
import { asTrouble, cut, troubleOfStatus, troubleTold } from "../../src/data/trouble.ts";

test("pauses grow, up to half a minute", () => {
  expect([1, 2, 3, 4, 5, 6, 60].map(pauseAfter_ms)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test.each([
  ["a cut connection", cut(), true],
  ["a locked store", troubleOfStatus(503, "the store is locked", null), true],
  ["a proxy without its server", troubleOfStatus(502, null, null), true],
  ["a truncated store", troubleOfStatus(500, "the store is truncated", null), false],
  ["a name that is not allowed", troubleOfStatus(403, null, null), false],
  ["a wrong token", troubleOfStatus(401, null, null), false],
  ["what is not there", troubleOfStatus(404, null, null), false],
  ["what cannot be asked", troubleOfStatus(400, "nothing is shared; ".repeat(9), null), false],
  ["damaged data", asTrouble(new Error("x")), false],
])("%s: whether it may pass", (_name, trouble, passes) => {
  expect(trouble.passes).toBe(passes);
});

test.each([
  [401, "The server rejected the token.", "older than the last start of the server"],
  [403, "this server is not db1", "--allow-host db1"],
])("%i: who is refused sees what helps", (status, heading, advice) => {
  const found = troubleOfStatus(status, "this server is not db1", "start it with --allow-host db1");
  expect([found.heading, found.advice.includes(advice)]).toEqual([heading, true]);
});

test("what the server reports of itself is read with care", () => {
  expect(troubleTold({ error: "the store is locked", what_to_do: "wait" }).advice).toBe("the store is locked; wait.");
  expect(troubleTold({ error: 7 }).advice).toContain("does not say why");
  expect(troubleTold(null).heading).toContain("could not be read");
});
