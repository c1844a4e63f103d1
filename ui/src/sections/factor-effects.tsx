import { useMemo } from "preact/hooks";
import { factorRows, type EffectRow } from "../analysis/effects.ts";
import { metricOf } from "../analysis/metric.ts";
import { EffectsChart } from "../charts/effects-chart.tsx";
import { change, changeBounds, isKnown, roundShare, UNKNOWN } from "../format/number.ts";
import type { Report } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";

/** The chart as numbers. */
function EffectTable({ rows, title }: { rows: readonly EffectRow[]; title: string }) {
  return (
    <details>
      <summary>The same as a table</summary>
      <DataTable class="cards" captionHidden caption={`Effect of each level of a factor on ${title}`} headings={["Level", "Change", "Interval", "Verdict", "Blocks"]}>
        {rows.map(({ index, title: level, effect, missing }) => (
          <tr role="row" key={index}>
            <th scope="row" role="rowheader">{level}</th>
            <Cell label="Change" number>{effect === null ? missing : change(effect.ratio)}</Cell>
            <Cell label="Interval" number>{effect === null ? UNKNOWN : changeBounds(effect.ratio_low, effect.ratio_high)}</Cell>
            <Cell label="Verdict">{effect === null ? UNKNOWN : <VerdictMark verdict={effect.verdict} />}</Cell>
            <Cell label="Blocks" number>{isKnown(effect?.blocks) ? effect.blocks : UNKNOWN}</Cell>
          </tr>
        ))}
      </DataTable>
    </details>
  );
}

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
      <EffectTable rows={rows} title={title} />
    </Section>
  );
}
