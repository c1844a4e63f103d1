import { useMemo } from "preact/hooks";
import { buckets, bucketWidth, type Metric } from "../analysis/series.ts";
import { wordOf, type Stretch } from "../analysis/steady.ts";
import { bounds, tps, UNKNOWN } from "../format/number.ts";
import { bareMilliseconds } from "../format/span.ts";
import type { Treatment, Trial } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";

interface Props {
  treatments: readonly Treatment[];
  trials: readonly Trial[];
  metric: Metric;
  warmup_s: number;
  unsettled: readonly Stretch[];
}

/** The chart over time as numbers. */
export function TimeTable({ treatments, trials, metric, warmup_s, unsettled }: Props) {
  const columns = useMemo(() => {
    const longest = Math.max(0, ...trials.map((trial) => trial.series.t_s.at(-1) ?? 0));
    const width_s = bucketWidth(longest);
    return treatments.map((treatment) => buckets(trials.filter((trial) => trial.treatment === treatment.name), metric, width_s));
  }, [treatments, trials, metric]);
  const longest = columns.toSorted((a, b) => b.length - a.length)[0] ?? [];
  const figure = metric === "tps" ? tps : bareMilliseconds;
  const unit = metric === "tps" ? "TPS" : "ms";
  return (
    <details data-print="folded">
      <summary>The same as a table</summary>
      <DataTable
        caption={`Mean over all trials, and the lowest and highest single second, in ${unit}`}
        headings={["Seconds", ...treatments.map(({ title }) => title)]}
      >
        {longest.map((bucket, row) => (
          <tr role="row" key={bucket.from_s}>
            <th scope="row" role="rowheader">
              {bucket.from_s}–{bucket.to_s}
              {wordOf(bucket.from_s, warmup_s, unsettled) === null ? null : <span class="quiet"> {wordOf(bucket.from_s, warmup_s, unsettled)}</span>}
            </th>
            {treatments.map((treatment, column) => {
              const value = columns[column]?.[row]?.value ?? null;
              return (
                <Cell key={treatment.name} label={treatment.title} number>
                  {value === null ? UNKNOWN : figure(value.mean)}
                  {value === null ? null : <span class="interval">{bounds(value.low, value.high, figure)}</span>}
                </Cell>
              );
            })}
          </tr>
        ))}
      </DataTable>
    </details>
  );
}
