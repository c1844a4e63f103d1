import { useMemo } from "preact/hooks";
import { HeatChart } from "../charts/heat-chart.tsx";
import { PercentileChart } from "../charts/percentile-chart.tsx";
import { useSource } from "../data/context.ts";
import { count, isKnown, plural, withUnit, tps } from "../format/number.ts";
import { milliseconds } from "../format/span.ts";
import { dateTime, isoTime } from "../format/time.ts";
import type { Report, Statement, Trial, TrialDocument } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { PercentileTable } from "../parts/percentile-table.tsx";
import { addressOf } from "../router.ts";
import { TrialOverTime } from "./over-time.tsx";
import { TrialSettings } from "./settings.tsx";
import { Statements } from "./statements.tsx";
import { Part } from "./part.tsx";

function Neighbours({ report, trial }: { report: Report; trial: Trial }) {
  const { mode, hasTrial } = useSource();
  const place = report.trials.findIndex(({ id }) => id === trial.id);
  const [before, after] = [report.trials[place - 1], report.trials[place + 1]];
  const link = (other: Trial | undefined, word: string) =>
    other === undefined || !hasTrial(other.id) ? null : (
      <a href={addressOf.trial(mode, report.experiment.id, other.id)}>
        {word}: block {other.block}, {other.treatment}
      </a>
    );
  return (
    <nav class="neighbours" aria-label="Other trials">
      {link(before, "← Before")}
      {link(after, "After →")}
    </nav>
  );
}

/** The trial in one sentence: what it reached, and whether it counts. */
/** The outcome of the transactions that were due; what nobody counted is not there, or said to be
 * unknown. */
function transactions(trial: Trial): string {
  const { committed, failed, skipped, late, latency_limit_ms: limit, retries, rolled_back: rolledBack } = trial;
  const some = (value: number | null | undefined, text: string) => (isKnown(value) && value > 0 ? [`${count(value)} ${text}`] : []);
  return [
    `${count(committed)} committed`,
    ...(isKnown(late) && isKnown(limit) ? [`${count(late)} of them later than ${milliseconds(limit)}`] : []),
    ...some(rolledBack, "of them rolled back as they were meant to be"),
    isKnown(failed) ? `${count(failed)} failed` : "number of failed transactions not reported",
    ...some(skipped, "skipped"),
    ...some(retries, "retries"),
  ].join(", ");
}

function sentence({ tps: reached, status, excluded, reason }: Trial): string {
  if (status !== "finished") return `This trial ${status === "failed" ? "failed" : "does not hold"}${reason === null ? "" : `: ${reason}`}`;
  const what = withUnit(tps(reached), "TPS");
  return excluded === true ? `${what}, excluded from every mean: its value has no ratio to others` : what;
}

function Head({ document, report }: { document: TrialDocument; report: Report | null }) {
  const { trial } = document;
  const treatment = report?.treatments.find(({ name }) => name === trial.treatment);
  return (
    <header class="masthead">
      <h1>
        {trial.title ?? treatment?.title ?? trial.treatment}, block {trial.block}
      </h1>
      <p class="answer">{sentence(trial)}</p>
      <ul class="circumstances">
        <li>
          <time dateTime={isoTime(trial.started_unix_ms)}>{dateTime(trial.started_unix_ms)}</time>
        </li>
        <li>no. {trial.position} of its block</li>
        <li>
          {isKnown(trial.percentiles?.mean_ms) ? `mean ${milliseconds(trial.percentiles.mean_ms)}, ` : ""}p50 {milliseconds(trial.percentiles?.p50_ms)}, p95 {milliseconds(trial.percentiles?.p95_ms)}, p99 {milliseconds(trial.percentiles?.p99_ms)}
        </li>
        {trial.reported_by ? <li>throughput and response times as {trial.reported_by} reports them; a dash: it reports none</li> : null}
        <li>{transactions(trial)}</li>
        <li>{document.warmup_s} s warm-up, {Math.round(document.measured_s)} s measured</li>
        {trial.settled === null ? null : <li>{trial.settled ? "throughput settled" : "throughput did not settle"}</li>}
        {trial.server_variant === null || trial.server_variant === undefined ? null : <li>on {trial.server_variant}</li>}
      </ul>
      {trial.disturbances.length === 0 ? null : (
        <ul class="notices" aria-label="Disturbances">
          {trial.disturbances.map((text, place) => (
            <li key={place} class="notice notice-note">
              <strong>disturbed</strong> <span>{text}</span>
            </li>
          ))}
        </ul>
      )}
      {report === null ? null : <Neighbours report={report} trial={trial} />}
    </header>
  );
}

function Thinned() {
  const { details } = useSource();
  if (details === null || (details.points_max === null && details.scope === "all")) return null;
  const points = details.points_max === null ? "" : `at most ${count(details.points_max)} points of each series, the lowest and the highest of every stretch kept`;
  const scope = details.scope === "main" ? "the main metrics alone" : "";
  return (
    <p class="notice">
      <strong>thinned</strong> To stay small enough to be mailed, this file holds {[points, scope].filter((part) => part !== "").join(", and ")}. “pgdyno serve” shows everything that was recorded.
    </p>
  );
}

/** The first of a plan is drawn dashed, as the reference is. */
const NOBODY = { name: "", title: "", distribution: [] };

function Times({ document }: { document: TrialDocument }) {
  const own = useMemo(() => ({ name: "trial", title: "this trial", distribution: document.distribution ?? [] }), [document]);
  const heat = document.latency_heat;
  return (
    <Part id="response" title="Response times">
      {own.distribution.length > 1 ? (
        <figure>
          <PercentileChart treatments={[own]} plan={[NOBODY, own]} />
          <PercentileTable rows={[own]} of="Trial" />
        </figure>
      ) : (
        <p class="empty">No response-time distribution was recorded.</p>
      )}
      {heat === null ? null : (
        <figure>
          <HeatChart heat={heat} title="Response times over time" ylabel="response time, ms" unit="transactions" summary="How many transactions had which response time, over the measured time; the curve above has all of them." />
          <figcaption class="quiet">Each transaction counts where it ended. The stronger the colour, the more of them took so long.</figcaption>
        </figure>
      )}
    </Part>
  );
}

function Errors({ document }: { document: TrialDocument }) {
  return (
    <Part id="errors" title="Errors">
      {document.errors.length === 0 ? (
        <p class="quiet">No transaction failed with an error.</p>
      ) : (
        <DataTable captionHidden caption="Errors by SQLSTATE" headings={["SQLSTATE", "Transactions"]}>
          {document.errors.map(({ sqlstate, count: amount }, row) => (
            <tr role="row" key={row}>
              <th scope="row" role="rowheader"><code>{sqlstate}</code></th>
              <Cell label="Transactions" number>{count(amount)}</Cell>
            </tr>
          ))}
        </DataTable>
      )}
    </Part>
  );
}

function statementsLede(statements: readonly Statement[]): string | undefined {
  const sampled = statements.some(({ share_ratio }) => isKnown(share_ratio));
  const counted = statements.some(({ calls }) => isKnown(calls));
  const sentences = [
    sampled ? "Sessions are from samples, ten a second: how many were at which statement." : "",
    counted ? "Calls and what follows are by pg_stat_statements, over the measured time, of those that took the most time; texts have no constants." : "Texts and calls need pg_stat_statements, loaded and created in the database: shared_preload_libraries = \"pg_stat_statements\".",
  ].filter((text) => text !== "");
  return statements.length === 0 ? undefined : sentences.join(" ");
}

export function TrialContent({ document, report }: { document: TrialDocument; report: Report | null }) {
  const { trial, statements } = document;
  const amount = document.series.length;
  return (
    <>
      <Head document={document} report={report} />
      <Thinned />
      <Part id="over-time" title="Over time" lede={amount === 0 ? undefined : `${plural(amount, "series", "series")} of load, host and server on one axis of time. The warm-up is shaded.`}>
        {amount === 0 ? <p class="empty">Nothing was recorded beside this trial.</p> : <TrialOverTime document={document} />}
      </Part>
      <Times document={document} />
      <Part id="statements" title="Statements" lede={statementsLede(statements)}>
        <Statements statements={statements} />
      </Part>
      <Errors document={document} />
      <Part id="settings" title="Settings">
        <TrialSettings settings={trial.settings ?? []} treatment={trial.title ?? trial.treatment} />
      </Part>
    </>
  );
}
