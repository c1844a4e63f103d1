import { useState } from "preact/hooks";
import { msAt, NAMED_PERCENTILES, percentileCurve } from "../analysis/percentiles.ts";
import { referenceOf } from "../analysis/throughput.ts";
import { PercentileChart } from "../charts/percentile-chart.tsx";
import { bareMilliseconds } from "../format/span.ts";
import type { Report, Treatment } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { TreatmentPicker } from "../parts/picker.tsx";
import { Section } from "../parts/section.tsx";

function PercentileTable({ treatments }: { treatments: readonly Treatment[] }) {
  const headings = ["Treatment", ...NAMED_PERCENTILES.map((percentile) => `p${String(percentile)}`), "max"];
  return (
    <details>
      <summary>The same as a table, for every treatment</summary>
      <DataTable caption="Response time in milliseconds" headings={headings}>
        {treatments.map((treatment) => {
          const curve = percentileCurve(treatment);
          return (
            <tr role="row" key={treatment.name}>
              <th scope="row" role="rowheader">
                {treatment.title}
              </th>
              {NAMED_PERCENTILES.map((percentile) => (
                <Cell key={percentile} label={`p${String(percentile)}`} number>
                  {bareMilliseconds(msAt(curve, percentile))}
                </Cell>
              ))}
              <Cell label="max" number>
                {bareMilliseconds(treatment.percentiles?.max_ms)}
              </Cell>
            </tr>
          );
        })}
      </DataTable>
    </details>
  );
}

export function ResponseTimes({ report, headline }: { report: Report; headline: Treatment | null }) {
  const reference = referenceOf(report);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set([reference, headline].flatMap((treatment) => (treatment === null ? [] : [treatment.name]))),
  );
  const recorded = report.treatments.filter((treatment) => percentileCurve(treatment).length > 1);
  if (recorded.length === 0) {
    return (
      <Section id="response">
        <p class="empty">No response-time distribution was recorded.</p>
      </Section>
    );
  }
  return (
    <Section id="response" lede="All trials of a treatment together. To the right each further nine has the same room: half, one in ten, one in a hundred transactions and so on were slower. Lower is quicker.">
      <div class="controls">
        <TreatmentPicker legend="Treatments drawn" treatments={recorded} plan={report.treatments} chosen={chosen} onChange={setChosen} />
      </div>
      <figure>
        <PercentileChart treatments={recorded.filter((treatment) => chosen.has(treatment.name))} plan={report.treatments} />
      </figure>
      <PercentileTable treatments={recorded} />
    </Section>
  );
}
