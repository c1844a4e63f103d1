import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The same page that crates/pgdyno-report writes; kept here so that the tests need no Rust. */
export function assemble(report: unknown, distDirectory: string, trials = ""): string {
  const json = (typeof report === "string" ? report : JSON.stringify(report)).replaceAll("<", "\\u003c");
  const css = readBuilt(distDirectory, "app.css");
  const js = readBuilt(distDirectory, "app.js");
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>pgdyno report</title><style>${css}</style></head><body><div id="app"></div>`,
    `<script type="application/json" id="pgdyno-data">${json}</script>${trials}<script>${js}</script></body></html>`,
  ].join("");
}

function readBuilt(directory: string, name: string): string {
  try {
    return readFileSync(join(directory, name), "utf8");
  } catch {
    throw new Error(`${name} is not there: run "npm run build" first`);
  }
}
