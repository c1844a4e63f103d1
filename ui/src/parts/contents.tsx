import { useEffect, useMemo, useState } from "preact/hooks";
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

export function Contents({ report }: { report: Report }) {
  const ids = useMemo(() => sectionsOf(report), [report]);
  const current = useCurrentSection(ids);
  return (
    <nav class="contents" aria-label="Contents">
      <ol>
        {ids.map((id) => (
          <li key={id}>
            <a href={`#${id}`} aria-current={id === current ? "true" : undefined}>
              {SECTIONS[id]}
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}
