import { useState } from "preact/hooks";
import { answers, needed, type Needed } from "../analysis/capacity.ts";
import { count, isKnown, tick, tps, UNKNOWN } from "../format/number.ts";
import type { Curve } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";

function inWords(found: Needed, x: string): string {
  switch (found.kind) {
    case "measured":
      return `${tick(found.x)} ${x}`;
    case "beyond":
      return `${tick(found.x)} ${x}`;
    case "unreachable":
      return "never: it lies above the peak";
  }
}

function remark(found: Needed): string {
  switch (found.kind) {
    case "measured":
      return "within what was measured";
    case "beyond":
      return `extrapolated: ${tick(found.times)} times the most that was measured`;
    case "unreachable":
      return `the fitted peak is ${tps(found.peak_tps)} TPS`;
  }
}

/** How many clients or CPUs a throughput takes, read off the fitted law. */
export function CapacityTable({ curve, experiment }: { curve: Curve; experiment: number }) {
  const [wanted, setWanted] = useState("");
  const own = Number(wanted);
  const rows = answers(curve);
  const asked = wanted !== "" && isKnown(own) && own > 0 ? needed(curve, own) : null;
  if (rows.length === 0) return null;
  const command = `pgdyno capacity ${String(experiment)} --tps ${wanted === "" ? String(Math.round(rows.at(-1)?.tps ?? 0)) : wanted}`;
  return (
    <div class="capacity">
      <h3>What a throughput takes</h3>
      <label class="capacity-ask">
        <span>For</span>
        <input type="number" min="1" inputMode="numeric" value={wanted} placeholder={tps(rows.at(-1)?.tps).replaceAll(",", "")} onInput={(event) => { setWanted(event.currentTarget.value); }} />
        <span>TPS:</span>
        <output>{asked === null ? <span class="quiet">a number of transactions per second</span> : <strong>{inWords(asked, curve.x)}</strong>}</output>
        {asked === null ? null : <span class="quiet">{remark(asked)}</span>}
      </label>
      <DataTable class="result-table" captionHidden caption={`${curve.x} for a throughput`} headings={["TPS", `${curve.x} needed`, ""]}>
        {rows.map(({ tps: target, found }) => (
          <tr role="row" key={target}>
            <th scope="row" role="rowheader">{count(target)}</th>
            <Cell label="Needed">{found === null ? UNKNOWN : inWords(found, curve.x)}</Cell>
            <Cell label="Remark">
              <span class="quiet">{found === null ? "" : remark(found)}</span>
            </Cell>
          </tr>
        ))}
      </DataTable>
      <p class="copy-line quiet">
        Read off the dashed line, without intervals; with them: <code>{command}</code> <CopyButton text={command} what="Capacity command" />
      </p>
    </div>
  );
}
