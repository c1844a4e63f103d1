import { Trouble } from "./data/trouble.ts";
import { FORMAT, type Report } from "./model.ts";

export type Loaded = { ok: true; report: Report } | { ok: false; heading: string; advice: string };

const REMAKE = "Write it again with “pgdyno report”, from the store that holds the experiment.";

function refuse(heading: string, advice: string): Loaded {
  return { ok: false, heading, advice };
}

/** Reads the embedded JSON; whatever is wrong with it becomes a sentence for the reader, never an
 * empty page. */
export function loadReport(text: string | null): Loaded {
  if (text === null || text.trim() === "") {
    return refuse("This page holds no measurements.", `It is the shell of a pgdyno report without its data. ${REMAKE}`);
  }
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return refuse("The measurements in this page are damaged.", `They are not valid JSON; the file was probably cut short. ${REMAKE}`);
  }
  return judged(data);
}

/** The same of an answer of the server. */
export function checkedReport(data: unknown): Report {
  const loaded = judged(data);
  if (!loaded.ok) throw new Trouble("damaged", loaded.heading, loaded.advice);
  return loaded.report;
}

function judged(data: unknown): Loaded {
  const format = field(data, "format");
  if (format !== FORMAT) {
    const found = typeof format === "string" ? `“${format}”` : "no format";
    return refuse(
      "This page cannot show these measurements.",
      `It reads the format “${FORMAT}”, the data carries ${found}. The page and the data come from different versions of pgdyno. ${REMAKE}`,
    );
  }
  const missing = missingParts(data);
  if (missing.length > 0) {
    return refuse("The measurements in this page are incomplete.", `Missing: ${missing.join(", ")}. ${REMAKE}`);
  }
  return { ok: true, report: data as Report };
}

function field(data: unknown, name: string): unknown {
  return typeof data === "object" && data !== null ? (data as Record<string, unknown>)[name] : undefined;
}

function missingParts(data: unknown): string[] {
  const lists = ["treatments", "trials", "facts", "restored"].filter((name) => !Array.isArray(field(data, name)));
  const objects = ["experiment", "decision"].filter((name) => typeof (field(data, name) ?? undefined) !== "object");
  return [...objects, ...lists];
}
