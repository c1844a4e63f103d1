import { bytes, fixed, isKnown, tick, UNKNOWN, withUnit, type Maybe } from "./number.ts";
import { isSpanUnit, span } from "./span.ts";

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Large numbers shortened for axes: 12k, 3.4M. */
function shortened(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${tick(value / 1e9)}G`;
  if (size >= 1e6) return `${tick(value / 1e6)}M`;
  return size >= 1e4 ? `${tick(value / 1e3)}k` : tick(value);
}

/** A label of an axis that has room for seven letters: thousands are written out, millions are
 * not. */
export function axisTick(value: number): string {
  return Math.abs(value) >= 1e6 ? shortened(value) : tick(value);
}

/** A value of a metric with its unit: ratios as percent, bytes in powers of 1024. */
export function valueWithUnit(value: Maybe, unit: string): string {
  if (!isKnown(value)) return UNKNOWN;
  if (isSpanUnit(unit)) return span(value, unit);
  switch (unit) {
    case "ratio":
      return withUnit(fixed(value * 100, Math.abs(value) >= 0.9995 ? 0 : 1), "%");
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${bytes(value)}/s`;
    case "per second":
      return `${shortened(value)}/s`;
    case "":
      return shortened(value);
    default:
      return withUnit(shortened(value), unit);
  }
}

/** Axis labels of one unit that share their step: "0", "512", "1,024" MiB rather than three units
 * on one axis. */
export function ticksWithUnit(ticks: readonly number[], unit: string): string[] {
  const most = Math.max(0, ...ticks.map(Math.abs));
  if (unit === "ratio") return ticks.map((value) => `${tick(value * 100)}%`);
  if (unit === "bytes" || unit === "bytes/s") {
    const step = Math.min(BINARY.length - 1, most < 1024 ? 0 : Math.floor(Math.log2(most) / 10));
    return ticks.map((value) => (value === 0 ? "0" : `${tick(value / 1024 ** step)} ${BINARY[step] ?? ""}`));
  }
  return ticks.map(shortened);
}

/** Steps of an axis of bytes, so that its ticks are round in powers of 1024. */
export function byteSteps(): number[] {
  return Array.from({ length: 6 }, (_, power) => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((factor) => factor * 1024 ** power)).flat();
}

/** "1:05" of seconds since the start; hours where there are any. */
export function clock(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${String(hours)}:${two(minutes)}:${two(rest)}` : `${String(minutes)}:${two(rest)}`;
}

/** A unit as it is shown behind a title: a ratio is drawn in percent, bytes with what they are
 * counted in. */
export function unitInWords(unit: string): string {
  return unit === "ratio" ? "%" : unit;
}
