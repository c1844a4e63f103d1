import { useEffect, useMemo, useState } from "preact/hooks";
import { useSource } from "../data/context.ts";
import type { Report } from "../model.ts";
import { SECTIONS, sectionsOf, type SectionId } from "./section.tsx";

/** The section whose heading was passed last. */
function useCurrentSection(ids: readonly SectionId[]): SectionId | null {
  const [current, setCurrent] = useState<SectionId | null>(null);
  useEffect(() => {
    const look = () => {
      const line = window.innerHeight * 0.3;
      const passed = ids.findLast((id) => {
        const section = document.getElementById(id);
        return section !== null && section.getBoundingClientRect().top <= line;
      });
      setCurrent(passed ?? null);
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    return () => {
      window.removeEventListener("scroll", look);
    };
  }, [ids]);
  return current;
}

/** Where the fragment names the view, it cannot name the section too. */
function go(event: Event, id: SectionId): void {
  event.preventDefault();
  const section = document.getElementById(id);
  section?.scrollIntoView();
  section?.querySelector("h2")?.setAttribute("tabindex", "-1");
  section?.querySelector("h2")?.focus({ preventScroll: true });
}

export function Contents({ report }: { report: Report }) {
  const { mode } = useSource();
  const ids = useMemo(() => sectionsOf(report, mode === "serve"), [report, mode]);
  const current = useCurrentSection(ids);
  return (
    <nav class="contents" aria-label="Contents">
      <ol>
        {ids.map((id) => (
          <li key={id}>
            <a href={`#${id}`} aria-current={id === current ? "true" : undefined} onClick={mode === "serve" ? (event) => { go(event, id); } : undefined}>
              {SECTIONS[id]}
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}
