import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserServer } from "playwright-core";

const DEFAULT_PATH = "/usr/bin/chromium";

const FLAGS = [
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The system's Chromium; playwright-core brings no browser of its own. */
function options(flags: readonly string[]): { executablePath: string; args: string[] } {
  const executablePath = process.env.CHROMIUM ?? DEFAULT_PATH;
  if (!existsSync(executablePath)) {
    throw new Error(
      `No browser at ${executablePath}: install Debian's package "chromium" (apt install chromium), or set CHROMIUM to the path of one.`,
    );
  }
  const asRoot = process.getuid?.() === 0;
  return { executablePath, args: [...FLAGS, ...flags, ...(asRoot ? ["--no-sandbox"] : [])] };
}

export async function launchBrowser(): Promise<Browser> {
  return chromium.launch(options([]));
}

/** Starts a browser for several processes. Pages of one context share a renderer, which halves the cost of opening one. */
export async function launchBrowserServer(): Promise<BrowserServer> {
  return chromium.launchServer(options(["--process-per-site"]));
}
