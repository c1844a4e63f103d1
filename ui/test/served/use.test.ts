import { describe, expect, test } from "vitest";
import { Visitor } from "./visitor.ts";

const visitor = new Visitor();

describe("who is let in", () => {
  test("the link leads to the index, and the token does not stay in the address", async () => {
    const { page, complaints } = await visitor.stranger();
    await page.goto(visitor.link);
    await expect.poll(() => page.locator(".index-table tbody tr").count()).toBe(4);
    expect(page.url()).toBe(visitor.base);
    expect(await page.evaluate(() => document.cookie)).toBe("");
    expect(complaints).toEqual([]);
  });

  test("without a token nothing is shown, and it is said what to do", async () => {
    const { page } = await visitor.stranger();
    const answer = await page.goto(visitor.base);
    expect(answer?.status()).toBe(401);
    await expect.poll(() => page.locator("body").innerText()).toContain("pgdyno serve");
    expect((await page.request.get(`${visitor.base}api/experiments`)).status()).toBe(401);
  });

  test("a page whose token has gone says so", async () => {
    const { page } = await visitor.open("index", { apart: true });
    await page.context().clearCookies();
    await page.evaluate(() => {
      location.hash = "#/experiments/1";
    });
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("Open the link that “pgdyno serve” printed");
  });
});

describe("a report", () => {
  test("is asked for before the page's script is there, and once", async () => {
    const { page, complaints } = await visitor.stranger();
    await page.request.get(visitor.link);
    let reports = 0;
    let begun: () => void = () => undefined;
    const asked = new Promise<void>((done) => (begun = done));
    page.on("request", (request) => {
      if (!request.url().endsWith("/api/experiments/1/report")) return;
      reports += 1;
      begun();
    });
    await page.route("**/app.js", async (route) => {
      await asked;
      await route.continue();
    });
    await page.goto(`${visitor.base}#/experiments/1`);
    await page.locator("#notes .note-form").waitFor();
    expect(reports).toBe(1);
    expect(complaints).toEqual([]);
  });
});

describe("the index", () => {
  test("is filtered by words, status and tag", async () => {
    const { page, complaints } = await visitor.open("index");
    const rows = page.locator(".index-table tbody tr");
    await page.getByLabel("Search").fill("pgdynoHit");
    await expect.poll(() => rows.count()).toBe(1);
    await expect.poll(() => rows.first().innerText()).toContain("<img src=x onerror=");
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByLabel("Status").selectOption("interrupted");
    await expect.poll(() => rows.count()).toBe(1);
    await expect.poll(() => rows.first().innerText()).toContain("nothing-yet");
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: "Show only nightly" }).click();
    await expect.poll(() => rows.count()).toBe(1);
    expect(complaints).toEqual([]);
  });

  test("a row is reached and opened by the keyboard", async () => {
    const { page } = await visitor.open("index");
    const wanted = page.getByRole("link", { name: "memory", exact: true });
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press("Tab");
      if (await wanted.evaluate((link) => link === document.activeElement)) break;
    }
    await page.keyboard.press("Enter");
    await page.locator("#figures").waitFor();
    expect(page.url()).toContain("#/experiments/1");
  });
});

describe("an experiment", () => {
  test("leads to a trial, whose charts are zoomed", async () => {
    const { page, complaints } = await visitor.open("experiment");
    await page.locator("#trials summary").click();
    await page.getByRole("link", { name: "block 1, no. 2" }).first().click();
    await page.locator(".panel canvas").first().waitFor();
    await expect.poll(() => page.locator(".panel").count()).toBeGreaterThan(3);
    await expect.poll(() => page.locator("#statements").innerText()).toContain("4711");
    const range = () => page.locator(".time-range").innerText();
    await expect.poll(range).toContain("0:00 – 0:24");
    const box = await page.locator(".panel .u-over").first().boundingBox();
    if (box === null) throw new Error("the chart has no place on the page");
    await page.mouse.move(box.x + 300, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await expect.poll(range).not.toContain("0:00 – 0:24");
    await page.getByRole("button", { name: "All", exact: true }).click();
    await expect.poll(range).toContain("0:00 – 0:24");
    expect(complaints).toEqual([]);
  });

  test("keeps tags and notes, also over a reload, and drops them", async () => {
    const { page, complaints } = await visitor.open("experiment");
    const notes = page.locator(".note-text");
    const tag = page.getByRole("button", { name: "Remove tag disk-2" });
    await page.getByLabel("New note").fill("<b>look</b> at the disk\nand \"again\"");
    await page.getByRole("button", { name: "Keep note" }).click();
    await expect.poll(() => notes.count()).toBe(1);
    await page.getByLabel("New tag").fill("<b>");
    expect(await page.getByRole("button", { name: "Add tag" }).isDisabled()).toBe(true);
    await page.getByLabel("New tag").fill("disk-2");
    await page.getByRole("button", { name: "Add tag" }).click();
    await tag.waitFor();
    await page.reload();
    await tag.waitFor();
    await expect.poll(() => notes.innerText()).toBe("<b>look</b> at the disk\nand \"again\"");
    await tag.click();
    await expect.poll(() => tag.count()).toBe(0);
    await page.getByRole("button", { name: /^Remove the note/ }).click();
    await expect.poll(() => notes.count()).toBe(0);
    await page.reload();
    await page.locator(".note-form").waitFor();
    for (const gone of [tag, notes]) await expect.poll(() => gone.count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("without a trial, and one whose names are markup, are shown as they are", async () => {
    const { page } = await visitor.open("empty");
    await expect.poll(() => page.locator("h1").innerText()).toContain("nothing-yet");
    const markup = await visitor.open("markup");
    for (const wanted of ["<img src=x onerror=", "</script><script>", "<svg onload="]) {
      await expect.poll(() => markup.page.locator("body").innerText()).toContain(wanted);
    }
  });
});

describe("comparing", () => {
  test("two treatments of the store, chosen and swapped", async () => {
    const { page, complaints } = await visitor.open("#/compare");
    await page.getByLabel("Experiment").first().selectOption("1");
    await page.getByLabel("Experiment").last().selectOption("1");
    await page.getByLabel("Part").first().selectOption(":reference");
    await page.getByLabel("Part").last().selectOption(":larger");
    await expect.poll(() => page.locator(".answer").innerText()).toContain("B is better: throughput +2");
    await page.getByRole("button", { name: "Swap A and B" }).click();
    await expect.poll(() => page.locator(".answer").innerText()).toContain("B is worse");
    expect(complaints).toEqual([]);
  });
});

describe("what runs", () => {
  test("is followed in the live view and beside its report", async () => {
    const { page, complaints } = await visitor.open("live");
    for (const view of ["#/live", "#/experiments/4"]) {
      await page.goto(visitor.base + view);
      await expect.poll(() => page.locator(".live-state").innerText()).toBe("Live");
      for (const wanted of ["2 of 6", "larger, block 2: measuring", "about"]) {
        await expect.poll(() => page.locator(".live").innerText()).toContain(wanted);
      }
    }
    expect(complaints).toEqual([]);
  });
});

describe("a target", () => {
  test("shows its changes, advice, experiments and facts", async () => {
    const { page, complaints } = await visitor.open("targets");
    await expect.poll(() => page.locator("#changed-on-host").innerText()).toMatch(/apply <img src=x[^]*zone_reclaim_mode[^]*in force[^]*until it is restored/);
    await page.getByRole("link", { name: "sandbox a" }).click();
    // Servers are not asked while an experiment runs.
    await expect.poll(() => page.locator("#changed").innerText()).toContain("while an experiment runs");
    await expect.poll(() => page.locator("#advice .advice").count()).toBeGreaterThan(0);
    await expect.poll(() => page.locator("#experiments").innerText()).toContain("experiment 1");
    await expect.poll(() => page.locator("#facts").innerText()).toContain("cpu.online_count");
    expect(complaints).toEqual([]);
  });
});
