/** Spans of time, by one rule: three significant figures; what is shown alone has the unit that
 * it is given in as long as it is between a tenth and ten thousand of them, else the next one;
 * what is in a column has the unit of its heading. */

import { isKnown, threeFigures, UNKNOWN, withUnit, type Maybe } from "./number.ts";

export type SpanUnit = "ns" | "µs" | "ms" | "s";

/** Each a thousand of the one before it. */
const UNITS: readonly SpanUnit[] = ["ns", "µs", "ms", "s"];
const LEAST = 0.1;
const MOST = 10_000;

/** A figure in a unit that suits it: [20, "µs"] of 0.02 ms. Zero stays as it is. */
function suited(value: number, unit: SpanUnit): [number, SpanUnit] {
  let place = UNITS.indexOf(unit);
  let rest = value;
  while (rest !== 0 && Math.abs(rest) < LEAST && place > 0) {
    rest *= 1000;
    place -= 1;
  }
  while (Math.abs(rest) >= MOST && place < UNITS.length - 1) {
    rest /= 1000;
    place += 1;
  }
  return [rest, UNITS[place] ?? unit];
}

/** "20.0 µs" of 0.02 ms, "61.2 s" of 61,200 ms. */
export function span(value: Maybe, unit: SpanUnit): string {
  if (!isKnown(value)) return UNKNOWN;
  const [figure, own] = suited(value, unit);
  return withUnit(threeFigures(figure), own);
}

export function isSpanUnit(unit: string): unit is SpanUnit {
  return (UNITS as readonly string[]).includes(unit);
}

export function milliseconds(value: Maybe): string {
  return span(value, "ms");
}

export function microseconds(value: Maybe): string {
  return span(value, "µs");
}

/** Milliseconds without the unit, for table columns whose heading carries it. */
export function bareMilliseconds(value: Maybe): string {
  return threeFigures(value);
}

/** Milliseconds that are shown side by side, in one unit: that of the largest. */
export function together(values_ms: readonly Maybe[]): { figures: string[]; unit: SpanUnit } {
  const most = Math.max(0, ...values_ms.filter(isKnown).map(Math.abs));
  const [, unit] = suited(most, "ms");
  const factor = 1000 ** (UNITS.indexOf("ms") - UNITS.indexOf(unit));
  return { figures: values_ms.map((value) => (isKnown(value) ? threeFigures(value * factor) : UNKNOWN)), unit };
}
