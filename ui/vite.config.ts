import { defineConfig } from "vite";
import { bundleGuard } from "./scripts/bundle-guard.ts";

export default defineConfig({
  plugins: [bundleGuard()],
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    target: ["chrome110", "firefox115", "safari16"],
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
    lib: {
      entry: "src/main.tsx",
      formats: ["iife"],
      name: "pgdyno",
      fileName: () => "app.js",
      cssFileName: "app",
    },
  },
});
