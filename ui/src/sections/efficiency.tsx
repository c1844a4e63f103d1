import { useState } from "preact/hooks";
import { costs, COSTS_FIRST, type Cost } from "../analysis/efficiency.ts";
import { change, isKnown, UNKNOWN } from "../format/number.ts";
import { valueWithUnit } from "../format/unit.ts";
import type { Report, Treatment } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";
import { Unmeasured } from "./unmeasured.tsx";

const BAR_WIDTH = 120;

/** The value as a length: the widest of the column is the longest bar. */
function Bar({ value, most, index }: { value: number; most: number; index: number }) {
  const width = most > 0 ? (Math.max(0, value) / most) * BAR_WIDTH : 0;
  return (
    <svg class="cell-bar" viewBox={`0 0 ${String(BAR_WIDTH)} 6`} preserveAspectRatio="none" aria-hidden="true">
      <rect width={BAR_WIDTH} height="6" fill="var(--shade)" />
      <rect width={width} height="6" fill={index === 0 ? "var(--ink-3)" : "var(--t1)"} />
    </svg>
  );
}

function Value({ report, treatment, cost, index }: { report: Report; treatment: Treatment; cost: Cost; index: number }) {
  const value = cost.of(treatment);
  if (!isKnown(value)) return <span class="quiet">{UNKNOWN}</span>;
  // As its own sentence says, and the report as Markdown: of cumulative steps the one before.
  const named = report.treatments.find(({ name }) => name === treatment.against);
  const before = named === undefined ? null : cost.of(named);
  return (
    <>
      <span class="figure-main">{valueWithUnit(value, cost.unit)}</span>
      <Bar value={value} most={cost.most} index={index} />
      <span class="interval">{isKnown(before) && before > 0 ? change(value / before) : ""}</span>
    </>
  );
}

/** What a transaction costs: less is better everywhere. */
export function Efficiency({ report }: { report: Report }) {
  const tested = report.treatments.filter(({ status }) => status === "tested");
  const all = costs(tested);
  const [whole, setWhole] = useState(false);
  const known = whole ? all : all.slice(0, COSTS_FIRST);
  const rest = all.slice(COSTS_FIRST);
  if (known.length === 0) {
    return (
      <Section id="efficiency">
        <p class="empty">What a transaction cost was not recorded.</p>
        <Unmeasured report={report} />
      </Section>
    );
  }
  return (
    <Section id="efficiency" lede="What one committed transaction cost, as means over the trials that count. Shorter bars are better; changes are relative to the treatment that each is compared with, without an interval.">
      <DataTable class="cards efficiency-table" captionHidden caption="Costs per transaction" headings={["Treatment", ...known.map(({ title }) => title)]}>
        {tested.map((treatment) => (
          <tr role="row" key={treatment.name}>
            <th scope="row" role="rowheader">{treatment.title}</th>
            {known.map((cost) => (
              <Cell key={cost.name} label={cost.title} number>
                <Value report={report} treatment={treatment} cost={cost} index={report.treatments.indexOf(treatment)} />
              </Cell>
            ))}
          </tr>
        ))}
      </DataTable>
      {rest.length === 0 ? null : (
        <p class="side-buttons">
          {whole ? null : <span class="quiet">Measured too: {rest.map(({ title }) => title).join("; ")}. </span>}
          <button type="button" class="button" aria-expanded={whole} onClick={() => { setWhole(!whole); }}>
            {whole ? "Show fewer columns" : `Show all ${String(all.length)} columns`}
          </button>
        </p>
      )}
      <Unmeasured report={report} />
    </Section>
  );
}
