import { useMemo } from "preact/hooks";
import { effectRows } from "../analysis/effects.ts";
import { compares, meanMetric, metricOf } from "../analysis/metric.ts";
import { waterfallRows } from "../analysis/waterfall.ts";
import { EffectsChart } from "../charts/effects-chart.tsx";
import { WaterfallChart } from "../charts/waterfall-chart.tsx";
import { roundShare } from "../format/number.ts";
import type { Report } from "../model.ts";
import { Published, wholeChart, WholeChartClaims } from "../parts/published.tsx";
import { Section } from "../parts/section.tsx";
import { VerdictTable } from "./verdict-table.tsx";

export function Steps({ report }: { report: Report }) {
  const { design } = report.experiment;
  const steps = useMemo(() => waterfallRows(report), [report]);
  const effects = useMemo(() => effectRows(report), [report]);
  const confidence = roundShare(report.decision.confidence);
  const metric = metricOf(report);
  const waterfall = design === "cumulative" && metric.isTps;
  const chart = waterfall ? wholeChart(report, "waterfall") : undefined;
  const compared = compares(report);
  const against = design === "cumulative" ? "the treatment before it" : (report.experiment.factors ?? []).some(({ condition }) => condition) ? "the reference under the same conditions" : "the reference";
  const lede =
    !compared
      ? "Treatments are not compared with one another here; means with the interval of each alone."
      : waterfall
      ? `Each step keeps the settings of the ones before. A bar runs from the throughput before the step to the one after it; the whisker is the interval of that step, all intervals together at ${confidence}.`
      : `Each treatment against ${against}, by ${metric.title}. The whisker is the interval, all intervals together at ${confidence}; inside the shaded band a difference does not matter.`;
  return (
    <Section id="steps" lede={lede}>
      {chart === undefined ? null : <h3>{chart.title}</h3>}
      <Published report={report} text={chart?.published ?? null} />
      {!compared ? null : report.treatments.every((treatment) => meanMetric(report, treatment) === null) ? (
        <p class="empty">No trial finished: there is nothing to draw.</p>
      ) : (
        <figure>
          {waterfall ? (
            <WaterfallChart rows={steps} />
          ) : (
            <EffectsChart
              rows={effects}
              smallestEffect={report.decision.smallest_effect}
              what={`Effect of each treatment on ${metric.title} against ${against}`}
              axis={`change of ${metric.title} against ${against}`}
            />
          )}
        </figure>
      )}
      <WholeChartClaims report={report} chart={chart} />
      <VerdictTable report={report} />
    </Section>
  );
}
