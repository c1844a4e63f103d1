import { isKnown, UNKNOWN, type Maybe } from "./number.ts";

const MINUTE_MS = 60_000;

/** Date and time in the reader's zone unless the caller names one; the zone is behind it, since
 * reports travel. */
export function dateTime(unixMs: Maybe, timeZone?: string): string {
  if (!isKnown(unixMs)) return UNKNOWN;
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "long",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
    ...(timeZone === undefined ? {} : { timeZone }),
  }).format(unixMs);
}

/** For tables: "18 Nov 2025, 09:14" in the reader's zone, which the heading names. */
export function shortDateTime(unixMs: Maybe): string {
  if (!isKnown(unixMs)) return UNKNOWN;
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }).format(unixMs);
}

/** The reader's zone, as "UTC" or "CET". */
export function zoneName(unixMs: number): string {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(unixMs);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

export function clockTime(unixMs: Maybe, timeZone?: string): string {
  if (!isKnown(unixMs)) return UNKNOWN;
  return new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(timeZone === undefined ? {} : { timeZone }),
  }).format(unixMs);
}

/** For `<time datetime>`. */
export function isoTime(unixMs: Maybe): string | undefined {
  return isKnown(unixMs) ? new Date(unixMs).toISOString() : undefined;
}

export function duration(milliseconds: Maybe): string {
  if (!isKnown(milliseconds) || milliseconds < 0) return UNKNOWN;
  if (milliseconds < MINUTE_MS) return `${String(Math.round(milliseconds / 1000))} s`;
  const minutes = Math.round(milliseconds / MINUTE_MS);
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${String(minutes)} min` : `${String(hours)} h ${String(minutes % 60)} min`;
}
