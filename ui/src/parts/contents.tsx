import { useEffect, useState } from "preact/hooks";
import { SECTIONS, type SectionId } from "./section.tsx";

const IDS = Object.keys(SECTIONS) as SectionId[];

/** The section whose heading was passed last. */
function useCurrentSection(): SectionId | null {
  const [current, setCurrent] = useState<SectionId | null>(null);
  useEffect(() => {
    const look = () => {
      const line = window.innerHeight * 0.3;
      const passed = IDS.findLast((id) => {
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
  }, []);
  return current;
}

export function Contents() {
  const current = useCurrentSection();
  return (
    <nav class="contents" aria-label="Contents">
      <ol>
        {IDS.map((id) => (
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
