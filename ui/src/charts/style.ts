/** How one treatment is drawn wherever it appears: colour, dash and marker all differ, so that
 * any one of them is enough. */
export interface TreatmentStyle {
  /** Name of the CSS variable that holds the colour. */
  variable: string;
  dash: number[];
  /** See markers.ts. */
  marker: number;
}

const COLOURS = 8;
const DASHES: number[][] = [[6, 3], [], [2, 2.5], [10, 3, 2, 3], [14, 4], [4, 4], [7, 3, 2, 3, 2, 3]];

/** By place in the plan, the reference first; beyond eight, colours come again with another dash
 * and marker. */
export function treatmentStyle(index: number): TreatmentStyle {
  const place = Math.max(0, index);
  const round = Math.floor(place / COLOURS);
  return {
    variable: `--t${String(place % COLOURS)}`,
    dash: place === 0 ? (DASHES[0] ?? []) : (DASHES[1 + ((place - 1 + round * 2) % (DASHES.length - 1))] ?? []),
    marker: place + round,
  };
}

/** For canvas, which knows no CSS variables. */
export function cssValue(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

function hexed(colour: string): [number, number, number] {
  const hex = colour.length === 4 ? colour.slice(1).replaceAll(/./g, "$&$&") : colour.slice(1);
  return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as [number, number, number];
}

/** Part of the way from the ground to the ink: on a heat map more is further from the page, in
 * both themes and to all eyes. */
export function mixed(ground: string, ink: string, part: number): string {
  const [from, to] = [hexed(ground), hexed(ink)];
  return `rgb(${from.map((value, place) => Math.round(value + ((to[place] ?? value) - value) * part)).join(" ")})`;
}
