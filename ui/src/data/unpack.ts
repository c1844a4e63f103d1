import { TRIAL_FORMAT, type TrialColumn, type TrialDocument } from "../model.ts";
import { Trouble } from "./trouble.ts";

/** A column with its times given by number: `axes` holds them once, as steps. */
interface SharedColumn extends Omit<TrialColumn, "t_ms"> {
  axis: number;
}

export interface SharedDocument extends Omit<TrialDocument, "series"> {
  axes: number[][];
  columns: SharedColumn[];
}

const DAMAGED = () => new Trouble("damaged", "The series of this trial are damaged.", "The file was probably cut short or changed on its way. Write it again with “pgdyno report”.");

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
  return bytes;
}

/** zlib in base64, as crates/pgdyno-report/src/detail/packed.rs writes it, back into text. */
export async function inflate(base64: string): Promise<string> {
  if (typeof DecompressionStream === "undefined") {
    throw new Trouble("damaged", "This browser cannot unpack the trials.", "It lacks DecompressionStream, which browsers have since 2023. The report itself is shown all the same.");
  }
  try {
    const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return await new Response(stream).text();
  } catch {
    throw DAMAGED();
  }
}

/** Times from steps. */
export function times(steps: readonly number[]): number[] {
  let at = 0;
  return steps.map((step) => (at += step));
}

export function expand({ axes, columns, ...rest }: SharedDocument): TrialDocument {
  const all = axes.map(times);
  const series = columns.map(({ axis, ...column }) => ({ ...column, t_ms: all[axis] ?? [] }));
  return { ...rest, series };
}

/** Checks what everything else takes for granted. */
export function checkedTrial(data: unknown): TrialDocument {
  const found = data as Partial<TrialDocument> | null;
  if (found?.format !== TRIAL_FORMAT) {
    throw new Trouble("damaged", "This page cannot show this trial.", `It reads the format “${TRIAL_FORMAT}”; the data are of another version of pgdyno.`);
  }
  if (!Array.isArray(found.series) || !Array.isArray(found.marks) || typeof found.trial !== "object") {
    throw new Trouble("damaged", "The measurements of this trial are incomplete.", "Its series, its marks or the trial itself are missing.");
  }
  return found as TrialDocument;
}

export async function unpackTrial(base64: string): Promise<TrialDocument> {
  const text = await inflate(base64);
  try {
    return checkedTrial(expand(JSON.parse(text) as SharedDocument));
  } catch (error) {
    throw error instanceof Trouble ? error : DAMAGED();
  }
}
