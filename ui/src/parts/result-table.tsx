import { bareFigure } from "../analysis/metric.ts";
import { bounds, isKnown, UNKNOWN } from "../format/number.ts";
import type { StudyTable, TableBlock, TableCell } from "../model.ts";
import { Cell, DataTable } from "./data-table.tsx";

function Mean({ cell }: { cell: TableCell | null }) {
  if (cell === null) return <>{UNKNOWN}</>;
  return (
    <>
      <span class="figure-main">{bareFigure(cell.mean)}</span>
      {isKnown(cell.low) && isKnown(cell.high) ? <span class="interval">{bounds(cell.low, cell.high, bareFigure)}</span> : null}
    </>
  );
}

/** One block of a table of results. */
export function ResultTable({ table, block, caption }: { table: StudyTable; block: TableBlock; caption: string }) {
  const by = table.columns_title === "" ? table.rows : `${table.rows} \\ ${table.columns_title}`;
  return (
    <DataTable class="cards result-table" caption={caption} headings={[by, ...table.columns.map(({ title }) => title)]}>
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
}
