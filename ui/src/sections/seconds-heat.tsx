import { useMemo, useState } from "preact/hooks";
import { treatmentHeat } from "../analysis/heat.ts";
import { HeatChart } from "../charts/heat-chart.tsx";
import type { Treatment, Trial } from "../model.ts";

/** Where response times lay over time, over all trials of a treatment: a tail that comes and goes
 * is seen here, a mean hides it. Trials from before each transaction was counted have the p95 of
 * each second alone. */
export function SecondsHeat({ treatments, trials }: { treatments: readonly Treatment[]; trials: readonly Trial[] }) {
  const [name, setName] = useState(treatments[0]?.name ?? "");
  const treatment = treatments.find((each) => each.name === name);
  const found = useMemo(() => (treatment === undefined ? null : treatmentHeat(treatment, trials)), [treatment, trials]);
  const title = treatment?.title ?? name;
  return (
    <div class="heat">
      <h3>Where response times lay, over time</h3>
      <label class="field">
        <span>Treatment</span>
        <select value={name} onChange={(event) => { setName(event.currentTarget.value); }}>
          {treatments.map((each) => (
            <option key={each.name} value={each.name}>
              {each.title}
            </option>
          ))}
        </select>
      </label>
      {found === null ? (
        <p class="empty">Too few seconds of this treatment have a response time.</p>
      ) : found.of === "transactions" ? (
        <figure>
          <HeatChart
            heat={found.heat}
            title={`response times over time, ${title}`}
            ylabel="response time, ms"
            unit="transactions"
            summary={`How many transactions of all trials of ${title} had which response time, over the measured time; the section on response times has the percentiles.`}
          />
          <figcaption class="quiet">All trials that count together. The stronger the colour, the more transactions took so long.</figcaption>
        </figure>
      ) : (
        <figure>
          <HeatChart
            heat={found.heat}
            title={`p95 response time by second, ${title}`}
            ylabel="p95 of a second, ms"
            unit="seconds"
            summary={`How many seconds of all trials of ${title} had which p95 response time, over the time since the load began; the table above holds the values.`}
          />
          <figcaption class="quiet">The stronger the colour, the more seconds of its trials lay there.</figcaption>
        </figure>
      )}
    </div>
  );
}
