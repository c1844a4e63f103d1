import { bareFigure } from "../analysis/metric.ts";
import { bounds, isKnown, UNKNOWN } from "../format/number.ts";
import type { StudyTable, TableCell } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";

function Mean({ cell }: { cell: TableCell | null }) {
  if (cell === null) return <>{UNKNOWN}</>;
  return (
    <>
      <span class="figure-main">{bareFigure(cell.mean)}</span>
      {isKnown(cell.low) && isKnown(cell.high) ? <span class="interval">{bounds(cell.low, cell.high, bareFigure)}</span> : null}
    </>
  );
}

/** Tables by the levels of factors, as a study or the experiment itself lays them out. */
export function StudyTables({ tables }: { tables: readonly StudyTable[] }) {
  if (tables.length === 0) return null;
  return (
    <Section id="tables" lede="Means over the trials that count, each with the interval of that mean alone.">
      {tables.map((table, place) => (
        <div key={place}>
          {table.blocks.length === 0 ? <p class="empty">{table.title}: no trial of it counts.</p> : null}
          {table.blocks.map((block, number) => {
            const by = table.columns_title === "" ? table.rows : `${table.rows} \\ ${table.columns_title}`;
            const figures = [...new Set(table.columns.map(({ figure_title }) => figure_title))];
            const of = table.columns_title !== "" && figures.length === 1 ? ` (${figures[0] ?? ""})` : "";
            const caption = `${table.title}${of}${block.title === null ? "" : `: ${block.title}`}`;
            return (
              <DataTable key={number} class="cards result-table" caption={caption} headings={[by, ...table.columns.map(({ title }) => title)]}>
                {block.rows.map((row, place) => (
                  <tr role="row" key={place}>
                    <th scope="row" role="rowheader">
                      {row.title}
                    </th>
                    {row.cells.map((cell, column) => (
                      <Cell key={column} label={table.columns[column]?.title ?? ""} number>
                        <Mean cell={cell} />
                      </Cell>
                    ))}
                  </tr>
                ))}
              </DataTable>
            );
          })}
        </div>
      ))}
    </Section>
  );
}
