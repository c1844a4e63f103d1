import { intervalAt, msAt, NAMED_PERCENTILES, type PercentilePoint, percentileCurve } from "../analysis/percentiles.ts";
import { bareMilliseconds } from "../format/span.ts";
import { Cell, DataTable } from "./data-table.tsx";

interface Row {
  name: string;
  title: string;
  distribution: Parameters<typeof percentileCurve>[0]["distribution"];
  /** The longest of all, where it is known. */
  percentiles?: { max_ms?: number | null } | null;
}

/** A percentile with its interval. */
export function PercentileFigure({ curve, percentile, ms }: { curve: readonly PercentilePoint[]; percentile: number; ms: number | null | undefined }) {
  const interval = intervalAt(curve, percentile, bareMilliseconds);
  return (
    <>
      <span class="figure-main">{bareMilliseconds(ms)}</span>
      {interval === null ? null : <span class="interval">{interval}</span>}
    </>
  );
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
                  <PercentileFigure curve={curve} percentile={percentile} ms={msAt(curve, percentile)} />
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
