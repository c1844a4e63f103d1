import { defineConfig } from "vitest/config";

/** The page over a real server, whose link comes in PGDYNO_LINK: crates/pgdyno/tests/all/page.rs fills a store, starts it and runs this. */
export default defineConfig({
  test: {
    include: ["test/served/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
