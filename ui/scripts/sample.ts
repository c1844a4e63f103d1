import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { VARIANTS } from "../test/sample/variants.ts";
import { assemble } from "./assemble.ts";

/** Writes every sample report as HTML, to look at without a database: npm run sample --
 * <directory> */
export function main([directory]: string[]): void {
  if (directory === undefined) throw new Error("Say where to: npm run sample -- <directory>");
  mkdirSync(directory, { recursive: true });
  for (const [name, make] of Object.entries(VARIANTS)) {
    const path = join(directory, `${name}.html`);
    writeFileSync(path, assemble(make(), "dist"));
    console.log(path);
  }
}
