import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { sampleWorld } from "../sample/world.ts";
import { useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

const textOf = (page: Page, part: string) => () => page.locator(part).innerText();
const more = (finished: number) => ({ trials_finished: finished, trials_failed: 0, trials_planned: 21, elapsed_s: 2300, left_s: null, current: null, phase: null, decided: [] });

describe("the stream of what runs", () => {
  test("shows a trouble of the server, and when it is over", async () => {
    const { page } = await harness.openServed(`${served().url}#/experiments/9`);
    await expect.poll(textOf(page, ".live")).toContain("11 of 21");
    served().send("trouble", { error: "the store is locked", what_to_do: "wait until the other process has ended" });
    await expect.poll(textOf(page, ".live-state")).toMatch(/could not be read this time.*the store is locked.*figures are of \d\d:\d\d/);
    expect(await page.locator(".live").innerText()).toContain("11 of 21");
    served().send("progress", more(11));
    await expect.poll(textOf(page, ".live-state")).toBe("Live");
  });

  test("a token that no longer holds is said to be refused, not cut", async () => {
    const { page } = await harness.openServed(`${served().url}#/live`);
    await expect.poll(textOf(page, ".live")).toContain("11 of 21");
    served().world.refuses = true;
    served().cut();
    await expect.poll(textOf(page, ".live-state")).toContain("The server rejected the token. The token is missing, wrong");
    expect(await page.locator(".live-state").innerText()).toMatch(/figures are of \d\d:\d\d/);
    served().world.refuses = false;
    await page.locator(".live").getByRole("button", { name: "Try again" }).click();
    await expect.poll(textOf(page, ".live-state")).toBe("Live");
  });

  test("a busy server is said to be so, and asked again", async () => {
    served().world.is_broken = true;
    served().world.experiments = sampleWorld().experiments;
    const { page } = await harness.openServed(`${served().url}#/live`);
    await expect.poll(textOf(page, ".trouble")).toContain("tried again by itself");
    served().world.is_broken = false;
    await expect.poll(textOf(page, ".live-state")).toBe("Live");
    served().world.is_broken = true;
    served().cut();
    await expect.poll(textOf(page, ".live-state")).toContain("the store is locked");
    served().world.is_broken = false;
    await expect.poll(textOf(page, ".live-state")).toBe("Live");
  });
});

describe("trials that ended meanwhile", () => {
  const reports = () => served().asked.filter((asked) => asked === "GET /api/experiments/9/report").length;
  const has = (amount: number) => {
    const report = served().world.reports.get(9);
    if (report !== undefined) report.trials = report.trials.slice(0, amount);
  };

  test.each([[11, 1], [10, 2]])("of 11 the report has %i: it is asked for %i times", async (amount, times) => {
    has(amount);
    const { page } = await harness.openServed(`${served().url}#/experiments/9`);
    await expect.poll(textOf(page, ".live")).toContain("11 of 21");
    await expect.poll(reports).toBe(times);
    served().send("progress", more(11));
    served().send("progress", more(12));
    await expect.poll(reports).toBe(times + 1);
  });
});

describe("what begins later", () => {
  test.each([["#/", ".index-table tbody tr", 64], ["#/live", ".live", 1]])("%s shows it by itself", async (hash, part, expected) => {
    const all = served().world.experiments;
    served().world.experiments = all.slice(1, 2);
    const { page } = await harness.openServed(`${served().url}#/targets`, { apart: true });
    await page.clock.install();
    await page.evaluate((to) => {
      location.hash = to;
    }, hash);
    await page.locator(hash === "#/" ? ".index-table" : ".empty").waitFor();
    served().world.experiments = all;
    await page.clock.fastForward(31_000);
    await expect.poll(() => page.locator(part).count()).toBe(expected);
  });

  test("targets are looked at again on demand, not by themselves", async () => {
    const { page } = await harness.openServed(`${served().url}#/targets`);
    await expect.poll(() => page.locator(".target-list li").count()).toBe(2);
    served().world.targets = served().world.targets.slice(0, 1);
    await page.getByRole("button", { name: "Look again" }).click();
    await expect.poll(() => page.locator(".target-list li").count()).toBe(1);
  });
});

describe("what cannot be loaded", () => {
  test.each(["#/", "#/live", "#/experiments/9", "#/compare?a=7:reference&b=7:memory"])("%s asks again by itself", async (hash) => {
    served().world.is_broken = true;
    const { page } = await harness.openServed(served().url + hash);
    await expect.poll(textOf(page, ".trouble")).toContain("the store is locked");
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(1);
    served().world.is_broken = false;
    await expect.poll(() => page.locator(".trouble").count()).toBe(0);
    await page.locator(".index-table, .live, .compare-table").first().waitFor();
  });

  test("a report that cannot be loaded again stays, and is said to be old until it can", async () => {
    const { page } = await harness.openServed(`${served().url}#/experiments/9`);
    await expect.poll(textOf(page, ".live")).toContain("11 of 21");
    expect(await page.locator(".stale").count()).toBe(0);
    served().world.is_broken = true;
    served().send("progress", more(12));
    await expect.poll(textOf(page, ".stale")).toMatch(/What is shown is of \d\d:\d\d\..*the store is locked/);
    expect(await page.locator("#figures").count()).toBe(1);
    served().world.is_broken = false;
    await expect.poll(() => page.locator(".stale").count()).toBe(0);
  });

  test("the reader who comes back sees what is new", async () => {
    const { page } = await harness.openServed(served().url);
    await page.locator(".index-table").waitFor();
    served().world.experiments = served().world.experiments.slice(0, 2);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await expect.poll(() => page.locator(".index-table tbody tr").count()).toBe(2);
  });
});
