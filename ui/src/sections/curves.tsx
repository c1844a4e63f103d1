import { useState } from "preact/hooks";
import { zoneInWords } from "../analysis/curves.ts";
import { bareFigure, capitalised } from "../analysis/metric.ts";
import { CurveChart } from "../charts/curve-chart.tsx";
import { bounds, count, isKnown, share, tick, tps } from "../format/number.ts";
import { bareMilliseconds } from "../format/span.ts";
import type { Bounded, Curve } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";

/** "31.2 (28.0 … 36.1)"; a bound that the data do not set is said to be none. */
function estimate({ value, low, high }: Bounded): string {
  const end = (bound: number | null) => (isKnown(bound) ? bareFigure(bound) : "∞");
  return `${end(value)} (${end(low)} … ${end(high)})`;
}

function Law({ curve }: { curve: Curve }) {
  const { usl, x } = curve;
  if (usl === null) return <li>No scalability law: {curve.why_no_usl ?? "it is not known why"}.</li>;
  const peak = isKnown(usl.peak_x.value)
    ? `its peak is at ${estimate(usl.peak_x)} ${x}, ${estimate(usl.peak_tps)} TPS`
    : "it has no peak: throughput still grows";
  return (
    <li>
      Universal Scalability Law, the dashed line: λ {estimate(usl.lambda)} TPS, σ {estimate(usl.sigma)}, κ {estimate(usl.kappa)}; {peak}. Trials lie {share(usl.spread)} around it.
    </li>
  );
}

function PointTable({ curve }: { curve: Curve }) {
  return (
    <details>
      <summary>The same as a table</summary>
      <DataTable captionHidden caption={`Throughput over ${curve.x}${curve.title === null ? "" : `, ${curve.title}`}`} headings={[capitalised(curve.x), "Throughput, TPS", "p99, ms", "Trials"]}>
        {curve.points.map((point) => (
          <tr role="row" key={point.treatment}>
            <th scope="row" role="rowheader">
              {tick(point.x)}
            </th>
            <Cell label="Throughput, TPS" number>
              <span class="figure-main">{tps(point.tps.mean)}</span>
              {point.n > 1 ? <span class="interval">{bounds(point.tps.low, point.tps.high, tps)}</span> : null}
            </Cell>
            <Cell label="p99, ms" number>
              <span class="figure-main">{bareMilliseconds(point.p99_ms?.mean)}</span>
              {point.n > 1 && point.p99_ms !== null ? <span class="interval">{bounds(point.p99_ms.low, point.p99_ms.high, bareMilliseconds)}</span> : null}
            </Cell>
            <Cell label="Trials" number>
              {count(point.n)}
            </Cell>
          </tr>
        ))}
      </DataTable>
    </details>
  );
}

/** One curve at a time, chosen by the levels of the other factors. */
export function Curves({ curves }: { curves: readonly Curve[] }) {
  const [chosen, setChosen] = useState(0);
  const curve = curves[chosen] ?? curves[0];
  if (curve === undefined) return null;
  const name = (each: Curve) => each.title ?? `over ${each.x}`;
  return (
    <Section id="curves" lede="Means over the trials that count, each with its interval. The happy zone, shaded, has at least 95 % of the peak throughput and response times not past their knee.">
      {curves.length < 2 ? null : (
        <div class="controls">
          <fieldset class="picker">
            <legend>Curve drawn</legend>
            {curves.map((each, place) => (
              <label key={place}>
                <input type="radio" name="curve" checked={each === curve} onChange={() => { setChosen(place); }} />
                <span>{name(each)}</span>
              </label>
            ))}
          </fieldset>
        </div>
      )}
      <figure>
        <CurveChart curve={curve} />
      </figure>
      <ul class="remarks curve-remarks">
        <li>{curve.zone === null ? `No happy zone: ${curve.why_no_zone ?? "it is not known why"}.` : `Happy zone: ${zoneInWords(curve.zone)}.`}</li>
        <Law curve={curve} />
      </ul>
      <PointTable curve={curve} />
    </Section>
  );
}
