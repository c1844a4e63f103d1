import { plural } from "../format/number.ts";
import type { Restored } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";

const OUTCOME: Record<Restored["outcome"], string> = {
  restored: "restored",
  already: "already as it was",
  left: "left alone",
  failed: "failed",
};

function summary(entries: readonly Restored[]): string {
  if (entries.length === 0) return "Nothing had been changed that had to be restored.";
  const open = entries.filter(({ outcome }) => outcome === "left" || outcome === "failed").length;
  if (open === 0) return `All ${plural(entries.length, "change")} to the server and its host are undone.`;
  return `${plural(open, "change")} of ${String(entries.length)} could not be undone: see the outcome.`;
}

export function RestoredTable({ entries }: { entries: readonly Restored[] }) {
  return (
    <Section id="restored" lede={summary(entries)}>
      {entries.length === 0 ? null : (
        <DataTable class="cards" captionHidden caption="Settings restored" headings={["Knob", "Where", "Was", "Set to", "Outcome"]}>
          {entries.map((entry, row) => (
            <tr role="row" key={row}>
              <th scope="row" role="rowheader">
                <code>{entry.knob}</code>
              </th>
              <Cell label="Where">
                <code>{entry.where}</code>
              </Cell>
              <Cell label="Was">
                <code>{entry.was}</code>
              </Cell>
              <Cell label="Set to">
                <code>{entry.set_to}</code>
              </Cell>
              <Cell label="Outcome">
                {entry.outcome === "left" || entry.outcome === "failed" ? <strong class="attention">{OUTCOME[entry.outcome]}</strong> : OUTCOME[entry.outcome]}
                {entry.detail === null ? null : <span class="interval">{entry.detail}</span>}
              </Cell>
            </tr>
          ))}
        </DataTable>
      )}
    </Section>
  );
}
