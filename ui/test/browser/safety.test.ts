import { describe, expect, test } from "vitest";
import { sampleReport } from "../sample/report.ts";
import { hostile } from "../sample/variants.ts";
import { useHarness } from "./harness.ts";

const harness = useHarness();

describe("text that tries to be markup", () => {
  test("is shown as text everywhere and runs nowhere", async () => {
    const { page, requests, complaints, url } = await harness.open(hostile());
    let dialogs = 0;
    page.on("dialog", (dialog) => {
      dialogs += 1;
      void dialog.dismiss();
    });
    for (const details of await page.locator("details").all()) await details.locator("summary").click();
    expect(await page.locator("h1").innerText()).toBe("</script><script>window.pgdynoHit=2</script>");
    const table = await page.locator(".verdict-table").innerText();
    expect(table).toContain("<img src=x onerror=alert(1)>");
    expect(await page.locator("#steps svg").innerHTML()).toContain("&lt;img");
    expect(await page.locator("#settings").innerText()).toContain('<img src=x onerror="window.pgdynoHit=1">');
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.evaluate(() => "pgdynoHit" in window)).toBe(false);
    expect(dialogs).toBe(0);
    expect(requests).toEqual([url]);
    expect(complaints).toEqual([]);
  });
});

describe("data that cannot be shown", () => {
  test.each([
    ["another version", { format: "pgdyno-report/99" }, "pgdyno-report/99"],
    ["damaged", '{"format": "pgd', "damaged"],
    ["empty", "", "no measurements"],
    ["hollow", { ...sampleReport(), treatments: [null] }, "could not be shown"],
  ])("%s: a sentence instead of an empty page", async (_name, data, sentence) => {
    const { page } = await harness.open(data);
    const text = await page.locator(".refusal").innerText();
    expect(text).toContain(sentence);
    expect(text).toContain("pgdyno report");
  });
});

describe("a strict content security policy", () => {
  test("is kept: no inline script, no inline style", async () => {
    const { page, requests, complaints, url } = await harness.openStrictly(sampleReport());
    expect(await page.locator("svg.plot").count()).toBe(2);
    expect(await page.locator("#time .time-chart canvas").count()).toBe(1);
    expect(complaints).toEqual([]);
    expect(requests.filter((request) => !request.endsWith("/favicon.ico"))).toEqual([url, `${url}app.css`, `${url}app.js`]);
  });
});
