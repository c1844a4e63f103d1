import { useMemo } from "preact/hooks";
import { effectRows } from "../analysis/effects.ts";
import { waterfallRows } from "../analysis/waterfall.ts";
import { EffectsChart } from "../charts/effects-chart.tsx";
import { WaterfallChart } from "../charts/waterfall-chart.tsx";
import { roundShare } from "../format/number.ts";
import type { Report } from "../model.ts";
import { Section } from "../parts/section.tsx";
import { VerdictTable } from "./verdict-table.tsx";

export function Steps({ report }: { report: Report }) {
  const { design } = report.experiment;
  const steps = useMemo(() => waterfallRows(report), [report]);
  const effects = useMemo(() => effectRows(report), [report]);
  const confidence = roundShare(report.decision.confidence);
  const lede =
    design === "cumulative"
      ? `Each step keeps the settings of the ones before. A bar runs from the throughput before the step to the one after it; the whisker is the interval of that step, all intervals together at ${confidence}.`
      : `Each treatment alone against the reference. The whisker is the interval, all intervals together at ${confidence}; inside the shaded band a difference does not matter.`;
  return (
    <Section id="steps" lede={lede}>
      {steps.every(({ to_tps }) => to_tps === null) ? (
        <p class="empty">No trial finished: there is nothing to draw.</p>
      ) : (
        <figure>
          {design === "cumulative" ? (
            <WaterfallChart rows={steps} />
          ) : (
            <EffectsChart rows={effects} smallestEffect={report.decision.smallest_effect} />
          )}
        </figure>
      )}
      <VerdictTable report={report} />
    </Section>
  );
}
