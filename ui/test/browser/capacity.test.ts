import { describe, expect, test } from "vitest";
import { cores } from "../sample/capacity.ts";
import { VARIANTS } from "../sample/variants.ts";
import { useHarness, useServer } from "./harness.ts";

const harness = useHarness();
const served = useServer();

describe("what a throughput takes", () => {
  test("a report file has stored answers, and adds up a price by itself", async () => {
    const { page, complaints, requests, url } = await harness.open(cores());
    const table = page.locator("#capacity .capacity-table");
    expect(await table.locator("tbody tr").count()).toBe(4);
    const write = table.getByRole("row", { name: /^write, nvme/ });
    expect(await write.innerText()).toMatch(/and up, no upper bound/);
    expect(await write.locator(".attention").innerText()).toContain("bounds alone");
    expect(await table.innerText()).toContain("its peak is 21,400 TPS with 35.1 CPUs");
    expect(await page.locator("#capacity").innerText()).toContain("pgdyno capacity 12 --tps 60000");
    await page.getByLabel("18,000").check();
    await expect.poll(() => page.locator("#capacity").innerText()).toContain("--tps 18000");
    await page.getByLabel("Price of an hour").fill("0.04");
    await page.getByRole("button", { name: "Work it out" }).click();
    await expect.poll(() => table.locator("thead").innerText()).toContain("Cost per million");
    await page.getByText("What the curves go by").click();
    expect(await page.getByRole("table", { name: "The best that each number of CPUs did" }).getByRole("row").count()).toBe(17);
    expect(requests).toEqual([url]);
    expect(complaints).toEqual([]);
  });

  test("where clients alone were varied, it shows their zone", async () => {
    const { page, complaints } = await harness.open(VARIANTS.ladder?.());
    expect(await page.locator("#capacity .capacity-table").innerText()).toMatch(/32 to 64 or more\s+not reached with these CPUs/);
    await page.getByLabel("930").check();
    await expect.poll(() => page.locator("#capacity .capacity-table").innerText()).toContain("reached with these CPUs");
    expect(complaints).toEqual([]);
  });

  test("a server is asked for any throughput, limit and price", async () => {
    const { page, complaints, requests } = await harness.openServed(`${served().url}#/experiments/12`);
    await page.locator("#capacity .capacity-table").waitFor();
    expect(requests.some((request) => request.includes("/capacity"))).toBe(false);
    await page.getByRole("textbox", { name: "Transactions per second" }).fill("many");
    await page.getByRole("button", { name: "Work it out" }).click();
    expect(await page.locator("#capacity [role=alert]").innerText()).toContain("numbers above 0");
    await page.getByRole("textbox", { name: "Transactions per second" }).fill("25000");
    await page.getByLabel("Throughput of CPUs").fill("6");
    await page.getByLabel("p99 at most, ms").fill("20");
    await page.getByLabel("Price of an hour").fill("0.04");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator("#capacity .capacity-table").innerText()).toContain("Cost per million");
    expect(await page.locator("#capacity .capacity-table").innerText()).toMatch(/TPS with 6 CPUs[^]*6,000/);
    expect(requests.at(-1)).toMatch(/\/api\/experiments\/12\/capacity\?tps=25000&cpus=6&p99_ms=20&price_per_cpu_hour=0\.04$/);
    expect(await page.locator("#capacity .copy-line").last().innerText()).toContain("--tps 25000 --cpus 6 --p99 20ms --price-per-cpu-hour 0.04");
    expect(complaints.filter((complaint) => !complaint.includes("status of 404"))).toEqual([]);
  });
});
