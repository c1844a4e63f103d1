import type { TestProject } from "vitest/node";
import { launchBrowserServer } from "../scripts/browser.ts";

declare module "vitest" {
  interface ProvidedContext {
    browserEndpoint: string;
  }
}

/** Starts one browser for all test files of a run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await launchBrowserServer();
  project.provide("browserEndpoint", server.wsEndpoint());
  return () => server.close();
}
