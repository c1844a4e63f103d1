import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, CDPSession, Page } from "playwright-core";
import { sampleTrialDocument } from "../test/sample/trial-document.ts";
import { sampleWorld } from "../test/sample/world.ts";
import { launchBrowser } from "./browser.ts";
import { MockServer } from "./mock-server.ts";

const HOUR_S = 3600;
const FRAMES_MS = 3000;
const ROUNDS = 5;
/** What a server has time for before somebody comes. */
const REST_MS = 2000;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** Milliseconds from the start of the navigation to what the selector finds, painted. */
async function untilPainted(page: Page, url: string, selector: string): Promise<number> {
  await page.goto("about:blank");
  await page.goto(url, { waitUntil: "commit" });
  await page.locator(selector).first().waitFor();
  return page.evaluate(() => new Promise<number>((done) => requestAnimationFrame(() => requestAnimationFrame(() => { done(performance.now()); }))));
}

/** Frames per second while every frame zooms or moves by a key. */
async function framesPerSecond(page: Page): Promise<number> {
  return page.evaluate((length_ms) => {
    const panels = document.querySelector(".panels");
    const keys = ["+", "ArrowRight", "+", "ArrowLeft", "-", "ArrowRight", "-", "ArrowLeft"];
    return new Promise<number>((done) => {
      const begun = performance.now();
      let frames = 0;
      const next = () => {
        const passed = performance.now() - begun;
        if (passed >= length_ms) {
          done((frames / passed) * 1000);
          return;
        }
        panels?.dispatchEvent(new KeyboardEvent("keydown", { key: keys[frames % keys.length] ?? "+", bubbles: true }));
        frames += 1;
        requestAnimationFrame(next);
      };
      requestAnimationFrame(next);
    });
  }, FRAMES_MS);
}

/** CPU time that the browser has used, all of its processes: what a busy machine does not
 * change. */
async function cpuSeconds(session: CDPSession): Promise<number> {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** A `pgdyno serve` that nobody has asked yet, as soon as it says where it is. */
async function started(pgdyno: string, store: string): Promise<{ link: string; stop: () => Promise<void> }> {
  const server = spawn(pgdyno, ["serve", "--listen", "127.0.0.1:0", "--store", store], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(server, "exit");
  const [line] = (await Promise.race([once(server.stdout, "data"), ended])) as unknown[];
  if (!Buffer.isBuffer(line)) throw new Error(`${pgdyno} serve ended before it said where it is`);
  const stop = async () => {
    server.kill();
    await ended;
  };
  return { link: line.toString().trim(), stop };
}

/** Milliseconds until the page of experiment 1 and its first chart over time are painted, in a
 * tab that is opened for it. */
async function servedTime(browser: Browser, link: string): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  try {
    // The token alone: the index would ask for more.
    await context.request.get(link);
    const page = await context.newPage();
    return await untilPainted(page, `${new URL(link).origin}/#/experiments/1`, "#time canvas");
  } finally {
    await context.close();
  }
}

/** What readers of a server wait: of one that has had time, again, and of one that was asked at
 * once. */
async function servedTimes(browser: Browser, pgdyno: string, store: string): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const rest_ms of [REST_MS, 0]) {
      const { link, stop } = await started(pgdyno, store);
      try {
        await new Promise((done) => setTimeout(done, rest_ms));
        (found[rest_ms > 0 ? "served, never asked before" : "served, asked as soon as it listens"] ??= []).push(await servedTime(browser, link));
        if (rest_ms > 0) (found["served again"] ??= []).push(await servedTime(browser, link));
      } finally {
        await stop();
      }
    }
  }
  return found;
}

/** First picture and zoom, for docs/explanation/benchmarks.md. */
export async function main([file, pgdyno, store]: string[]): Promise<void> {
  if (file === undefined) throw new Error("Say of what: npm run measure -- <report.html> [PGDYNO STORE]");
  const url = pathToFileURL(resolve(file)).href;
  const world = sampleWorld();
  world.trial = (report, id) => {
    const trial = report.trials.find((each) => each.id === id);
    return trial === undefined ? null : sampleTrialDocument(report, trial, HOUR_S);
  };
  const server = await MockServer.start(world, "dist");
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const tell = (what: string, found: readonly number[]) => {
      console.log(`${what}: ${median(found).toFixed(0)} ms (median of ${String(found.length)}, ${found.map((each) => each.toFixed(0)).join(" ")})`);
    };
    const times = async (what: string, address: string, selector: string) => {
      const found: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) found.push(await untilPainted(page, address, selector));
      tell(what, found);
    };
    await times("report file, answer painted", url, ".answer");
    await times("report file, first chart painted", url, "svg.plot, .time-chart canvas");
    await times("index of 64 experiments", server.url, ".index-table tbody tr");
    const trial = `${server.url}#/experiments/7/trials/4`;
    await times("trial of an hour, 24 series at 1 Hz, all charts painted", trial, ".panel:nth-of-type(1) canvas");
    await page.locator(".panel canvas").nth(7).waitFor();
    if (pgdyno !== undefined && store !== undefined) {
      for (const [what, found] of Object.entries(await servedTimes(browser, pgdyno, store))) tell(what, found);
    }
    const session = await browser.newBrowserCDPSession();
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await cpuSeconds(session);
      const rate = await framesPerSecond(page);
      const cpu_ms = ((await cpuSeconds(session)) - before) * 1000;
      console.log(`zooming 8 charts of an hour: ${rate.toFixed(0)} frames per second, ${(cpu_ms / (rate * (FRAMES_MS / 1000))).toFixed(1)} ms of CPU a frame in all processes of the browser`);
    }
  } finally {
    await browser.close();
    await server.stop();
  }
}
