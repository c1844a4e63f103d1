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

function isWhole({ treatment, trial }: Spec): boolean {
  return treatment === null && trial === null;
}

/** Why two sides cannot be held against one another, and what to choose; null where they can be tried. */
export function whyNot(a: Spec, b: Spec): string | null {
  if ((a.trial === null) !== (b.trial === null)) return "A trial is held against a trial: choose one on both sides.";
  if (a.experiment !== b.experiment) return null;
  if (isWhole(a) || isWhole(b)) return "Both are of one experiment: choose a treatment, or a trial, on both sides.";
  return specText(a) === specText(b) ? "A and B are one and the same: choose another part of one of them." : null;
}

/** For a shell: names may hold blanks and quotes. */
export function quoted(word: string): string {
  return /^[\w.:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
