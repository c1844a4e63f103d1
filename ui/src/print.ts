import { setPrinting } from "./display.ts";

/** Opens what is folded for the time of printing; long lists marked data-print="folded" stay as
 * they are. */
export function preparePrinting(): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    const folded = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open]):not([data-print=folded])")];
    for (const element of folded) element.open = true;
    // The event may come twice before the printing ends; the second time everything is open
    // already.
    opened.push(...folded);
    setPrinting(true);
  });
  window.addEventListener("afterprint", () => {
    for (const element of opened) element.open = false;
    opened = [];
    setPrinting(false);
  });
}
