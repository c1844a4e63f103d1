import type { Treatment } from "../model.ts";
import { Swatch } from "../charts/swatch.tsx";

interface Props {
  legend: string;
  treatments: readonly Treatment[];
  /** Place of each treatment in the plan decides its style, so the whole plan is needed. */
  plan: readonly Treatment[];
  chosen: ReadonlySet<string>;
  /** See Swatch. */
  plain?: boolean;
  onChange: (chosen: ReadonlySet<string>) => void;
}

/** Chooses the treatments that a chart draws, and is its legend at the same time. */
export function TreatmentPicker({ legend, treatments, plan, chosen, plain = false, onChange }: Props) {
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    onChange(next);
  };
  return (
    <fieldset class="picker">
      <legend>{legend}</legend>
      {treatments.map((treatment) => (
        <label key={treatment.name}>
          <input
            type="checkbox"
            checked={chosen.has(treatment.name)}
            onChange={() => {
              toggle(treatment.name);
            }}
          />
          <Swatch index={plan.indexOf(treatment)} plain={plain} />
          <span>{treatment.title}</span>
        </label>
      ))}
    </fieldset>
  );
}
