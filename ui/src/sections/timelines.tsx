import { TimelineChart } from "../charts/timeline-chart.tsx";
import { change, changeBounds, count, tick, tps, UNKNOWN } from "../format/number.ts";
import type { Report, Shift } from "../model.ts";
import { ClaimList } from "../parts/claim-list.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Published, wholeChart } from "../parts/published.tsx";
import { Section } from "../parts/section.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";

function whyNone({ standstills, trend }: Shift): string {
  if (trend !== null) return `by the trend before it alone ${change(1 + trend)}`;
  return standstills > 0 ? `at a standstill in ${count(standstills)} ${standstills === 1 ? "trial" : "trials"}` : "one block says nothing of chance";
}

function Row({ shift }: { shift: Shift }) {
  const { effect } = shift;
  return (
    <tr role="row">
      <th scope="row" role="rowheader">
        {shift.title}
      </th>
      <Cell label="After, s" number>
        {tick(shift.t_s)}
      </Cell>
      <Cell label="Took, s" number>
        {shift.took_s.toFixed(1)}
      </Cell>
      <Cell label="Before, TPS" number>
        {tps(shift.before_tps)}
      </Cell>
      <Cell label="After it, TPS" number>
        {tps(shift.after_tps)}
      </Cell>
      <Cell label="Change" number>
        <span class="figure-main">{effect === null ? UNKNOWN : change(effect.ratio)}</span>
        {effect === null ? null : <span class="interval">{changeBounds(effect.ratio_low, effect.ratio_high)}</span>}
      </Cell>
      <Cell label="Verdict">
        {effect === null || shift.trend !== null ? <span class="quiet">{whyNone(shift)}</span> : <VerdictMark verdict={effect.verdict} />}
      </Cell>
    </tr>
  );
}

/** What was done to the server while loads ran, and what throughput did. */
export function Timelines({ report }: { report: Report }) {
  const { timelines = [], claims = [] } = report;
  if (timelines.length === 0) return null;
  const chart = wholeChart(report, "timeline");
  const titles = new Map(report.treatments.map(({ name, title }) => [name, title]));
  return (
    <Section
      id="timelines"
      lede="Mean throughput of each second over the trials. A bar marks an event and how long it took, the dashed lines are the levels on both sides. Each trial is compared with itself, after against before; where throughput was moving before an event already, that trend is shown in place of a verdict."
    >
      {chart === undefined ? null : <h3>{chart.title}</h3>}
      <Published report={report} text={chart?.published ?? null} />
      {timelines.map((timeline) => {
        const title = titles.get(timeline.treatment) ?? timeline.treatment;
        return (
          <div class="study-chart" key={timeline.treatment}>
            {timelines.length === 1 && chart !== undefined ? null : <h3>{title}</h3>}
            <figure>
              <TimelineChart timeline={timeline} title={title} />
            </figure>
            <DataTable class="cards" caption={`${title}: ${count(timeline.trials)} ${timeline.trials === 1 ? "trial" : "trials"}`} headings={["Event", "After, s", "Took, s", "Before, TPS", "After it, TPS", "Change", "Verdict"]}>
              {timeline.shifts.map((shift) => (
                <Row key={shift.title} shift={shift} />
              ))}
            </DataTable>
          </div>
        );
      })}
      <ClaimList claims={claims.filter(({ event }, place) => event !== null || (chart?.claims.includes(place) ?? false))} />
    </Section>
  );
}
