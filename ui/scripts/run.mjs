// Node 20 cannot run TypeScript by itself; Vite, which is here anyway, can load it.
import { fileURLToPath, pathToFileURL } from "node:url";
import { resolve } from "node:path";
import { runnerImport } from "vite";

const [script, ...args] = process.argv.slice(2);
const root = fileURLToPath(new URL("..", import.meta.url));
const { module } = await runnerImport(pathToFileURL(resolve(root, script)).href, {
  configFile: false,
  root,
  logLevel: "warn",
});
try {
  await module.main(args);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
