import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

const textOf = (page: Page, part: string) => () => page.locator(part).innerText();

/** What the server has not made yet is asked for again; what it has is not. */
describe("the rest of an answer", () => {
  test("the index gets the answers that were not known yet", async () => {
    const whole = served().world.experiments;
    served().world.experiments = whole.map((row) => ({ ...row, answer: null, trials_planned: null }));
    served().world.lacks_answers = true;
    const { page } = await harness.openServed(served().url);
    await page.locator(".index-table").waitFor();
    const answer = whole[1]?.answer ?? "";
    expect(answer).not.toBe("");
    expect(await page.locator(".index-table").innerText()).not.toContain(answer);
    served().world.experiments = whole;
    served().world.lacks_answers = false;
    await expect.poll(textOf(page, ".index-table")).toContain(answer);
  });

  test("advice that is not made yet differs from none, and comes by itself", async () => {
    const whole = served().world.targets;
    served().world.targets = whole.map((target) => ({ ...target, advice: null, is_advice_due: true }));
    const { page } = await harness.openServed(`${served().url}#/targets/sandbox%20demo`);
    await expect.poll(textOf(page, "#advice")).toContain("being worked out");
    served().world.targets = whole;
    await expect.poll(textOf(page, "#advice")).toContain("wal_compression");
    await page.goto(`${served().url}#/targets/db1.example%3A5432`);
    await expect.poll(textOf(page, "#advice")).toContain("None is stored");
  });
});

describe("what is changed", () => {
  const target = (page: Page) => page.goto(`${served().url}#/targets/db1.example%3A5432`);

  test.each(["while an experiment runs, servers are not asked", "the journal x cannot be read"])("is not known, and why: %s", async (why) => {
    served().world.targets = served().world.targets.map((each) => ({ ...each, changed: null, why_not_known: why }));
    served().world.changed_on_host = null;
    served().world.why_not_known = why;
    const { page } = await harness.openServed(`${served().url}#/targets`);
    await expect.poll(textOf(page, "#changed-on-host")).toContain(`Not known: ${why}.`);
    await target(page);
    await expect.poll(textOf(page, "#changed")).toContain(`Not known: ${why}.`);
  });

  test("nothing is said to be so only of all", async () => {
    served().world.changed_on_host = [];
    const { page } = await harness.openServed(`${served().url}#/targets`);
    await expect.poll(textOf(page, "#changed-on-host")).toContain("everything that pgdyno has set was restored");
    served().world.changed_on_host = served().world.targets[0]?.changed ?? [];
    served().world.servers_asked = false;
    await page.reload();
    await expect.poll(textOf(page, "#changed-on-host")).toMatch(/vm\.dirty_background_bytes[\s\S]*Some states are unknown/);
    expect(await page.locator("#changed-on-host").innerText()).not.toContain("was restored");
  });
});

describe("an experiment whose process died", () => {
  test.each([
    ["killed", "the process that ran it died", 0],
    ["running or killed", "unknown from here", 1],
  ] as const)("is said to be %s", async (status, words, strips) => {
    const report = served().world.reports.get(9);
    if (report === undefined) throw new Error("no sample");
    report.experiment.status = status;
    const { page } = await harness.openServed(`${served().url}#/experiments/9`);
    await expect.poll(textOf(page, ".masthead")).toContain(words);
    expect(await page.locator(".circumstances").innerText()).toContain(status);
    expect(await page.locator(".masthead").innerText()).not.toContain("the numbers still change");
    await expect.poll(() => page.locator(".live").count()).toBe(strips);
  });
});
