import { UNKNOWN } from "./number.ts";

/** JSON for people: lists with commas, objects as pairs. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([name, part]) => `${name} ${shown(part)}`).join(", ");
  return typeof value === "string" || typeof value === "number" ? String(value) : UNKNOWN;
}
