import { useLayoutEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";
import { useDisplay } from "../display.ts";

/** About the text width of A4 with the margins of print.css, in CSS pixels. */
const PAPER_WIDTH = 680;

/** Width of an element in whole pixels, kept up to date; 0 before the first layout. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const { printing } = useDisplay();
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = element.current;
    if (node === null) return undefined;
    const measure = () => {
      setWidth(Math.floor(node.clientWidth));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => {
      observer.disconnect();
    };
  }, [element]);
  return printing ? PAPER_WIDTH : width;
}
