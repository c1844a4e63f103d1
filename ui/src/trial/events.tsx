import { useState } from "preact/hooks";
import { plural } from "../format/number.ts";
import { clock } from "../format/unit.ts";
import type { Mark, MarkKind } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { isDrawn, MARK_TITLE, MARK_VARIABLE } from "./draw-marks.ts";

const KINDS: readonly MarkKind[] = ["checkpoint", "vacuum", "disturbance", "gap"];
const ROWS_MAX = 200;

/** What happened in a trial, by kind; each kind can be taken out of the charts. */
export function MarkChoice({ marks, hidden, onChange }: { marks: readonly Mark[]; hidden: ReadonlySet<MarkKind>; onChange: (hidden: ReadonlySet<MarkKind>) => void }) {
  const drawn = marks.filter(isDrawn);
  const kinds = KINDS.filter((kind) => drawn.some((mark) => mark.kind === kind));
  if (kinds.length === 0) return null;
  return (
    <fieldset class="picker">
      <legend>Marked in all charts</legend>
      {kinds.map((kind) => (
        <label key={kind}>
          <input
            type="checkbox"
            checked={!hidden.has(kind)}
            onChange={() => {
              const next = new Set(hidden);
              if (!next.delete(kind)) next.add(kind);
              onChange(next);
            }}
          />
          <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
            <rect width="12" height="12" fill={`var(${MARK_VARIABLE[kind]})`} opacity="0.25" />
            <rect width="2" height="12" fill={`var(${MARK_VARIABLE[kind]})`} />
          </svg>
          <span>{plural(drawn.filter((mark) => mark.kind === kind).length, MARK_TITLE[kind].toLowerCase())}</span>
        </label>
      ))}
    </fieldset>
  );
}

export function MarkTable({ marks }: { marks: readonly Mark[] }) {
  const drawn = marks.filter(isDrawn);
  if (drawn.length === 0) return <p class="quiet">No checkpoint, vacuum or disturbance was seen in this trial.</p>;
  return (
    <details>
      <summary>{plural(drawn.length, "mark")} as a table</summary>
      <DataTable captionHidden caption="What happened in this trial" headings={["From", "To", "Kind", "What"]}>
        {drawn.slice(0, ROWS_MAX).map((mark, row) => (
          <tr role="row" key={row}>
            <th scope="row" role="rowheader">{clock(mark.at_ms / 1000)}</th>
            <Cell label="To">{mark.until_ms === null ? "not seen" : clock(mark.until_ms / 1000)}</Cell>
            <Cell label="Kind">{MARK_TITLE[mark.kind]}</Cell>
            <Cell label="What">{mark.text}</Cell>
          </tr>
        ))}
      </DataTable>
      {drawn.length > ROWS_MAX ? <p class="quiet">and {plural(drawn.length - ROWS_MAX, "more")}</p> : null}
    </details>
  );
}

/** What was not recorded from the start on, and why. */
export function Missing({ marks }: { marks: readonly Mark[] }) {
  const [open, setOpen] = useState(false);
  const missing = marks.filter((mark) => !isDrawn(mark));
  if (missing.length === 0) return null;
  return (
    <details data-print="folded" onToggle={(event) => { setOpen(event.currentTarget.open); }}>
      <summary>{plural(missing.length, "thing was", "things were")} not recorded, and why</summary>
      {open ? (
        <ul class="plain-list">
          {missing.map(({ text }, row) => (
            <li key={row}>{text}</li>
          ))}
        </ul>
      ) : null}
    </details>
  );
}
