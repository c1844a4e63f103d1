import { msAt, NAMED_PERCENTILES, percentileCurve } from "../analysis/percentiles.ts";
import { bareMilliseconds } from "../format/span.ts";
import { Cell, DataTable } from "./data-table.tsx";

interface Row {
  name: string;
  title: string;
  distribution: readonly { percentile: number; ms: number }[];
  /** The longest of all, where it is known. */
  percentiles?: { max_ms?: number | null } | null;
}

/** Percentile curves as numbers. */
export function PercentileTable({ rows, of, summary = "The same as a table" }: { rows: readonly Row[]; of: string; summary?: string }) {
  const hasMax = rows.some(({ percentiles }) => percentiles !== undefined);
  const headings = [of, ...NAMED_PERCENTILES.map((percentile) => `p${String(percentile)}`), ...(hasMax ? ["max"] : [])];
  return (
    <details>
      <summary>{summary}</summary>
      <DataTable caption="Response time in milliseconds" headings={headings}>
        {rows.map((row) => {
          const curve = percentileCurve(row);
          return (
            <tr role="row" key={row.name}>
              <th scope="row" role="rowheader">
                {row.title}
              </th>
              {NAMED_PERCENTILES.map((percentile) => (
                <Cell key={percentile} label={`p${String(percentile)}`} number>
                  {bareMilliseconds(msAt(curve, percentile))}
                </Cell>
              ))}
              {hasMax ? <Cell label="max" number>{bareMilliseconds(row.percentiles?.max_ms)}</Cell> : null}
            </tr>
          );
        })}
      </DataTable>
    </details>
  );
}
