import { isOverridden, LAYER_TITLE } from "../analysis/settings.ts";
import { UNKNOWN } from "../format/number.ts";
import type { Setting } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";

/** What was asked for, and what the target itself reported in this trial. */
export function TrialSettings({ settings, treatment }: { settings: readonly Setting[]; treatment: string }) {
  if (settings.length === 0) return <p class="quiet">{treatment} sets nothing: the target as it was found.</p>;
  const text = settings.map(({ knob, value }) => `${knob} = ${value}`).join("\n");
  return (
    <>
      <p class="copy-line">
        <CopyButton text={text} what={`Settings of ${treatment}`} />
      </p>
      <DataTable class="cards" captionHidden caption={`Settings of ${treatment}`} headings={["Setting", "Layer", "Asked for", "In effect", "Risk"]}>
        {settings.map((setting, row) => (
          <tr role="row" key={row}>
            <th scope="row" role="rowheader"><code>{setting.knob}</code></th>
            <Cell label="Layer">{LAYER_TITLE[setting.layer]}</Cell>
            <Cell label="Asked for"><code>{setting.value}</code></Cell>
            <Cell label="In effect">
              {setting.effective === null ? UNKNOWN : <code class={isOverridden(setting) ? "attention" : undefined}>{setting.effective}</code>}
            </Cell>
            <Cell label="Risk">{setting.risk === "none" ? <span class="quiet">none</span> : <span class={`risk risk-${setting.risk}`}>{setting.risk}</span>}</Cell>
          </tr>
        ))}
      </DataTable>
    </>
  );
}
