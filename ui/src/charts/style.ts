/** How one treatment is drawn wherever it appears: colour, dash and marker all differ, so that any one of them is enough. */
export interface TreatmentStyle {
  /** Name of the CSS variable that holds the colour. */
  variable: string;
  dash: number[];
  /** See markers.ts. */
  marker: number;
}

const COLOURS = 8;
const DASHES: number[][] = [[6, 3], [], [2, 2.5], [10, 3, 2, 3], [14, 4], [4, 4], [7, 3, 2, 3, 2, 3]];

/** By place in the plan, the reference first; beyond eight, colours come again with another dash and marker. */
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
