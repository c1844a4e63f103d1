import { defineConfig } from "vitest/config";

/** Timeouts only end what hangs: each is far longer than a busy host needs. Playwright's own are 30 s, three minutes to start. */
export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    environment: "node",
    globalSetup: "test/browser-setup.ts",
    // Two keep two CPUs busy while a third waits for a pause of the page.
    maxWorkers: 3,
    isolate: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
