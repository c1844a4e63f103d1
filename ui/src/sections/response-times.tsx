import { useState } from "preact/hooks";
import { percentileCurve } from "../analysis/percentiles.ts";
import { referenceOf } from "../analysis/throughput.ts";
import { PercentileChart } from "../charts/percentile-chart.tsx";
import type { Report, Treatment } from "../model.ts";
import { PercentileTable } from "../parts/percentile-table.tsx";
import { TreatmentPicker } from "../parts/picker.tsx";
import { Section } from "../parts/section.tsx";

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
    <Section id="response" lede="All trials of a treatment together. To the right each further nine has the same room: half, one in ten, one in a hundred transactions and so on were slower. Lower is quicker. Intervals are at 95 %, by how trials differ. In a closed loop a stall of the server counts once for each client that waits; an open loop (a rate) counts it for all that were due.">
      <div class="controls">
        <TreatmentPicker legend="Treatments drawn" treatments={recorded} plan={report.treatments} chosen={chosen} onChange={setChosen} />
      </div>
      <figure>
        <PercentileChart treatments={recorded.filter((treatment) => chosen.has(treatment.name))} plan={report.treatments} />
      </figure>
      <PercentileTable rows={recorded} of="Treatment" summary="The same as a table, for every treatment" />
    </Section>
  );
}
