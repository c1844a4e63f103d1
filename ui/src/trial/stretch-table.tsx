import { useState } from "preact/hooks";
import { clock, valueWithUnit } from "../format/unit.ts";
import { UNKNOWN } from "../format/number.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { stretchOf } from "./align.ts";
import type { Range } from "./axis.ts";
import type { Panel } from "./panels.ts";

/** What each line drawn did in the stretch in view: the charts for readers who do not see them. */
export function StretchTable({ panels, range }: { panels: readonly Panel[]; range: Range | null }) {
  const [open, setOpen] = useState(false);
  const when = range === null ? "the whole trial" : `${clock(range[0])} to ${clock(range[1])}`;
  return (
    <details data-print="folded" onToggle={(event) => { setOpen(event.currentTarget.open); }}>
      <summary>The same as a table: least, mean and most over {when}</summary>
      {open ? (
        <DataTable captionHidden caption={`Series over ${when}`} headings={["Series", "Least", "Mean", "Most"]}>
          {panels.flatMap((panel) =>
            panel.lines.map((line, place) => {
              const found = stretchOf(line, range);
              const value = (each: number | undefined) => (each === undefined ? UNKNOWN : valueWithUnit(each, panel.unit));
              return (
                <tr role="row" key={`${panel.id}/${String(place)}`}>
                  <th scope="row" role="rowheader">
                    {panel.title === line.title ? panel.title : `${panel.title}: ${line.title}`}
                  </th>
                  <Cell label="Least" number>{value(found?.least)}</Cell>
                  <Cell label="Mean" number>{value(found?.mean)}</Cell>
                  <Cell label="Most" number>{value(found?.most)}</Cell>
                </tr>
              );
            }),
          )}
        </DataTable>
      ) : null}
    </details>
  );
}
