/** What other commands tell of a target, read with care: their JSON may say more or less than is shown here. */

export interface AdviceItem {
  title: string;
  severity: string | null;
  now: string | null;
  recommended: string | null;
  why: string | null;
  commands: string[];
}

type Fields = Record<string, unknown>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** For people: lists with commas, objects as pairs. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([name, part]) => `${name} ${shown(part)}`).join(", ");
  return typeof value === "string" || typeof value === "number" ? String(value) : "–";
}

/** Names of the fields that the entries have, in the order in which they come up. */
export function columnsOf(entries: readonly unknown[]): string[] {
  const names = entries.flatMap((entry) => Object.keys(fieldsOf(entry)));
  return names.length === 0 ? ["setting"] : [...new Set(names)].slice(0, 8);
}

function text(value: unknown): string | null {
  return value === null || value === undefined || value === "" ? null : shown(value);
}

function itemOf(value: unknown): AdviceItem {
  const fields = fieldsOf(value);
  const setting = fieldsOf(fields.setting);
  const commands = Array.isArray(fields.commands) ? fields.commands.map(shown) : [];
  return {
    title: text(setting.knob) ?? text(fields.knob) ?? text(fields.title) ?? text(fields.rule) ?? shown(value),
    severity: text(fields.severity),
    now: text(fields.now),
    recommended: text(fields.recommended),
    why: text(fields.why),
    commands,
  };
}

/** The pieces of advice, whether they come as a list or within the document of `pgdyno advise`; null where there is none. */
export function adviceOf(advice: unknown): AdviceItem[] | null {
  if (Array.isArray(advice)) return advice.map(itemOf);
  const inside = fieldsOf(advice).advice;
  return Array.isArray(inside) ? inside.map(itemOf) : null;
}
