import type { ComponentChildren } from "preact";
import { bareFigure, capitalised, compares, meanMetric, metricOf } from "../analysis/metric.ts";
import { heldAgainst } from "../analysis/throughput.ts";
import { effectWithInterval, VERDICT_WORD, verdictCounts } from "../analysis/verdicts.ts";
import { change, count, isKnown, plural, share, UNKNOWN } from "../format/number.ts";
import { together } from "../format/span.ts";
import type { Report, Searched, Treatment } from "../model.ts";
import { Section } from "../parts/section.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";

interface Props {
  report: Report;
  headline: Treatment | null;
}

function Figure({ name, value, note, wide = false }: { name: string; value: ComponentChildren; note: ComponentChildren; wide?: boolean }) {
  return (
    <div class={wide ? "figure figure-wide" : "figure"}>
      <dt>{name}</dt>
      <dd class="figure-value">{value}</dd>
      <dd class="figure-note">{note}</dd>
    </div>
  );
}

function Unit({ name }: { name: string }) {
  return <span class="unit">{name}</span>;
}

function BeforeAfter({ before, after, unit }: { before: string; after: string | null; unit: string }) {
  if (after === null && before === UNKNOWN) return <>{UNKNOWN}</>;
  if (after === null) return (
      <>
        {before} <Unit name={unit} />
      </>
    );
  return (
    <>
      {before} <span class="arrow" aria-label="to">→</span> {after} <Unit name={unit} />
    </>
  );
}

/** Levels along a curve have no before and after: the best of them is shown alone. */
function Best({ report, headline }: { report: Report; headline: Treatment }) {
  const metric = metricOf(report);
  const value = (
    <>
      {bareFigure(meanMetric(report, headline))} <Unit name={metric.unit} />
    </>
  );
  return <Figure wide name={capitalised(metric.title)} value={value} note={`with “${headline.title}”, the best of ${count(report.treatments.length)} treatments`} />;
}

/** The best of a search is expected, not found: it is to be confirmed. */
function Expected({ report, search }: { report: Report; search: Searched }) {
  const metric = metricOf(report);
  const { reference, best } = search;
  const same = reference?.treatment === best?.treatment;
  const value = <BeforeAfter before={bareFigure(reference?.figure)} after={same || best === null ? null : bareFigure(best.figure)} unit={metric.unit} />;
  const title = report.treatments.find(({ name }) => name === best?.treatment)?.title ?? "";
  const ratio = isKnown(reference?.figure) && isKnown(best?.figure) && reference.figure > 0 ? `: ${change(best.figure / reference.figure)}` : "";
  const note = best === null ? "no trial finished" : same ? "nothing better was found" : `with “${title}”${ratio} is expected after ${plural(search.path.length, "trial")}, and to be confirmed`;
  return <Figure wide name={capitalised(metric.title)} value={value} note={note} />;
}

function Deciding({ report, headline }: Props) {
  if (report.search !== undefined && report.search !== null) return <Expected report={report} search={report.search} />;
  if (headline !== null && !compares(report)) return <Best report={report} headline={headline} />;
  const metric = metricOf(report);
  const reference = heldAgainst(report, headline);
  const before = bareFigure(reference === null ? null : meanMetric(report, reference));
  const after = headline === null ? null : bareFigure(meanMetric(report, headline));
  const total = headline?.total ?? null;
  const effect = total === null ? "no interval, which takes two finished blocks at least" : effectWithInterval(total);
  const note = headline === null ? "No treatment was measured against the reference" : `${reference?.title ?? "reference"} to “${headline.title}”: ${effect}`;
  return <Figure wide name={capitalised(metric.title)} value={<BeforeAfter before={before} after={after} unit={metric.unit} />} note={note} />;
}

function P95({ report, headline }: Props) {
  if (!compares(report)) {
    const { figures: [alone = UNKNOWN], unit } = together([headline?.percentiles?.p95_ms]);
    const value = <BeforeAfter before={alone} after={null} unit={unit} />;
    return <Figure name="Response time, p95" value={value} note="with the same treatment" />;
  }
  const before = heldAgainst(report, headline)?.percentiles?.p95_ms;
  const after = headline?.percentiles?.p95_ms;
  const { figures: [first = UNKNOWN, second = UNKNOWN], unit } = together([before, after]);
  const value = <BeforeAfter before={first} after={isKnown(after) ? second : null} unit={unit} />;
  const effect = report.experiment.design === "cumulative" ? null : (headline?.step_p95 ?? null);
  const between = effect === null ? (isKnown(before) && isKnown(after) && before > 0 ? `${change(after / before)}, without an interval` : null) : effectWithInterval(effect);
  const note = between === null ? "Not measured on both sides" : `${between}, same two treatments`;
  return <Figure name="Response time, p95" value={value} note={note} />;
}

function Verdicts({ report }: { report: Report }) {
  const counts = verdictCounts(report.treatments.map((treatment) => treatment.step));
  const what = report.experiment.design === "cumulative" ? "steps" : "treatments";
  if (!compares(report)) return <Figure name="Verdicts" value="none" note="no comparisons here" />;
  if (counts.length === 0) return <Figure name="Verdicts" value="none" note="which take two finished blocks at least" />;
  const value = (
    <ul class="verdict-counts">
      {counts.map(({ verdict, steps }) => (
        <li key={verdict}>
          <VerdictMark verdict={verdict} word={`${String(steps)} ${VERDICT_WORD[verdict]}`} />
        </li>
      ))}
    </ul>
  );
  return <Figure name="Verdicts" value={value} note={`on ${what}, by ${metricOf(report).title}`} />;
}

export function KeyFigures({ report, headline }: Props) {
  const { trials, decision } = report;
  const finished = trials.filter((trial) => trial.status === "finished").length;
  const unusable = ["failed", "invalid"]
    .map((status) => ({ status, amount: trials.filter((trial) => trial.status === status).length }))
    .filter(({ amount }) => amount > 0)
    .map(({ status, amount }) => `${count(amount)} ${status}`);
  return (
    <Section id="figures">
      <dl class="figures">
        <Deciding report={report} headline={headline} />
        {report.experiment.design === "search" ? null : report.treatments.some(({ percentiles }) => percentiles !== null) || metricOf(report).isTps ? <P95 report={report} headline={headline} /> : null}
        {report.experiment.design === "search" ? null : <Verdicts report={report} />}
        <Figure
          name="Noise floor"
          value={share(decision.noise_floor)}
          note={isKnown(decision.noise_floor) ? "spread between trials of the same treatment" : "takes two trials of the same treatment"}
        />
        <Figure
          name="Trials finished"
          value={`${count(finished)} of ${count(trials.length)}`}
          note={unusable.length === 0 ? "none failed" : unusable.join(", ")}
        />
      </dl>
    </Section>
  );
}
