/** What other commands print of a target, read with care: their JSON may say more or less than is
 * shown here. */

import { shown } from "../format/json.ts";
import { dateTime } from "../format/time.ts";
import type { Journal } from "../model.ts";

export interface AdviceItem {
  title: string;
  severity: string | null;
  /** Whether it is a value; else it is a sentence. */
  is_value: boolean;
  now: string | null;
  recommended: string | null;
  why: string | null;
  /** What is for safety names all steps, and has no command that tries it. */
  steps: string[];
  commands: string[];
}

type Fields = Record<string, unknown>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

const STATE: Record<string, string> = {
  "in-force": "in force",
  "as-before": "as before",
  rebooted: "reset by a reboot",
  foreign: "set to something else by others",
  unknown: "unknown now",
};

export function stateInWords(state: string): string {
  return STATE[state] ?? state;
}

/** How long changes stay, as `pgdyno status` says it. */
export function keptInWords({ alive, kept }: Pick<Journal, "alive" | "kept">): string {
  const until = fieldsOf(fieldsOf(kept)["unless-confirmed"]).until_unix_ms;
  if (alive) return "by a process that is at it now, and restores it";
  if (kept === "until-restored") return "stays until it is restored";
  if (typeof until === "number") return `restored at ${dateTime(until)} unless it is confirmed`;
  return "left by a process that was killed";
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
    is_value: text(setting.knob) !== null,
    now: text(fields.now_means) ?? text(fields.now),
    recommended: text(fields.recommended),
    why: text(fields.why),
    steps: Array.isArray(fields.procedure) ? fields.procedure.map(shown) : [],
    commands,
  };
}

/** The pieces of advice, whether they come as a list or within the document of `pgdyno advise`;
 * null where there is none. */
export function adviceOf(advice: unknown): AdviceItem[] | null {
  if (Array.isArray(advice)) return advice.map(itemOf);
  const inside = fieldsOf(advice).advice;
  return Array.isArray(inside) ? inside.map(itemOf) : null;
}

/** How many rules lacked what they ask for. */
export function notJudgedOf(advice: unknown): number {
  const list = fieldsOf(advice).not_judged;
  return Array.isArray(list) ? list.length : 0;
}
