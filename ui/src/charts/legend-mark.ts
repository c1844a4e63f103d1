import { markerPath } from "./markers.ts";
import { treatmentStyle } from "./style.ts";

const NAMESPACE = "http://www.w3.org/2000/svg";
const LINE = 18;
const SWATCH = 30;
/** A letter's width, about: names wrap by it. */
const LETTER = 7.2;

interface Spot {
  name: string;
  x: number;
  row: number;
}

function placed(names: readonly string[], width: number): Spot[] {
  let [x, row] = [0, 0];
  return names.map((name) => {
    const room = SWATCH + 8 + name.length * LETTER + 18;
    if (x > 0 && x + room > width) [x, row] = [0, row + 1];
    const spot = { name, x, row };
    x += room;
    return spot;
  });
}

export interface Legend {
  height: number;
  /** Draws it into the picture itself, so that a saved one has it too. */
  mark: () => SVGGElement;
}

function drawn(tag: string, attributes: Record<string, string>): SVGElement {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Names of lines with a piece of each, or of bars with their colour. */
export function legendOf(names: readonly string[], width: number, as: "lines" | "bars"): Legend {
  const spots = placed(names, width - 16);
  const rows = Math.max(0, ...spots.map(({ row }) => row)) + 1;
  return {
    height: rows * LINE + 8,
    mark: () => {
      const group = document.createElementNS(NAMESPACE, "g");
      spots.forEach(({ name, x, row }, index) => {
        const { variable, dash, marker } = treatmentStyle(index);
        const colour = `var(${variable})`;
        const y = row * LINE + LINE / 2;
        if (as === "bars") {
          group.append(drawn("rect", { x: String(x + 8), y: String(y - 6), width: "12", height: "12", fill: colour }));
        } else {
          group.append(
            drawn("line", { x1: String(x), x2: String(x + SWATCH), y1: String(y), y2: String(y), stroke: colour, "stroke-width": "2", "stroke-dasharray": dash.join(" ") }),
            drawn("path", { d: markerPath(marker, 3.6), transform: `translate(${String(x + SWATCH / 2)} ${String(y)})`, fill: "var(--page)", stroke: colour, "stroke-width": "1.5" }),
          );
        }
        const text = drawn("text", { x: String(x + SWATCH + 8), y: String(y), dy: "0.35em", fill: "var(--ink)", "text-anchor": "start" });
        text.textContent = name;
        group.append(text);
      });
      return group;
    },
  };
}
