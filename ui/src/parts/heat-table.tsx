import { useMemo, useState } from "preact/hooks";
import { heatStretches } from "../analysis/heat.ts";
import { count } from "../format/number.ts";
import { bareMilliseconds } from "../format/span.ts";
import { clock } from "../format/unit.ts";
import type { Heat } from "../model.ts";
import { Cell, DataTable } from "./data-table.tsx";

/** A heat map as numbers: in each stretch how many there were and where they lay. */
export function HeatTable({ heat, title, ylabel }: { heat: Heat; title: string; ylabel: string }) {
  const [open, setOpen] = useState(false);
  const rows = useMemo(() => (open ? heatStretches(heat) : []), [heat, open]);
  return (
    <details data-print="folded" onToggle={(event) => { setOpen(event.currentTarget.open); }}>
      <summary>The same as a table</summary>
      {open ? (
        <DataTable caption={`${title}: ${ylabel}, read off inside the classes that are drawn`} headings={["Since the load began", "Counted", "half below", "95 % below", "99 % below", "all below"]}>
          {rows.map(({ from_s, to_s, amount, p50, p95, p99, most }) => (
            <tr role="row" key={from_s}>
              <th scope="row" role="rowheader">{clock(from_s)} – {clock(to_s)}</th>
              <Cell label="Counted" number>{count(amount)}</Cell>
              <Cell label="half below" number>{bareMilliseconds(p50)}</Cell>
              <Cell label="95 % below" number>{bareMilliseconds(p95)}</Cell>
              <Cell label="99 % below" number>{bareMilliseconds(p99)}</Cell>
              <Cell label="all below" number>{bareMilliseconds(most)}</Cell>
            </tr>
          ))}
        </DataTable>
      ) : null}
    </details>
  );
}
