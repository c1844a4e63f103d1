import { byLayer, isOverridden, LAYER_TITLE, settingsMatrix, type MatrixRow } from "../analysis/settings.ts";
import type { Report, Setting } from "../model.ts";
import { DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";

function Value({ setting }: { setting: Setting | null }) {
  if (setting === null) return <span class="quiet" aria-label="left alone">·</span>;
  return (
    <>
      <code>{setting.value}</code>
      {setting.changed ? <span class="changed-word">changed</span> : null}
      {isOverridden(setting) ? (
        <span class="effective">
          effective <code>{setting.effective}</code>
        </span>
      ) : null}
      {setting.risk === "none" ? null : <span class={`risk risk-${setting.risk}`}>{setting.risk}</span>}
    </>
  );
}

function KnobRow({ row, names }: { row: MatrixRow; names: readonly string[] }) {
  return (
    <tr role="row">
      <th scope="row" role="rowheader">
        <code>{row.knob}</code>
      </th>
      {row.cells.map((setting, column) => (
        <td role="cell" key={names[column]} class={setting?.changed === true ? "changed" : undefined}>
          <Value setting={setting} />
        </td>
      ))}
    </tr>
  );
}

export function Settings({ report }: { report: Report }) {
  const { treatments } = report;
  const rows = settingsMatrix(treatments);
  if (rows.length === 0) {
    return (
      <Section id="settings">
        <p class="empty">No treatment sets any knob.</p>
      </Section>
    );
  }
  const names = treatments.map((treatment) => treatment.name);
  const risky = rows.filter((row) => row.risk === "durability").map((row) => row.knob);
  return (
    <Section
      id="settings"
      lede={
        <>
          What each treatment sets; a dot means that it leaves the knob alone. “Effective” is what the target itself reported, where that differs.
          {risky.length === 0 ? null : ` “Durability” marks what can lose committed transactions in a crash.`}
        </>
      }
    >
      <DataTable class="matrix" captionHidden caption="Settings of each treatment" headings={["Knob", ...treatments.map(({ title }) => title)]}>
        {byLayer(rows).flatMap(({ layer, rows: inLayer }) => [
          <tr role="row" key={layer} class="group">
            <th scope="rowgroup" role="rowheader" colSpan={treatments.length + 1}>
              {LAYER_TITLE[layer]}
            </th>
          </tr>,
          ...inLayer.map((row) => <KnobRow key={`${layer} ${row.knob}`} row={row} names={names} />),
        ])}
      </DataTable>
    </Section>
  );
}
