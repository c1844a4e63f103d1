import { isKnown } from "../format/number.ts";
import { METRICS, UNITS } from "../generated/metrics.ts";
import type { CompareRow, Comparison, Report, Setting, SideFigure } from "../model.ts";
import { treatmentOf, type Spec } from "./spec.ts";

/** One side as the page itself knows it: what can be drawn of it. */
export interface Side {
  name: string;
  title: string;
  /** Without the experiment, for the ends of lines. */
  short: string;
  distribution: { percentile: number; ms: number }[];
  settings: Setting[];
  figures: Record<string, number | null>;
}

/** The side that is meant; of a whole experiment its best treatment. */
export function sideOf(report: Report, spec: Spec): Side | null {
  const { treatments, trials, experiment } = report;
  if (spec.trial !== null) {
    const trial = trials.find(({ id }) => id === spec.trial);
    if (trial === undefined) return null;
    const treatment = treatments.find(({ name }) => name === trial.treatment);
    const title = `${treatment?.title ?? trial.treatment}, block ${String(trial.block)} (trial ${String(trial.id)})`;
    const distribution = [
      [50, trial.percentiles?.p50_ms], [95, trial.percentiles?.p95_ms], [99, trial.percentiles?.p99_ms],
    ].flatMap(([percentile, ms]) => (isKnown(percentile) && isKnown(ms) ? [{ percentile, ms }] : []));
    return { name: `trial-${String(trial.id)}`, title, short: `trial ${String(trial.id)}`, distribution, settings: treatment?.settings ?? [], figures: { tps: trial.tps, ...trial.figures } };
  }
  const named = treatmentOf(report, spec);
  const treatment = treatments.find(({ name }) => name === named);
  if (treatment === undefined) return null;
  const figures = { tps: treatment.tps?.mean ?? null, ...treatment.figures };
  return { name: `${String(experiment.id)}:${treatment.name}`, title: `${experiment.name}: ${treatment.title}`, short: treatment.title, distribution: treatment.distribution, settings: treatment.settings, figures };
}

export interface SettingDifference {
  knob: string;
  /** As it is set on each side; null where that side leaves it as it was. */
  values: (string | null)[];
}

/** Knobs that are not set alike on all sides. */
export function settingsDiffer(sides: readonly (readonly Setting[])[]): SettingDifference[] {
  const knobs = [...new Set(sides.flat().map(({ knob }) => knob))];
  const value = (settings: readonly Setting[], knob: string) => settings.find((setting) => setting.knob === knob)?.value ?? null;
  return knobs.map((knob) => ({ knob, values: sides.map((settings) => value(settings, knob)) })).filter(({ values }) => new Set(values).size > 1);
}

/** What one side sets of that, as `name = value` lines; what it leaves as it was is a remark. */
export function settingLines(rows: readonly SettingDifference[], side: number): string {
  return rows.map(({ knob, values }) => ((values[side] ?? null) === null ? `# ${knob}: as it was` : `${knob} = ${String(values[side])}`)).join("\n");
}

/** What a report file can say without a server: figures and ratios, and no verdict. */
export function plainComparison(a: Side, b: Side): Comparison {
  const figure = (value: number | null | undefined): SideFigure | null => (isKnown(value) ? { mean: value, low: null, high: null, n: 1 } : null);
  const rows = METRICS.filter(({ is_compared }) => is_compared).flatMap(({ id: metric, larger_is_better }): CompareRow[] => {
    const [of_a, of_b] = [a.figures[metric], b.figures[metric]];
    if (!isKnown(of_a) && !isKnown(of_b)) return [];
    const ratio = isKnown(of_a) && isKnown(of_b) && of_a > 0 ? of_b / of_a : null;
    return [{ metric, larger_is_better, a: figure(of_a), b: figure(of_b), ratio, effect: null, why_no_interval: null, failed: [0, 0], tried: [0, 0] }];
  });
  return { basis: "trials", confidence: 0, smallest_effect: 0, pairs: [{ a: a.title, b: b.title, rows, why_no_verdict: null, differs: [] }] };
}

/** A figure in words with its unit, by its name's end where it is not one of the known. */
export function figureTitle(name: string): { title: string; unit: string } {
  const known = METRICS.find(({ id }) => id === name);
  if (known !== undefined) return { title: known.is_cost ? `${known.heading} per transaction` : known.heading, unit: known.unit };
  const [ending, unit] = UNITS.find(([end]) => name.endsWith(end)) ?? ["", ""];
  return { title: name.slice(0, name.length - ending.length).replaceAll("_", " "), unit };
}
