import { titleOf } from "../analysis/study-chart.ts";
import type { StudyTable } from "../model.ts";
import { ResultTable } from "../parts/result-table.tsx";
import { Section } from "../parts/section.tsx";

/** Tables by the levels of factors, as a study or the experiment itself lays them out. */
export function StudyTables({ tables }: { tables: readonly StudyTable[] }) {
  if (tables.length === 0) return null;
  return (
    <Section id="tables" lede="Means over the trials that count, each with the interval of that mean alone.">
      {tables.map((table, place) => (
        <div key={place}>
          {table.blocks.length === 0 ? <p class="empty">{table.title}: no trial of it counts.</p> : null}
          {table.blocks.map((block, number) => (
            <ResultTable key={number} table={table} block={block} caption={titleOf(table, block.title)} />
          ))}
        </div>
      ))}
    </Section>
  );
}
