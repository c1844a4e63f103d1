import { isKnown } from "../format/number.ts";
import type { Importance, Report, Searched, SearchStep } from "../model.ts";

/** A trial of a search where it is drawn: `at` counts trials from 1. */
export interface PathPoint {
  at: number;
  step: SearchStep;
}

export function pathOf({ path }: Searched): PathPoint[] {
  return path.map((step, index) => ({ at: index + 1, step }));
}

/** The figures that an axis has to have room for: what was measured, and what was best with its
 * interval. */
export function pathRange(search: Searched): [number, number] {
  const figures = search.path.flatMap(({ figure, best }) => [figure, best?.figure, ...(best?.interval ?? [])]).filter(isKnown);
  const [low, high] = [Math.min(...figures), Math.max(...figures)];
  if (figures.length === 0) return [0, 1];
  const room = (high - low) * 0.06 || high * 0.05 || 1;
  return [Math.max(0, low - room), high + room];
}

/** How often the best so far has changed, and where: the trials after which another one was the
 * best. */
export function turns({ path }: Searched): PathPoint[] {
  return path.flatMap((step, index) => {
    const before = path[index - 1]?.best?.treatment;
    return step.best !== null && step.best.treatment !== before ? [{ at: index + 1, step }] : [];
  });
}

/** A factor with its part, the level that it had before and that of the best. */
export interface FactorPart extends Importance {
  before: string | null;
  best: string | null;
}

export function factorParts({ treatments }: Report, search: Searched): FactorPart[] {
  const levelOf = (name: string | undefined, factor: string) =>
    treatments.find((treatment) => treatment.name === name)?.levels?.find((level) => level.factor === factor)?.level ?? null;
  return search.importance.map((own) => ({ ...own, before: levelOf(search.reference?.treatment, own.factor), best: levelOf(search.best?.treatment, own.factor) }));
}
