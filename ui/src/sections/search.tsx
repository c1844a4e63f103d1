import { useMemo } from "preact/hooks";
import { bareFigure, metricOf } from "../analysis/metric.ts";
import { factorParts, pathOf, turns } from "../analysis/search.ts";
import { ImportanceChart } from "../charts/importance-chart.tsx";
import { SearchChart } from "../charts/search-chart.tsx";
import { count, isKnown, plural, roundShare, UNKNOWN } from "../format/number.ts";
import type { Report, TreatmentEstimate } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";

/** Factors with a smaller part are in the table alone. */
const DRAWN_FROM = 0.02;
const DRAWN_MAX = 12;

function bounds(best: TreatmentEstimate | null): string {
  const interval = best?.interval ?? null;
  return interval === null ? "" : `${bareFigure(interval[0])} to ${bareFigure(interval[1])}`;
}

/** What a search has tried, what was the best so far, and which factors made the difference. */
export function Search({ report }: { report: Report }) {
  const search = report.search ?? null;
  const parts = useMemo(() => (search === null ? [] : factorParts(report, search)), [report, search]);
  if (search === null || search.path.length === 0) return null;
  const { title, unit } = metricOf(report);
  const titleOf = (name: string) => report.treatments.find((treatment) => treatment.name === name)?.title ?? name;
  const changed = turns(search).length - 1;
  const drawn = parts.filter(({ part }) => part >= DRAWN_FROM).slice(0, DRAWN_MAX);
  const broken = search.path.some((step) => step.broken.length > 0) ? " A hollow dot breaks a bound." : "";
  const failed = search.path.some(({ figure }) => figure === null) ? " A cross is a trial that failed." : "";
  return (
    <Section
      id="search"
      lede={`Each dot is a trial, the line is the best so far by all trials up to there, with its interval.${broken}${failed} The best so far ${changed < 1 ? "never changed" : changed === 1 ? "changed once" : `changed ${count(changed)} times`}. Chosen from many, it looks better than it is, until new trials have confirmed it.`}
    >
      <figure>
        <SearchChart search={search} what={title} unit={unit} />
      </figure>
      <details>
        <summary>The same as a table</summary>
        <DataTable class="cards" captionHidden caption="Trials of the search" headings={["Trial", "Treatment", title, "Best so far", "Its figure", "Interval"]}>
          {pathOf(search).map(({ at, step }) => (
            <tr role="row" key={at}>
              <th scope="row" role="rowheader">{at}</th>
              <Cell label="Treatment">{titleOf(step.treatment)}</Cell>
              <Cell label={title} number>
                {isKnown(step.figure) ? bareFigure(step.figure) : <strong class="attention">failed</strong>}
                {step.broken.map(({ bound }) => <span key={bound} class="interval attention">breaks {bound}</span>)}
              </Cell>
              <Cell label="Best so far">{step.best === null ? UNKNOWN : titleOf(step.best.treatment)}</Cell>
              <Cell label="Its figure" number>{bareFigure(step.best?.figure)}</Cell>
              <Cell label="Interval" number>{bounds(step.best)}</Cell>
            </tr>
          ))}
        </DataTable>
      </details>
      {drawn.length === 0 ? null : (
        <>
          <h3>Which settings made the difference</h3>
          <figure>
            <ImportanceChart parts={drawn} />
          </figure>
        </>
      )}
      {parts.length === 0 ? null : (
        <details>
          <summary>All {plural(parts.length, "factor")}</summary>
          <DataTable class="cards" captionHidden caption="Factors of the search" headings={["Factor", "Part of what the settings changed", "Before", "In the best"]}>
            {parts.map(({ factor, part, before, best }) => (
              <tr role="row" key={factor}>
                <th scope="row" role="rowheader">{factor}</th>
                <Cell label="Part" number>{roundShare(part)}</Cell>
                <Cell label="Before">{before ?? UNKNOWN}</Cell>
                <Cell label="In the best">{best === before ? <span class="quiet">unchanged</span> : best ?? UNKNOWN}</Cell>
              </tr>
            ))}
          </DataTable>
        </details>
      )}
    </Section>
  );
}
