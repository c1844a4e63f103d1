import type { Report } from "../model.ts";
import type { Spec } from "./spec.ts";

interface Props {
  letter: "A" | "B";
  spec: Spec | null;
  /** Those that can be chosen, the newest first. */
  experiments: readonly { id: number; name: string }[];
  /** The experiment that is chosen, once it is here. */
  report: Report | null;
  onChange: (spec: Spec) => void;
}

function partOf({ treatment, trial }: Spec): string {
  if (treatment !== null) return `:${treatment}`;
  return trial === null ? "" : `/${String(trial)}`;
}

function specWith(experiment: number, part: string): Spec {
  return { experiment, treatment: part.startsWith(":") ? part.slice(1) : null, trial: part.startsWith("/") ? Number(part.slice(1)) : null };
}

/** Chooses an experiment and which part of it: all, a treatment, or a trial. */
export function SidePicker({ letter, spec, experiments, report, onChange }: Props) {
  const own = spec === null ? undefined : experiments.find(({ id }) => id === spec.experiment);
  return (
    <fieldset class="side-picker">
      <legend>
        <span class={`side-letter side-${letter}`}>{letter}</span> {letter === "A" ? "is what B is held against" : "is held against A"}
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
    </fieldset>
  );
}
