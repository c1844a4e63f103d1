import type { CapacityDocument, Comparison, Details, List, Listed, Note, Report, Targets, TrialDocument } from "../model.ts";
import type { Mode } from "../router.ts";
import type { Trouble } from "./trouble.ts";

/** What only a server can do. */
export interface Server {
  /** All, or those with `search` in their name, question, target or notes. */
  experiments: (search?: string) => Promise<Listed[]>;
  /** All, with whether the list is whole. */
  list: () => Promise<List>;
  /** What a throughput takes; `query` as analysis/capacity.ts writes it. */
  capacity: (experiment: number, query: string) => Promise<CapacityDocument>;
  compare: (a: string, b: string) => Promise<Comparison>;
  targets: () => Promise<Targets>;
  notes: (experiment: number) => Promise<Note[]>;
  addNote: (experiment: number, text: string) => Promise<void>;
  /** Comes through also when the page is being left; so does removeTag. */
  removeNote: (experiment: number, note: number) => Promise<void>;
  tags: (experiment: number) => Promise<string[]>;
  addTag: (experiment: number, word: string) => Promise<void>;
  removeTag: (experiment: number, word: string) => Promise<void>;
  /** Address of the experiment's stream of events. */
  liveAddress: (experiment: number) => string;
  /** Why that stream does not come, which a browser keeps to itself. */
  whyNoLive: (experiment: number) => Promise<Trouble>;
}

/** Where the page has its data from: itself, or `pgdyno serve`. Everything rejects with a
 * Trouble. */
export interface Source {
  mode: Mode;
  report: (experiment: number | null) => Promise<Report>;
  trial: (experiment: number | null, trial: number) => Promise<TrialDocument>;
  /** Whether a trial can be shown. */
  hasTrial: (trial: number) => boolean;
  /** What was omitted from a report file's trials; null where nothing is. */
  details: Details | null;
  server: Server | null;
}
