import { useLayoutEffect, useRef } from "preact/hooks";
import { SaveButtons } from "../parts/save-buttons.tsx";
import { useWidth } from "./use-width.ts";

interface Props {
  /** Draws for a width in pixels. Its colours are CSS variables, so a change of theme needs no
   * new drawing. */
  draw: (width: number) => Element;
  /** What the chart says, for readers who do not see it. */
  summary: string;
  /** Title of the picture when it is saved. */
  name: string;
}

/** Holds one chart of Observable Plot and draws it again when its room or its data change. */
export function PlotFigure({ draw, summary, name }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  useLayoutEffect(() => {
    if (width === 0) return;
    const chart = draw(width);
    // A strict content security policy would refuse them; charts.css has the same rules.
    for (const style of chart.querySelectorAll("style")) style.remove();
    // Names of marks, which are no roles; the picture as a whole has its summary.
    for (const named of chart.querySelectorAll("[aria-label]")) named.removeAttribute("aria-label");
    holder.current?.replaceChildren(chart);
  }, [draw, width]);
  const picture = () => ({ kind: "drawn" as const, svgs: [...(holder.current?.querySelectorAll<SVGSVGElement>("svg") ?? [])], title: name });
  return (
    <div class="saveable">
      <div class="chart" ref={holder} role="img" aria-label={summary} />
      <SaveButtons name={name} picture={picture} />
    </div>
  );
}
