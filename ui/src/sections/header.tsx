import { notices } from "../analysis/badges.ts";
import { clientsInWords } from "../analysis/metric.ts";
import { count, plural } from "../format/number.ts";
import { dateTime, duration, isoTime } from "../format/time.ts";
import type { Report } from "../model.ts";
import { useSource } from "../data/context.ts";
import { TopBar } from "../parts/top-bar.tsx";

const DESIGN = {
  cumulative: "cumulative steps",
  "one-at-a-time": "one treatment at a time",
  "a-b": "one treatment against the reference",
  "a-a": "the reference against itself",
  "full-factorial": "all combinations of the factors",
  fractional: "a fraction of all combinations",
  screening: "screening of many factors",
  switchback: "treatments that take turns within one load",
  ladder: "levels along a curve",
  search: "a search among combinations",
  load: "a load without treatments",
} as const;

function Circumstances({ report }: { report: Report }) {
  const { experiment } = report;
  const { workload, blocks_planned, blocks_finished } = experiment;
  const took = experiment.finished_unix_ms === null ? null : duration(experiment.finished_unix_ms - experiment.started_unix_ms);
  const blocks =
    blocks_finished === blocks_planned ? plural(blocks_planned, "block") : `${String(blocks_finished)} of ${plural(blocks_planned, "block")}`;
  return (
    <ul class="circumstances">
      <li>
        <time dateTime={isoTime(experiment.started_unix_ms)}>{dateTime(experiment.started_unix_ms)}</time>
      </li>
      {took === null ? null : <li>took {took}</li>}
      <li>
        {DESIGN[experiment.design]}, {experiment.design === "search" ? plural(report.trials.length, "trial") : blocks}
      </li>
      <li>
        {workload.name}, scale {count(workload.scale)}
      </li>
      <li>
        {clientsInWords(report)} on {plural(workload.threads, "thread")}
      </li>
      <li>
        {workload.warmup_s} s warm-up, {workload.measure_s} s measured
      </li>
      <li>{experiment.status}</li>
    </ul>
  );
}

export function Header({ report }: { report: Report }) {
  const { experiment } = report;
  const { mode } = useSource();
  const badges = notices(report);
  return (
    <header class="masthead">
      <TopBar trail={[...(mode === "serve" ? [] : [{ name: "pgdyno", href: "#/" }]), { name: `experiment ${String(experiment.id)}`, href: null }]} />
      <h1>{experiment.name}</h1>
      <p class="question">{experiment.question}</p>
      <p class="answer">{experiment.answer}</p>
      <Circumstances report={report} />
      {badges.length === 0 ? null : (
        <ul class="notices" aria-label="Notices">
          {badges.map(({ kind, word, detail }, place) => (
            <li key={place} class={`notice notice-${kind}`}>
              <strong>{word}</strong> <span>{detail}</span>
            </li>
          ))}
        </ul>
      )}
    </header>
  );
}
