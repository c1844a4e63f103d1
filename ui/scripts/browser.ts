import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

const DEFAULT_PATH = "/usr/bin/chromium";

const FLAGS = [
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts the system's Chromium; playwright-core brings no browser of its own. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? DEFAULT_PATH;
  if (!existsSync(executablePath)) {
    throw new Error(
      `No browser at ${executablePath}: install Debian's package "chromium" (apt install chromium), or set CHROMIUM to the path of one.`,
    );
  }
  const asRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath, args: asRoot ? [...FLAGS, "--no-sandbox"] : FLAGS });
}
