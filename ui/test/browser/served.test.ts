import { describe, expect, test } from "vitest";
import { useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

const NO_ICON = (complaint: string) => !complaint.includes("status of 404");

describe("the index", () => {
  test("is filtered by words, tag and status, and sorted; markup in names is text", async () => {
    const { page, complaints } = await harness.openServed(served().url);
    const rows = page.locator(".index-table tbody tr");
    await expect.poll(() => rows.count()).toBe(64);
    await page.getByLabel("Search").fill("wal-compression");
    await expect.poll(() => rows.count()).toBe(10);
    expect(await page.locator(".filter-found").innerText()).toContain("10 of 64");
    await page.getByLabel("Status").selectOption("killed");
    expect(await rows.count()).toBeLessThan(10);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: "Show only nightly" }).first().click();
    await expect.poll(() => rows.count()).toBe(20);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: /^Experiment/ }).click();
    expect(await rows.first().innerText()).toContain("<img src=x onerror");
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.evaluate(() => "pgdynoHit" in window)).toBe(false);
    expect(complaints.filter(NO_ICON)).toEqual([]);
  });

  test("has its filter in the address: a reload, the way back and another reader find it there", async () => {
    const { page } = await harness.openServed(served().url);
    const rows = page.locator(".index-table tbody tr");
    await page.getByLabel("Search").fill("wal-compression is");
    await page.getByLabel("Status").selectOption("interrupted");
    await page.getByRole("button", { name: /^Experiment/ }).click();
    await expect.poll(() => page.url()).toContain("#/?words=wal-compression+is&status=interrupted&sort=name");
    const found = await rows.allInnerTexts();
    expect([found.length > 1, found.length < 10]).toEqual([true, true]);
    await page.reload();
    await expect.poll(() => rows.allInnerTexts()).toEqual(found);
    await rows.first().getByRole("link").first().click();
    await page.locator(".trouble, #figures").first().waitFor();
    await page.goBack();
    await expect.poll(() => rows.allInnerTexts()).toEqual(found);
    expect(await page.getByLabel("Search").inputValue()).toBe("wal-compression is");
    const other = await harness.openServed(page.url());
    await expect.poll(() => other.page.locator(".index-table tbody tr").allInnerTexts()).toEqual(found);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Experiments" }).click();
    await expect.poll(() => rows.count()).toBe(64);
  });

  test("finds what stands in a note, and sorts by how many there are", async () => {
    const { page } = await harness.openServed(served().url);
    const rows = page.locator(".index-table tbody tr");
    await page.getByLabel("Search").fill("operators step");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.first().innerText()).toContain("Stock to tuned");
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: /^Notes/ }).click();
    await expect.poll(() => page.url()).toContain("sort=-notes");
    expect(await rows.first().locator("td").last().innerText()).toBe("2");
    served().world.broken = "/api/experiments?search";
    await page.getByLabel("Search").fill("ticket");
    await expect.poll(() => page.locator("main").innerText()).toContain("Notes are not searched: the store is locked");
  });

  test("of an empty store says what to do", async () => {
    served().world.experiments = [];
    const { page } = await harness.openServed(served().url);
    await expect.poll(() => page.locator(".empty").innerText()).toContain("pgdyno demo");
  });
});

describe("an experiment", () => {
  test("opens, its sections are reached without leaving it, notes and tags are kept", async () => {
    const { page, complaints } = await harness.openServed(`${served().url}#/experiments/7`);
    await page.locator("#notes .note").waitFor();
    await page.getByRole("navigation", { name: "Contents" }).getByRole("link", { name: "Settings" }).click();
    expect(page.url()).toContain("#/experiments/7");
    await page.getByLabel("New note").fill("<b>look</b> at the disk");
    await page.getByRole("button", { name: "Keep note" }).click();
    await expect.poll(() => page.locator(".note").count()).toBe(2);
    expect(await page.locator(".note-text").last().innerText()).toBe("<b>look</b> at the disk");
    await page.getByLabel("New tag").fill("db1");
    await page.getByRole("button", { name: "Add tag" }).click();
    await page.getByRole("button", { name: "Remove tag db1" }).click();
    await expect.poll(() => page.getByRole("button", { name: "Remove tag db1" }).count()).toBe(0);
    await page.getByRole("button", { name: /^Remove the note/ }).last().click();
    await expect.poll(() => page.locator(".note").count()).toBe(1);
    expect(complaints.filter(NO_ICON)).toEqual([]);
  });

  test("has all costs of a transaction, and says why others are missing", async () => {
    const { page, complaints } = await harness.openServed(`${served().url}#/experiments/7`);
    const part = page.locator("#efficiency");
    await expect.poll(() => part.getByRole("columnheader").count()).toBe(9);
    expect(await part.innerText()).toContain("Measured too: TLB misses, stores; Cache misses");
    await part.getByRole("button", { name: "Show all 14 columns" }).click();
    await expect.poll(() => part.getByRole("columnheader").count()).toBe(15);
    expect(await part.getByRole("row", { name: /huge pages/ }).innerText()).toContain("508");
    await part.locator("summary").click();
    await expect.poll(() => part.locator("details").innerText()).toContain("TLB walks, loads: the events of this CPU (AMD family 25) are not known");
    expect(await part.locator("details").innerText()).toContain("Cache look-ups: the reason was not recorded");
    expect(complaints.filter(NO_ICON)).toEqual([]);
  });

  test("that runs is followed; a cut connection is said, and tried again", async () => {
    const { page } = await harness.openServed(`${served().url}#/experiments/9`);
    await expect.poll(() => page.locator(".live").innerText()).toContain("11 of 21");
    served().send("progress", { trials_finished: 12, trials_planned: 21, elapsed_s: 2300, left_s: null, current: null, decided: [] });
    await expect.poll(() => page.locator(".live").innerText()).toContain("12 of 21");
    served().world.cuts = true;
    served().cut();
    await expect.poll(() => page.locator(".live").innerText()).toContain("connection is cut");
    served().world.cuts = false;
    await expect.poll(() => page.locator(".live-state").innerText()).toBe("Live");
    served().send("end", { status: "finished" });
    await expect.poll(() => page.locator(".live-state").innerText()).toContain("Ended: finished");
  });

  test("that is not there, a wrong token and a server that has gone are said", async () => {
    const { page } = await harness.openServed(`${served().url}#/experiments/999`);
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("there is no experiment 999");
    served().world.refuses = true;
    await page.evaluate(() => {
      location.hash = "#/";
    });
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("Open the link that “pgdyno serve” printed");
    served().world.refuses = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".index-table").waitFor();
    await served().stop();
    await page.evaluate(() => {
      location.hash = "#/experiments/7";
    });
    await expect.poll(() => page.locator(".trouble").innerText()).toContain("cannot be reached");
  });
});

describe("comparing", () => {
  test("the answer stands first, parts are chosen, sides are swapped", async () => {
    const { page, complaints } = await harness.openServed(`${served().url}#/compare`);
    await page.getByLabel("Experiment").first().selectOption("7");
    await page.getByLabel("Experiment").last().selectOption("7");
    await expect.poll(() => page.locator(".empty").innerText()).toContain("choose a treatment");
    await page.getByLabel("Part").first().selectOption(":reference");
    await page.getByLabel("Part").last().selectOption(":memory");
    await expect.poll(() => page.url()).toContain("b=7%3Amemory");
    await expect.poll(() => page.locator(".answer").innerText()).toContain("B is better: throughput +18.2");
    await page.locator("#response svg.plot").waitFor();
    expect(await page.locator("#settings").innerText()).toContain("shared_buffers");
    await page.evaluate(() => {
      navigator.clipboard.writeText = (text) => {
        document.body.dataset.copied = text;
        return Promise.resolve();
      };
    });
    await page.getByRole("button", { name: "Copy – Settings of B that differ" }).click();
    await expect.poll(() => page.locator("body").getAttribute("data-copied")).toMatch(/^shared_buffers = \w+$/m);
    await page.getByRole("button", { name: "Swap A and B" }).click();
    await expect.poll(() => page.url()).toContain("a=7%3Amemory");
    expect(complaints.filter(NO_ICON)).toEqual([]);
  });
});

describe("a target", () => {
  test("shows what is changed now, and advice", async () => {
    const { page, complaints } = await harness.openServed(`${served().url}#/targets`);
    await page.getByRole("link", { name: "sandbox demo" }).click();
    await expect.poll(() => page.locator("#changed").innerText()).toContain("vm.dirty_background_bytes");
    expect(await page.locator("#advice").innerText()).toContain("pgdyno apply wal_compression=lz4");
    expect(complaints.filter(NO_ICON)).toEqual([]);
  });
});
