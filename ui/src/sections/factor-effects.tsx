import { useMemo } from "preact/hooks";
import { factorRows } from "../analysis/effects.ts";
import { metricOf } from "../analysis/metric.ts";
import { EffectsChart } from "../charts/effects-chart.tsx";
import { roundShare } from "../format/number.ts";
import type { Report } from "../model.ts";
import { Section } from "../parts/section.tsx";

/** Main effects of factors, and what two levels are worth together. */
export function FactorEffects({ report }: { report: Report }) {
  const rows = useMemo(() => factorRows(report), [report]);
  if (rows.length === 0) return null;
  const { title } = metricOf(report);
  const together = (report.effects ?? []).some(({ other }) => other !== null)
    ? " Of two levels together: how much more than the product of each alone; zero means that they do not depend on each other."
    : "";
  return (
    <Section
      id="effects"
      lede={`By ${title}: each level against the first one of its factor, over all levels of the others. All these intervals hold together at ${roundShare(report.decision.confidence)}.${together}`}
    >
      <figure>
        <EffectsChart
          rows={rows}
          smallestEffect={report.decision.smallest_effect}
          what={`Effect of each level of a factor on ${title}`}
          axis={`change of ${title}`}
        />
      </figure>
    </Section>
  );
}
