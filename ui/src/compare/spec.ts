/** What a side of a comparison is, as `pgdyno compare` takes it: 7, 7:memory, 7/12. */
export interface Spec {
  experiment: number;
  treatment: string | null;
  trial: number | null;
}

export function parseSpec(text: string): Spec | null {
  const match = /^(\d{1,15})(?::(.+)|\/(\d{1,15}))?$/s.exec(text.trim());
  if (match === null) return null;
  const [, experiment, treatment, trial] = match;
  return { experiment: Number(experiment), treatment: treatment ?? null, trial: trial === undefined ? null : Number(trial) };
}

export function specText({ experiment, treatment, trial }: Spec): string {
  if (treatment !== null) return `${String(experiment)}:${treatment}`;
  return trial === null ? String(experiment) : `${String(experiment)}/${String(trial)}`;
}

/** For a shell: names may hold blanks and quotes. */
export function quoted(word: string): string {
  return /^[\w.:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
