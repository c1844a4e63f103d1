import { defineConfig } from "vitest/config";
import browser from "./vitest.browser.config.ts";

/** The page over a real server, whose link comes in PGDYNO_LINK: crates/pgdyno/tests/all/page.rs
 * fills a store, starts it and runs this. */
export default defineConfig({ test: { ...browser.test, include: ["test/served/**/*.test.ts"] } });
