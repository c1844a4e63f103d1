import type { ComponentChildren } from "preact";

/** The sections of the page in their order; the table of contents is made from the same list. */
export const SECTIONS = {
  figures: "Key figures",
  steps: "What each treatment is worth",
  time: "Throughput over time",
  response: "Response times",
  settings: "Settings",
  trials: "Trials",
  facts: "Host and server",
  "put-back": "What was put back",
  repeat: "How to repeat it",
  method: "How it was decided",
} as const;

export type SectionId = keyof typeof SECTIONS;

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
