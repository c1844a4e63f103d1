import { useState } from "preact/hooks";
import { unmeasured, whyUnmeasured } from "../analysis/efficiency.ts";
import { useSource } from "../data/context.ts";
import { asTrouble } from "../data/trouble.ts";
import type { Mark, Report } from "../model.ts";

/** What a trial lacked is in its document alone; any finished one will do, for the machine is the
 * same. */
function exampleOf({ trials }: Report, hasTrial: (trial: number) => boolean): number | null {
  return trials.find(({ id, status }) => status === "finished" && hasTrial(id))?.id ?? null;
}

/** Costs that were not measured, and why, as far as that is known. A trial is looked into when
 * the reader asks. */
export function Unmeasured({ report }: { report: Report }) {
  const source = useSource();
  const [marks, setMarks] = useState<readonly Mark[] | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const missing = unmeasured(report.treatments.filter(({ status }) => status === "tested"));
  const example = exampleOf(report, source.hasTrial);
  const unknown = marks !== null ? "the reason was not recorded" : example === null || failed !== null ? "the reason is not known here" : "looking for the reason …";
  if (missing.length === 0) return null;
  const look = () => {
    if (marks !== null || example === null) return;
    source.trial(report.experiment.id, example).then(
      (document) => {
        setFailed(null);
        setMarks(document.marks);
      },
      (error: unknown) => {
        setFailed(`${asTrouble(error).heading} ${asTrouble(error).advice}`);
      },
    );
  };
  return (
    <details class="unmeasured" onToggle={(event) => { if (event.currentTarget.open) look(); }}>
      <summary>Not measured: {missing.map(({ title }) => title).join("; ")}</summary>
      <ul>
        {missing.map((cost) => (
          <li key={cost.name}>
            <strong>{cost.title}:</strong> {whyUnmeasured(cost, report.facts, marks ?? []) ?? unknown}
          </li>
        ))}
      </ul>
      {failed === null ? null : <p class="quiet" role="status">Trial {example}, which may show why, is not readable. {failed}</p>}
      {example === null ? <p class="quiet">This file has no details of trials, which may show why.</p> : null}
    </details>
  );
}
