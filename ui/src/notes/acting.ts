import type { Server } from "../data/source.ts";
import type { Removals } from "./use-removals.ts";

/** What notes and tags are changed with. */
export interface Acting {
  /** Waits for something to be done and loads again; whether it was done. What goes wrong is
   * shown. */
  act: (what: Promise<void>) => Promise<boolean>;
  /** Whether something is on its way. */
  busy: boolean;
  removals: Removals;
  experiment: number;
  server: Server;
}
