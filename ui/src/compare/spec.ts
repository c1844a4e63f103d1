import { headlineTreatment } from "../analysis/headline.ts";
import { finishedTrialsOf } from "../analysis/throughput.ts";
import type { Report } from "../model.ts";
import { LETTERS } from "../router.ts";

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

/** Why two sides cannot be compared with one another, and what to choose; null where they can be
 * tried. */
export function whyNot(a: Spec, b: Spec): string | null {
  if ((a.trial === null) !== (b.trial === null)) return "A trial is compared with a trial: choose one on both sides.";
  if (a.experiment !== b.experiment) return null;
  if (isWhole(a) || isWhole(b)) return "Both are of one experiment: choose a treatment, or a trial, on both sides.";
  return specText(a) === specText(b) ? "Both are one and the same: choose another part of one of them." : null;
}

/** For a shell: names may hold blanks and quotes. */
export function quoted(word: string): string {
  return /^[\w.:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function testedNames({ treatments }: Report): string[] {
  return treatments.filter(({ status }) => status === "tested").map(({ name }) => name);
}

/** All tested treatments of an experiment, the reference first, as far as sides go. */
export function eachTreatment(report: Report): string[] {
  return testedNames(report).slice(0, LETTERS.length).map((name) => `${String(report.experiment.id)}:${name}`);
}

/** What is most likely meant by comparing within an experiment: the reference and what the answer
 * is about. */
export function firstSides(report: Report): string[] {
  const own = (name: string) => `${String(report.experiment.id)}:${name}`;
  const tested = testedNames(report);
  const first = tested.includes(report.experiment.reference) ? report.experiment.reference : tested[0];
  const second = [headlineTreatment(report)?.name, ...tested].find((name) => name !== undefined && name !== first && tested.includes(name));
  if (first === undefined) return ["", ""];
  return second === undefined ? [own(first), ""] : [own(first), own(second)];
}

/** What a further side begins with: the next of its kind that is not a side yet; an empty one
 * where there is none. */
export function nextSide(report: Report | null, specs: readonly (Spec | null)[]): string {
  const last = specs.findLast((spec) => spec !== null);
  if (report === null || last?.experiment !== report.experiment.id) return "";
  const taken = new Set(specs.flatMap((spec) => (spec === null ? [] : [specText(spec)])));
  const id = String(report.experiment.id);
  const trials = report.trials.filter(({ status }) => status === "finished").map((trial) => `${id}/${String(trial.id)}`);
  const treatments = testedNames(report).map((name) => `${id}:${name}`);
  return (last.trial === null ? treatments : trials).find((text) => !taken.has(text)) ?? "";
}

/** The treatment that a side is of; of a whole experiment its best one. */
export function treatmentOf(report: Report, spec: Spec): string | null {
  if (spec.trial !== null) return report.trials.find(({ id }) => id === spec.trial)?.treatment ?? null;
  if (spec.treatment !== null) return report.treatments.some(({ name }) => name === spec.treatment) ? spec.treatment : null;
  return (headlineTreatment(report) ?? report.treatments[0])?.name ?? null;
}

/** The trial that is drawn for a side: itself, or of a treatment the middle one by throughput of
 * those here. */
export function trialOf(report: Report, spec: Spec, hasTrial: (trial: number) => boolean): number | null {
  if (spec.trial !== null) return report.trials.some(({ id }) => id === spec.trial) ? spec.trial : null;
  const treatment = treatmentOf(report, spec);
  if (treatment === null) return null;
  const counted = finishedTrialsOf(report, treatment).filter(({ excluded }) => excluded !== true);
  const own = counted.some(({ id }) => hasTrial(id)) ? counted.filter(({ id }) => hasTrial(id)) : counted;
  const ranked = own.toSorted((a, b) => (a.tps ?? 0) - (b.tps ?? 0));
  return ranked[Math.floor((ranked.length - 1) / 2)]?.id ?? null;
}
