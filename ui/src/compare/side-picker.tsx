import { Swatch } from "../charts/swatch.tsx";
import type { Report } from "../model.ts";
import { LETTERS } from "../router.ts";
import type { Spec } from "./spec.ts";

interface Props {
  /** Among all sides, from 0 on. */
  place: number;
  count: number;
  spec: Spec | null;
  /** Why it cannot be compared with the first; null where it can. */
  reason: string | null;
  /** Those that can be chosen, the newest first. */
  experiments: readonly { id: number; name: string }[];
  /** The experiment that is chosen, once it is here. */
  report: Report | null;
  onChange: (spec: Spec) => void;
  /** Makes it the one that the others are compared with. */
  onFirst: () => void;
  onRemove: () => void;
}

function partOf({ treatment, trial }: Spec): string {
  if (treatment !== null) return `:${treatment}`;
  return trial === null ? "" : `/${String(trial)}`;
}

function specWith(experiment: number, part: string): Spec {
  return { experiment, treatment: part.startsWith(":") ? part.slice(1) : null, trial: part.startsWith("/") ? Number(part.slice(1)) : null };
}

/** Chooses an experiment and which part of it: all, a treatment, or a trial. */
export function SidePicker({ place, count, spec, reason, experiments, report, onChange, onFirst, onRemove }: Props) {
  const letter = LETTERS[place] ?? "?";
  const own = spec === null ? undefined : experiments.find(({ id }) => id === spec.experiment);
  return (
    <fieldset class="side-picker">
      <legend>
        <Swatch index={place} plain={false} /> <span class="side-letter">{letter}</span>
        <span class="quiet">{place === 0 ? " · the others against it" : ""}</span>
      </legend>
      <label class="field">
        <span>Experiment</span>
        <select value={spec === null ? "" : String(spec.experiment)} onChange={(event) => { if (event.currentTarget.value !== "") onChange(specWith(Number(event.currentTarget.value), "")); }}>
          <option value="">choose one</option>
          {own === undefined && spec !== null ? <option value={String(spec.experiment)}>{spec.experiment}</option> : null}
          {experiments.map(({ id, name }) => (
            <option key={id} value={String(id)}>
              {id} · {name}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>Part</span>
        <select disabled={spec === null || report === null} value={spec === null ? "" : partOf(spec)} onChange={(event) => { if (spec !== null) onChange(specWith(spec.experiment, event.currentTarget.value)); }}>
          <option value="">all of it, treatment by treatment</option>
          <optgroup label="Treatments">
            {(report?.treatments ?? []).map(({ name, title }) => (
              <option key={name} value={`:${name}`}>
                {title}
              </option>
            ))}
          </optgroup>
          <optgroup label="Trials">
            {(report?.trials ?? []).map(({ id, block, treatment }) => (
              <option key={id} value={`/${String(id)}`}>
                {`trial ${String(id)}: block ${String(block)}, ${treatment}`}
              </option>
            ))}
          </optgroup>
        </select>
      </label>
      {reason === null || count === 2 ? null : <p class="quiet">{reason}</p>}
      {place === 0 && count === 2 ? null : (
        <p class="side-buttons">
          {place === 0 ? null : (
            <button type="button" class="button" aria-label={count === 2 ? "Swap A and B" : `Make it A: hold the others against ${letter}`} onClick={onFirst}>
              {count === 2 ? "⇄ swap" : "make it A"}
            </button>
          )}
          {count < 3 ? null : (
            <button type="button" class="button" aria-label={`Remove ${letter}`} onClick={onRemove}>
              × remove
            </button>
          )}
        </p>
      )}
    </fieldset>
  );
}
