import type { ComponentChildren } from "preact";
import { useSource } from "../data/context.ts";
import { ThemeButton } from "./theme-button.tsx";

const PLACES = [
  { href: "#/", name: "Experiments" },
  { href: "#/compare", name: "Compare" },
  { href: "#/targets", name: "Targets" },
  { href: "#/live", name: "Running" },
] as const;

interface Props {
  /** Where the reader is, from the widest to the nearest. */
  trail: readonly { name: string; href: string | null }[];
  current?: (typeof PLACES)[number]["name"];
  children?: ComponentChildren;
}

/** The line at the top of every view: where it is, and where else to go. */
export function TopBar({ trail, current }: Props) {
  const { mode } = useSource();
  return (
    <div class="masthead-line">
      <nav class="trail" aria-label="Where this is">
        <ol>
          {trail.map(({ name, href }, place) => (
            <li key={place}>{href === null ? <span aria-current="page">{name}</span> : <a href={href}>{name}</a>}</li>
          ))}
        </ol>
      </nav>
      {mode === "file" ? null : (
        <nav class="places" aria-label="Views">
          {PLACES.map(({ href, name }) => (
            <a key={name} href={href} aria-current={name === current ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      )}
      <ThemeButton />
    </div>
  );
}
