import type { ComponentChildren } from "preact";

/** A section of a view, with its heading. */
export function Part({ id, title, lede, children }: { id: string; title: string; lede?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section id={id} aria-labelledby={`${id}-heading`}>
      <h2 id={`${id}-heading`}>{title}</h2>
      {lede === undefined ? null : <p class="lede">{lede}</p>}
      {children}
    </section>
  );
}
