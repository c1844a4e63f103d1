import { useState } from "preact/hooks";
import { count, fixed, isKnown, UNKNOWN, type Maybe } from "../format/number.ts";
import { valueWithUnit } from "../format/unit.ts";
import type { Statement } from "../model.ts";
import { Cell } from "../parts/data-table.tsx";

type Figure = Exclude<keyof Statement, "query" | "query_id">;

interface Column {
  figure: Figure;
  title: string;
  shown: (value: Maybe) => string;
}

const sessions = (value: Maybe) => (isKnown(value) ? fixed(value, value >= 10 ? 1 : 2) : UNKNOWN);

const COLUMNS: readonly Column[] = [
  { figure: "share_ratio", title: "Share of busy sessions", shown: (value) => valueWithUnit(value, "ratio") },
  { figure: "mean_sessions", title: "Sessions, mean", shown: sessions },
  { figure: "max_sessions", title: "Sessions, most", shown: sessions },
  { figure: "calls", title: "Calls", shown: count },
  { figure: "total_ms", title: "Total", shown: (value) => valueWithUnit(value, "ms") },
  { figure: "mean_ms", title: "Mean", shown: (value) => valueWithUnit(value, "ms") },
  { figure: "rows", title: "Rows", shown: count },
  { figure: "shared_hit", title: "Blocks hit", shown: count },
  { figure: "shared_read", title: "Blocks read", shown: count },
  { figure: "wal_bytes", title: "WAL", shown: (value) => valueWithUnit(value, "bytes") },
];

/** What is not known is last either way. */
export function sorted(statements: readonly Statement[], by: Figure, rising: boolean): Statement[] {
  const sign = rising ? 1 : -1;
  return statements.toSorted((a, b) => {
    const [of_a, of_b] = [a[by], b[by]];
    if (!isKnown(of_a) || !isKnown(of_b)) return Number(isKnown(of_b)) - Number(isKnown(of_a));
    return sign * (of_a - of_b);
  });
}

/** Statements with what is known of each; a heading sorts by its column. */
export function Statements({ statements }: { statements: readonly Statement[] }) {
  const columns = COLUMNS.filter(({ figure }) => statements.some((statement) => isKnown(statement[figure])));
  const [by, setBy] = useState<Figure>(columns[0]?.figure ?? "mean_sessions");
  const [rising, setRising] = useState(false);
  if (statements.length === 0) {
    return <p class="empty">No statements were recorded: a server with shared_preload_libraries = "pg_stat_statements" reports what was called and how often; one with compute_query_id = on reports the current statements of sessions.</p>;
  }
  const choose = (figure: Figure) => {
    setRising(figure === by ? !rising : false);
    setBy(figure);
  };
  return (
    <div class="table-frame cards statement-table" role="region" aria-label="Statements" tabIndex={0}>
      <table role="table">
        <caption class="visually-hidden">Statements; the headings sort</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader">Statement</th>
            {columns.map(({ figure, title }) => (
              <th key={figure} scope="col" role="columnheader" class="number" aria-sort={figure === by ? (rising ? "ascending" : "descending") : "none"}>
                <button type="button" class="sort" onClick={() => { choose(figure); }}>
                  {title} <span aria-hidden="true">{figure === by ? (rising ? "▲" : "▼") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {sorted(statements, by, rising).map((statement, row) => (
            <tr role="row" key={row}>
              <th scope="row" role="rowheader" class="statement">
                {statement.query === null || statement.query === undefined ? <span>query id {statement.query_id ?? UNKNOWN}</span> : <code>{statement.query}</code>}
              </th>
              {columns.map(({ figure, title, shown }) => (
                <Cell key={figure} label={title} number>
                  {shown(statement[figure])}
                </Cell>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
