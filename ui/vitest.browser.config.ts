import { defineConfig } from "vitest/config";
import { PATIENCE_MS } from "./test/patience.ts";

/** Timeouts only end what hangs. Playwright's are set to the same patience by the harness; its
 * own to start is three minutes. */
export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    environment: "node",
    globalSetup: "test/browser-setup.ts",
    // Two keep two CPUs busy while a third waits for a pause of the page.
    maxWorkers: 3,
    isolate: false,
    testTimeout: 3 * PATIENCE_MS,
    hookTimeout: 3 * PATIENCE_MS,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
