import { titleOf } from "../analysis/study-chart.ts";
import { StudyChart } from "../charts/study-chart.tsx";
import type { Report } from "../model.ts";
import { ClaimList } from "../parts/claim-list.tsx";
import { Published } from "../parts/published.tsx";
import { Section } from "../parts/section.tsx";
import { ResultTable } from "../parts/result-table.tsx";

/** Charts in the study's form, with what the study says of its own and the findings that each
 * shows. */
export function StudyCharts({ report }: { report: Report }) {
  const { charts = [], claims = [] } = report;
  if (charts.length === 0) return null;
  return (
    <Section id="charts" lede="Means over the trials that count; a whisker is the interval of that mean alone.">
      {charts.map((chart, place) => (
        <div class="study-chart" key={place}>
          <h3>{chart.table.title}</h3>
          <Published report={report} text={chart.published} />
          {chart.table.blocks.length === 0 ? <p class="empty">No trial of it counts.</p> : null}
          {chart.table.blocks.map((block, panel) => (
            <figure key={panel}>
              {block.title === null ? null : <figcaption>{block.title}</figcaption>}
              <StudyChart chart={chart} block={block} />
            </figure>
          ))}
          <ClaimList claims={claims.filter((_, number) => chart.claims.includes(number))} />
          {chart.table.blocks.length === 0 ? null : (
            <details>
              <summary>The same as a table</summary>
              {chart.table.blocks.map((block, panel) => (
                <ResultTable key={panel} table={chart.table} block={block} caption={titleOf(chart.table, block.title)} />
              ))}
            </details>
          )}
        </div>
      ))}
    </Section>
  );
}
