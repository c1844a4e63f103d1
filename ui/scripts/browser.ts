import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserServer } from "playwright-core";

/** The first one that is there: without a window of its own to paint it takes two thirds of the
 * CPU. */
const PATHS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

const FLAGS = [
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The system's Chromium; playwright-core brings no browser of its own. */
function options(flags: readonly string[]): { executablePath: string; args: string[] } {
  const paths = process.env.CHROMIUM === undefined ? PATHS : [process.env.CHROMIUM];
  const executablePath = paths.find((path) => existsSync(path));
  if (executablePath === undefined) {
    throw new Error(
      `No browser at ${paths.join(" or ")}: install Debian's package "chromium-headless-shell" with apt, or set CHROMIUM to the path of one.`,
    );
  }
  const asRoot = process.getuid?.() === 0;
  return { executablePath, args: [...FLAGS, ...flags, ...(asRoot ? ["--no-sandbox"] : [])] };
}

export async function launchBrowser(): Promise<Browser> {
  return chromium.launch(options([]));
}

/** Starts a browser for several processes. Pages of one context share a renderer, which halves
 * the cost of opening one. */
export async function launchBrowserServer(): Promise<BrowserServer> {
  return chromium.launchServer(options(["--process-per-site"]));
}
