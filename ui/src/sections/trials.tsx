import { doubtfulTrials, unfinishedTrials, excludedTrials } from "../analysis/badges.ts";
import { count, isKnown, plural, tick, tps, UNKNOWN } from "../format/number.ts";
import { bareMilliseconds } from "../format/span.ts";
import { clockTime, isoTime } from "../format/time.ts";
import { useSource } from "../data/context.ts";
import type { Report, Trial } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";
import { firstSides } from "../compare/spec.ts";
import { addressOf } from "../router.ts";

const HEADINGS = ["Trial", "Treatment", "Started", "Status", "TPS", "p95, ms", "Settled", "Committed, client / server", "Remarks"];

function settledWord(settled: boolean | null): string {
  if (settled === null) return "not judged";
  return settled ? "yes" : "no";
}

function remarks(trial: Trial): string[] {
  const errors = trial.errors.map(({ sqlstate, count: amount }) => `SQLSTATE ${sqlstate}: ${plural(amount, "transaction")}`);
  const failed = isKnown(trial.failed) && trial.failed > 0 && errors.length === 0 ? [`${plural(trial.failed, "transaction")} failed`] : [];
  const unsettled = isKnown(trial.unsettled_s) && trial.unsettled_s > 0 ? [`the first ${tick(trial.unsettled_s)} s still belonged to the warm-up, and are in no rate and no response time that was measured here`] : [];
  const variant = isKnownText(trial.server_variant) ? [`on ${trial.server_variant}`] : [];
  const why = trial.excluded === true ? ["excluded: its value has no ratio to others"] : [];
  return [...why, ...(trial.reason === null ? [] : [trial.reason]), ...variant, ...unsettled, ...errors, ...failed, ...trial.disturbances];
}

function isKnownText(text: string | null | undefined): text is string {
  return text !== null && text !== undefined;
}

function CrossCheck({ check }: { check: Trial["cross_check"] }) {
  if (check === null) return <>{UNKNOWN}</>;
  return (
    <>
      {count(check.client)} / {count(check.server)}
      <span class={check.agrees ? "interval" : "interval attention"}>
        {check.agrees ? "agree" : `differ by more than the ${count(check.allowed_difference)} allowed`}
      </span>
    </>
  );
}

function Row({ report, trial, titles }: { report: Report; trial: Trial; titles: ReadonlyMap<string, string> }) {
  const { mode, hasTrial } = useSource();
  const notes = remarks(trial);
  return (
    <tr role="row" class={`trial-${trial.status}`}>
      <th scope="row" role="rowheader">
        {hasTrial(trial.id) ? (
          <a href={addressOf.trial(mode, report.experiment.id, trial.id)}>
            block {trial.block}, no. {trial.position}
          </a>
        ) : (
          `block ${String(trial.block)}, no. ${String(trial.position)}`
        )}
      </th>
      <Cell label="Treatment">{titles.get(trial.treatment) ?? trial.treatment}</Cell>
      <Cell label="Started">
        <time dateTime={isoTime(trial.started_unix_ms)}>{clockTime(trial.started_unix_ms)}</time>
      </Cell>
      <Cell label="Status">{trial.status === "finished" ? (trial.excluded === true ? "excluded" : "finished") : <strong class="attention">{trial.status}</strong>}</Cell>
      <Cell label="TPS" number>
        {tps(trial.tps)}
      </Cell>
      <Cell label="p95, ms" number>
        {bareMilliseconds(trial.percentiles?.p95_ms)}
      </Cell>
      <Cell label="Settled">{trial.settled === false ? <strong class="attention">no</strong> : settledWord(trial.settled)}</Cell>
      <Cell label="Committed, client / server" number>
        <CrossCheck check={trial.cross_check} />
      </Cell>
      <Cell label="Remarks">
        {notes.length === 0 ? (
          <span class="quiet">none</span>
        ) : (
          <ul class="remarks">
            {notes.map((note, place) => (
              <li key={place}>{note}</li>
            ))}
          </ul>
        )}
      </Cell>
    </tr>
  );
}

function TrialTable({ report, caption, trials, titles }: { report: Report; caption: string; trials: readonly Trial[]; titles: ReadonlyMap<string, string> }) {
  return (
    <DataTable class="cards trial-table" caption={caption} headings={HEADINGS}>
      {trials.map((trial) => (
        <Row key={trial.id} report={report} trial={trial} titles={titles} />
      ))}
    </DataTable>
  );
}

export function Trials({ report }: { report: Report }) {
  const titles = new Map(report.treatments.map(({ name, title }) => [name, title]));
  const unfinished = unfinishedTrials(report);
  const excluded = excludedTrials(report);
  const doubtful = doubtfulTrials(report);
  const { hasTrial } = useSource();
  const canBeSeen = report.trials.some(({ id }) => hasTrial(id));
  const lede =
    report.trials.length === 0
      ? "No trial was run."
      : `${plural(report.trials.length, "trial")} in an order drawn inside each block. ${
          unfinished.length === 0 ? (excluded.length === 0 ? "None was excluded." : "None failed.") : `Excluded: ${count(unfinished.length)}, in no figure of this report.`
        }${excluded.length === 0 ? "" : ` Finished but excluded: ${count(excluded.length)}, without a value that has a ratio to others.`}${canBeSeen ? " Each opens with everything that was recorded beside it." : ""}`;
  return (
    <Section id="trials" lede={lede}>
      {unfinished.length === 0 ? null : <TrialTable report={report} caption="Excluded" trials={unfinished} titles={titles} />}
      {excluded.length === 0 ? null : <TrialTable report={report} caption="Excluded from every mean and effect" trials={excluded} titles={titles} />}
      {doubtful.length === 0 ? null : <TrialTable report={report} caption="Counted, but disturbed, not settled or not in agreement" trials={doubtful} titles={titles} />}
      {report.trials.length < 2 ? null : (
        <p class="copy-line">
          <a href={addressOf.compare(firstSides(report))}>Compare treatments or trials side by side</a>
        </p>
      )}
      {report.trials.length === 0 ? null : (
        <details>
          <summary>All {plural(report.trials.length, "trial")} in the order of execution</summary>
          <TrialTable report={report} caption="All trials" trials={report.trials} titles={titles} />
        </details>
      )}
    </Section>
  );
}
