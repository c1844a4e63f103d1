import type { ComponentChildren } from "preact";
import type { Report } from "../model.ts";

/** The sections of the page in their order; the table of contents is made from the same list. */
export const SECTIONS = {
  figures: "Key figures",
  search: "The search",
  claims: "What the study found",
  timelines: "What events changed",
  charts: "Charts of the study",
  steps: "Effect of each treatment",
  effects: "Effect of each factor",
  curves: "Throughput over the load",
  capacity: "What a throughput takes",
  tables: "Tables of results",
  time: "Throughput over time",
  response: "Response times",
  efficiency: "Efficiency",
  settings: "Settings",
  trials: "Trials",
  notes: "Notes and tags",
  facts: "Host and server",
  "restored": "What was restored",
  repeat: "How to repeat it",
  method: "How it was decided",
} as const;

export type SectionId = keyof typeof SECTIONS;

/** Those that a report has something for. */
export function sectionsOf({ study, effects = [], curves = [], timelines = [], charts = [], tables = [], capacity = [], search = null }: Report, hasNotes: boolean): SectionId[] {
  const missing = new Set<SectionId>();
  if (study === undefined || study === null) missing.add("claims");
  if (search === null || search.path.length === 0) missing.add("search");
  if (effects.length === 0) missing.add("effects");
  if (curves.length === 0) missing.add("curves");
  if (capacity.length === 0) missing.add("capacity");
  if (timelines.length === 0) missing.add("timelines");
  if (charts.length === 0) missing.add("charts");
  if (tables.length === 0) missing.add("tables");
  if (!hasNotes) missing.add("notes");
  return (Object.keys(SECTIONS) as SectionId[]).filter((id) => !missing.has(id));
}

interface Props {
  id: SectionId;
  lede?: ComponentChildren;
  children: ComponentChildren;
}

export function Section({ id, lede, children }: Props) {
  return (
    <section id={id} aria-labelledby={`${id}-heading`}>
      <h2 id={`${id}-heading`}>{SECTIONS[id]}</h2>
      {lede === undefined ? null : <p class="lede">{lede}</p>}
      {children}
    </section>
  );
}
