import { useMemo, useState } from "preact/hooks";
import { secondsHeat } from "../analysis/heat.ts";
import { HeatChart } from "../charts/heat-chart.tsx";
import type { Treatment, Trial } from "../model.ts";

/** Where the p95 of each second lay, over all trials of a treatment: a tail that comes and goes is seen here, a mean hides it. */
export function SecondsHeat({ treatments, trials }: { treatments: readonly Treatment[]; trials: readonly Trial[] }) {
  const [name, setName] = useState(treatments[0]?.name ?? "");
  const own = useMemo(() => trials.filter(({ treatment, status }) => treatment === name && status === "finished"), [trials, name]);
  const heat = useMemo(() => secondsHeat(own), [own]);
  const title = treatments.find((treatment) => treatment.name === name)?.title ?? name;
  return (
    <div class="heat">
      <h3>Where response times lay, second by second</h3>
      <label class="field">
        <span>Treatment</span>
        <select value={name} onChange={(event) => { setName(event.currentTarget.value); }}>
          {treatments.map((treatment) => (
            <option key={treatment.name} value={treatment.name}>
              {treatment.title}
            </option>
          ))}
        </select>
      </label>
      {heat === null ? (
        <p class="empty">Too few seconds of this treatment have a response time.</p>
      ) : (
        <figure>
          <HeatChart
            heat={heat}
            title={`p95 response time by second, ${title}`}
            ylabel="p95 of a second, ms"
            summary={`How many seconds of all trials of ${title} had which p95 response time, over the time since the load began; the table above holds the values.`}
          />
          <figcaption class="quiet">The stronger the colour, the more seconds of its trials lay there.</figcaption>
        </figure>
      )}
    </div>
  );
}
