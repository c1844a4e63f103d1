import { describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type Look, useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

async function open(look: Look = {}): Promise<Page> {
  const { page } = await harness.openServed(`${served().url}#/experiments/7`, look);
  await page.locator("#notes .note").waitFor();
  return page;
}

const tag = (page: Page) => page.getByRole("button", { name: "Remove tag keep" });
const undo = (page: Page) => page.getByRole("button", { name: /^Undo/ });
const deletions = () => served().asked.filter((asked) => asked.startsWith("DELETE"));
/** Longer than there is a way back. */
const PAST_MS = 11_000;

/** The page with its clock stopped: a slow host does not end the way back. */
async function openStopped(): Promise<Page> {
  const page = await open({ apart: true });
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  return page;
}

async function endWayBack(page: Page): Promise<void> {
  await page.clock.fastForward(PAST_MS);
  await page.clock.resume();
}

describe("what was typed", () => {
  test("stays where it is when it cannot be kept, and goes when it can", async () => {
    const page = await open();
    served().world.is_broken = true;
    await page.getByLabel("New note").fill("the disk was full");
    await page.getByRole("button", { name: "Keep note" }).click();
    await expect.poll(() => page.locator("#notes .trouble").innerText()).toContain("the store is locked");
    expect(await page.getByLabel("New note").inputValue()).toBe("the disk was full");
    await page.getByLabel("New tag").fill("disk");
    await page.getByRole("button", { name: "Add tag" }).click();
    await expect.poll(() => page.getByRole("button", { name: "Add tag" }).isEnabled()).toBe(true);
    expect(await page.getByLabel("New tag").inputValue()).toBe("disk");
    served().world.is_broken = false;
    await page.getByRole("button", { name: "Keep note" }).click();
    await expect.poll(() => page.locator(".note").count()).toBe(2);
    expect(await page.getByLabel("New note").inputValue()).toBe("");
    expect(await page.locator("#notes .trouble").count()).toBe(0);
  });
});

describe("what was removed", () => {
  test("comes back by undoing, and nothing was asked of the server", async () => {
    const page = await openStopped();
    await tag(page).click();
    await expect.poll(() => tag(page).count()).toBe(0);
    await page.getByRole("button", { name: /^Remove the note/ }).click();
    await expect.poll(() => page.locator(".note").count()).toBe(0);
    expect(await page.locator("#notes").innerText()).toContain("Tag keep was removed.");
    await undo(page).first().click();
    await undo(page).click();
    await expect.poll(() => page.locator(".note").count()).toBe(1);
    expect(await tag(page).count()).toBe(1);
    expect(await undo(page).count()).toBe(0);
    expect(deletions()).toEqual([]);
  });

  test("is taken from the server when the way back ends", async () => {
    const page = await openStopped();
    await tag(page).click();
    await undo(page).waitFor();
    await endWayBack(page);
    await expect.poll(deletions).toEqual(["DELETE /api/experiments/7/tags/keep"]);
    await expect.poll(() => undo(page).count()).toBe(0);
    expect(await tag(page).count()).toBe(0);
    // Who adds it again sees it again.
    await page.getByLabel("New tag").fill("keep");
    await page.getByRole("button", { name: "Add tag" }).click();
    await expect.poll(() => tag(page).count()).toBe(1);
  });

  test("is there again when the server would not", async () => {
    const page = await openStopped();
    await page.getByRole("button", { name: /^Remove the note/ }).click();
    await undo(page).waitFor();
    served().world.is_broken = true;
    await endWayBack(page);
    await expect.poll(() => page.locator("#notes .trouble").innerText()).toContain("the store is locked");
    expect(await page.locator(".note").count()).toBe(1);
  });

  test("goes with the reader who leaves", async () => {
    const page = await open();
    await tag(page).click();
    await undo(page).waitFor();
    await page.evaluate(() => {
      location.hash = "#/";
    });
    await expect.poll(deletions).toEqual(["DELETE /api/experiments/7/tags/keep"]);
    await page.goBack();
    await page.getByRole("button", { name: /^Remove the note/ }).click();
    await undo(page).waitFor();
    await page.reload();
    await expect.poll(deletions).toHaveLength(2);
  });
});

test("who comes back to a page that the browser has kept is offered nothing that is gone", async () => {
  const page = await open();
  await tag(page).click();
  await undo(page).waitFor();
  const show = (name: string) => page.evaluate((of) => window.dispatchEvent(new PageTransitionEvent(of, { persisted: true })), name);
  await show("pagehide");
  await expect.poll(deletions).toEqual(["DELETE /api/experiments/7/tags/keep"]);
  const lists = () => served().asked.filter((asked) => asked === "GET /api/experiments/7/tags").length;
  const before = lists();
  await show("pageshow");
  await expect.poll(() => undo(page).count()).toBe(0);
  await expect.poll(lists).toBe(before + 1);
  expect(await tag(page).count()).toBe(0);
});

test("an experiment's page does not ask for the list of all", async () => {
  await open();
  expect(served().asked).not.toContain("GET /api/experiments");
  expect(served().asked).toContain("GET /api/experiments/7/tags");
});
