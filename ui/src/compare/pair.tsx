import { change, changeBounds, isKnown, roundShare, UNKNOWN } from "../format/number.ts";
import { shown } from "../format/json.ts";
import { valueWithUnit } from "../format/unit.ts";
import type { CompareRow, ComparePair, Comparison, SideFigure } from "../model-serve.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";
import { figureTitle } from "./side.ts";

function Figure({ figure, unit }: { figure: SideFigure | null; unit: string }) {
  if (figure === null) return <>{UNKNOWN}</>;
  const { mean, low, high, n } = figure;
  return (
    <>
      <span class="figure-main">{valueWithUnit(mean, unit)}</span>
      {isKnown(low) && isKnown(high) ? (
        <span class="interval">
          {valueWithUnit(low, unit)} … {valueWithUnit(high, unit)}
        </span>
      ) : null}
      {n > 1 ? <span class="interval">{n} trials</span> : null}
    </>
  );
}

function Against({ row }: { row: CompareRow }) {
  const { effect, ratio } = row;
  if (effect === null) return <>{isKnown(ratio) ? change(ratio) : UNKNOWN}</>;
  return (
    <>
      <span class="figure-main">{change(effect.ratio)}</span>
      <span class="interval">{changeBounds(effect.ratio_low, effect.ratio_high)}</span>
    </>
  );
}

function Verdict({ row, comparison }: { row: CompareRow; comparison: Comparison }) {
  if (row.effect === null) return <span class="quiet">no interval{row.why_no_interval === null ? "" : `: ${row.why_no_interval}`}</span>;
  const { verdict } = row.effect;
  const more = { better: "", worse: "", same: `within ±${roundShare(comparison.smallest_effect)}`, undecided: "the interval is too wide" }[verdict];
  return (
    <>
      <VerdictMark verdict={verdict} />
      <span class="interval">{more}</span>
    </>
  );
}

/** One treatment, experiment or trial held against another. */
export function Pair({ pair, comparison }: { pair: ComparePair; comparison: Comparison }) {
  return (
    <>
      <DataTable class="cards compare-table" caption={`${pair.b} against ${pair.a}`} headings={["Figure", "A", "B", "B against A", "Verdict"]}>
        {pair.rows.map((row) => {
          const { title, unit } = figureTitle(row.metric);
          return (
            <tr role="row" key={row.metric}>
              <th scope="row" role="rowheader">
                {title}
                <span class="interval">{row.larger_is_better ? "more is better" : "less is better"}</span>
              </th>
              <Cell label="A" number><Figure figure={row.a} unit={unit} /></Cell>
              <Cell label="B" number><Figure figure={row.b} unit={unit} /></Cell>
              <Cell label="B against A" number><Against row={row} /></Cell>
              <Cell label="Verdict"><Verdict row={row} comparison={comparison} /></Cell>
            </tr>
          );
        })}
      </DataTable>
      {pair.differs.length === 0 ? null : (
        <DataTable class="cards" caption="What differs besides" headings={["What", "A", "B"]}>
          {pair.differs.map((difference, row) => (
            <tr role="row" key={row}>
              <th scope="row" role="rowheader">{shown(difference.what)}</th>
              <Cell label="A"><code>{shown(difference.a)}</code></Cell>
              <Cell label="B"><code>{shown(difference.b)}</code></Cell>
            </tr>
          ))}
        </DataTable>
      )}
    </>
  );
}
