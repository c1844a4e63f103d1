import { useEffect, useState } from "preact/hooks";

/** How the page is shown at the moment. Charts on canvas cannot follow CSS, so they get it from
 * here; paper is always light and of one width, whatever the screen was. */
export type ThemeChoice = "auto" | "light" | "dark";

export interface Display {
  choice: ThemeChoice;
  theme: "light" | "dark";
  printing: boolean;
}

const STORAGE_KEY = "pgdyno-theme";
const CHOICES: readonly ThemeChoice[] = ["auto", "light", "dark"];

const listeners = new Set<(display: Display) => void>();
let display: Display = { choice: "auto", theme: "light", printing: false };

function systemIsDark(): boolean {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

function update(change: Partial<Pick<Display, "choice" | "printing">>): void {
  const next = { ...display, ...change };
  const wanted = next.choice === "auto" ? (systemIsDark() ? "dark" : "light") : next.choice;
  display = { ...next, theme: next.printing ? "light" : wanted };
  document.documentElement.dataset.theme = display.theme;
  for (const listener of listeners) listener(display);
}

/** Storage is refused to some pages opened from disk; the choice then holds until the page is
 * closed. */
function remembered(): ThemeChoice {
  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    return CHOICES.find((choice) => choice === stored) ?? "auto";
  } catch {
    return "auto";
  }
}

export function chooseTheme(choice: ThemeChoice): void {
  try {
    localStorage.setItem(STORAGE_KEY, choice);
  } catch {
    // Nothing to do: see remembered().
  }
  update({ choice });
}

export function nextTheme(choice: ThemeChoice): ThemeChoice {
  return CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "auto";
}

export function startDisplay(): void {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    update({});
  });
  update({ choice: remembered() });
}

export function setPrinting(printing: boolean): void {
  update({ printing });
}

export function useDisplay(): Display {
  const [current, setCurrent] = useState(display);
  useEffect(() => {
    listeners.add(setCurrent);
    setCurrent(display);
    return () => {
      listeners.delete(setCurrent);
    };
  }, []);
  return current;
}
