/** Numbers as a reader wants them: few digits, a real minus, a unit that does not break off. */

/** Shown where nothing is known. */
export const UNKNOWN = "–";
const MINUS = "\u2212";
const NARROW_SPACE = "\u202f";

export type Maybe = number | null | undefined;

export function isKnown(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** By the digits after the point: to make one takes a hundred times as long as to use it, and
 * axes are labelled in every frame. */
const FORMATS = new Map<number, Intl.NumberFormat>();

function formatOf(digits: number): Intl.NumberFormat {
  let format = FORMATS.get(digits);
  if (format === undefined) {
    format = new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    FORMATS.set(digits, format);
  }
  return format;
}

/** Digits after the point are fixed, thousands grouped; a rounded zero has no sign. */
export function fixed(value: number, digits: number): string {
  const text = formatOf(digits).format(Math.abs(value));
  const isZero = !/[1-9]/.test(text);
  return value < 0 && !isZero ? MINUS + text : text;
}

export function withUnit(text: string, unit: string): string {
  return text === UNKNOWN ? text : `${text}${NARROW_SPACE}${unit}`;
}

/** Axis labels: "2.5" and "0.002" rather than "2.50" and "0.00200". */
export function tick(value: number): string {
  const text = threeFigures(value);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Nothing that is measured is below this: it is zero with a rounding error. */
const DUST = 1e-9;

/** Three significant figures, and all digits before the point. */
export function threeFigures(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  if (Math.abs(value) < DUST) return "0";
  const rounded = Number(value.toPrecision(3));
  return fixed(value, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded)))));
}

export function tps(value: Maybe): string {
  return threeFigures(value);
}

export function count(value: Maybe): string {
  return isKnown(value) ? fixed(value, 0) : UNKNOWN;
}

/** Powers of 1024, as PostgreSQL itself reckons. */
export function bytes(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let rest = value;
  let step = 0;
  while (Math.abs(rest) >= 1024 && step < units.length - 1) {
    rest /= 1024;
    step += 1;
  }
  return withUnit(step === 0 ? fixed(rest, 0) : threeFigures(rest), units[step] ?? "B");
}

/** A share such as the noise floor: 0.015 is "1.5 %". */
export function share(value: Maybe): string {
  return isKnown(value) ? withUnit(fixed(value * 100, 1), "%") : UNKNOWN;
}

/** A share where whole numbers are said without ".0": a confidence, a smallest effect. */
export function roundShare(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  const percent = value * 100;
  const whole = Math.abs(percent - Math.round(percent)) < 0.005;
  return withUnit(fixed(percent, whole ? 0 : 1), "%");
}

/** A bound beyond this says that nothing is known, as of two trials: its digits say no more. */
const RATIO_SHOWN_MAX = 1000;

/** The bare figure of a change, "+17.2": 1.172 and 0.95 are how the model writes changes. */
export function changeFigure(ratio: Maybe): string {
  if (!isKnown(ratio)) return UNKNOWN;
  if (ratio > RATIO_SHOWN_MAX) return `over ${changeFigure(RATIO_SHOWN_MAX)}`;
  const percent = (ratio - 1) * 100;
  const text = fixed(percent, Math.abs(percent) >= 999.5 ? 0 : 1);
  const isZero = !/[1-9]/.test(text);
  return percent > 0 && !isZero ? `+${text}` : text;
}

export function change(ratio: Maybe): string {
  return withUnit(changeFigure(ratio), "%");
}

/** "+14.1 … +20.4", the bounds of a change without the unit. */
export function changeBounds(low: Maybe, high: Maybe): string {
  return `${changeFigure(low)} … ${changeFigure(high)}`;
}

export function bounds(low: Maybe, high: Maybe, figure: (value: Maybe) => string): string {
  return `${figure(low)} … ${figure(high)}`;
}

export function plural(amount: number, one: string, many = `${one}s`): string {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}
