import { change, changeBounds, isKnown, roundShare, UNKNOWN } from "../format/number.ts";
import { valueWithUnit } from "../format/unit.ts";
import type { CompareRow, Comparison, SideFigure } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";
import { LETTERS } from "../router.ts";
import type { Merged } from "./merged.ts";
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

/** How much it is off the first, with what may be said of it. */
function Against({ row, comparison }: { row: CompareRow; comparison: Comparison | null }) {
  const { effect, ratio, why_no_interval } = row;
  if (effect === null) {
    if (!isKnown(ratio)) return <span class="interval">{why_no_interval ?? "nothing to hold it against"}</span>;
    return (
      <>
        <span class="against">{change(ratio)}</span>
        <span class="interval">no interval{why_no_interval === null ? "" : `: ${why_no_interval}`}</span>
      </>
    );
  }
  const more = effect.verdict === "same" && comparison !== null ? ` within ±${roundShare(comparison.smallest_effect)}` : "";
  return (
    <>
      <span class="against">{change(effect.ratio)}</span>
      <span class="interval">{changeBounds(effect.ratio_low, effect.ratio_high)}</span>
      <span class="against-verdict">
        <VerdictMark verdict={effect.verdict} />
        {more === "" ? null : <span class="interval">{more}</span>}
      </span>
    </>
  );
}

interface Props {
  table: Merged;
  /** Of the sides from the second on. */
  comparisons: readonly (Comparison | null)[];
  /** A report file knows ratios and no intervals. */
  hasVerdicts: boolean;
}

function letterOf(place: number): string {
  return LETTERS[place] ?? String(place + 1);
}

/** Figures of all sides, each with its difference against the first. */
export function FigureTable({ table, comparisons, hasVerdicts }: Props) {
  const headings = ["Figure", `A: ${table.first}`, ...table.columns.map(({ place, title }) => `${letterOf(place)}: ${title}`)];
  const remarks = table.columns.filter(({ why_no_verdict }) => why_no_verdict !== null);
  return (
    <>
      <DataTable class="cards compare-table" caption={`Figures, and the change against A: ${table.first}`} headings={headings}>
        {table.rows.map((row) => {
          const { title, unit } = figureTitle(row.metric);
          return (
            <tr role="row" key={row.metric}>
              <th scope="row" role="rowheader">
                {title}
                <span class="interval">{row.larger_is_better ? "more is better" : "less is better"}</span>
              </th>
              <Cell label="A" number><Figure figure={row.first} unit={unit} /></Cell>
              {table.columns.map(({ place }, column) => {
                const other = row.others[column] ?? null;
                const comparison = hasVerdicts ? (comparisons[place - 1] ?? null) : null;
                return (
                  <Cell key={place} label={letterOf(place)} number>
                    <Figure figure={other?.b ?? null} unit={unit} />
                    {other === null ? null : <Against row={other} comparison={comparison} />}
                  </Cell>
                );
              })}
            </tr>
          );
        })}
      </DataTable>
      {remarks.map(({ place, why_no_verdict }) => (
        <p key={place} class="quiet">{letterOf(place)} has no verdict: {why_no_verdict}.</p>
      ))}
    </>
  );
}

/** What else is not alike, as the store has it on record. */
export function DiffersTable({ table }: { table: Merged }) {
  if (table.differs.length === 0) return null;
  return (
    <DataTable class="cards compare-table" caption="What differs besides" headings={["What", "A", ...table.columns.map(({ place }) => letterOf(place))]}>
      {table.differs.map(({ what, first, others }) => (
        <tr role="row" key={what}>
          <th scope="row" role="rowheader">{what}</th>
          <Cell label="A"><code>{first}</code></Cell>
          {table.columns.map(({ place }, column) => (
            <Cell key={place} label={letterOf(place)}>{others[column] === first ? <span class="quiet">as A</span> : <code>{others[column] ?? UNKNOWN}</code>}</Cell>
          ))}
        </tr>
      ))}
    </DataTable>
  );
}
