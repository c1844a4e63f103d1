import { useMemo, useState } from "preact/hooks";
import type { Metric } from "../analysis/series.ts";
import { unsettledStretches } from "../analysis/steady.ts";
import { finishedTrialsOf, referenceOf, trialsOf } from "../analysis/throughput.ts";
import { plural } from "../format/number.ts";
import type { MarkKind, Report, Treatment } from "../model.ts";
import { TreatmentPicker } from "../parts/picker.tsx";
import { Section } from "../parts/section.tsx";
import { MarkChoice } from "../trial/events.tsx";
import { SecondsHeat } from "./seconds-heat.tsx";
import { TimeFigure } from "./time-figure.tsx";
import { TimeTable } from "./time-table.tsx";

export function OverTime({ report, headline }: { report: Report; headline: Treatment | null }) {
  const reference = referenceOf(report);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set([reference, headline].flatMap((treatment) => (treatment === null ? [] : [treatment.name]))),
  );
  const [metric, setMetric] = useState<Metric>("tps");
  const [withExcluded, setWithExcluded] = useState(false);
  const [hidden, setHidden] = useState<ReadonlySet<MarkKind>>(new Set());

  const withSeries = report.treatments.filter((treatment) => trialsOf(report, treatment.name).some((trial) => trial.series.t_s.length > 0));
  const treatments = withSeries.filter((treatment) => chosen.has(treatment.name));
  const key = treatments.map((treatment) => treatment.name).join("\n");
  const trials = useMemo(
    () => treatments.flatMap((treatment) => (withExcluded ? trialsOf : finishedTrialsOf)(report, treatment.name)).filter((trial) => trial.series.t_s.length > 0),
    [report, key, withExcluded],
  );
  const all = useMemo(() => trials.flatMap((trial) => trial.marks ?? []), [trials]);
  const marks = useMemo(() => all.filter(({ kind }) => !hidden.has(kind)), [all, hidden]);
  const unsettled = useMemo(() => unsettledStretches(trials), [trials]);
  const excluded = report.trials.filter((trial) => trial.status !== "finished" && trial.series.t_s.length > 0);

  if (withSeries.length === 0) {
    return (
      <Section id="time">
        <p class="empty">No trial recorded its throughput per second.</p>
      </Section>
    );
  }
  // Turns of a switchback have none of their own.
  const warmup_s = report.experiment.design === "switchback" ? 0 : report.experiment.workload.warmup_s;
  const joined = trials.find(({ series }) => (series.bucket_s ?? 1) > 1)?.series.bucket_s ?? 1;
  const each = joined > 1 ? `one point for every ${String(joined)} s, with their mean throughput and their highest p95` : "one value for every second";
  const what = metric === "tps" ? "Throughput" : "p95 response time";
  const summary = `${what} per second of ${plural(trials.length, "trial")} of ${treatments.map(({ title }) => title).join(", ")}; the table below holds the values.`;
  return (
    <Section id="time" lede={`One line for every trial, ${each}, all on the same scale from zero. The warm-up is shaded and does not count.`}>
      <div class="controls">
        <TreatmentPicker plain legend="Treatments drawn" treatments={withSeries} plan={report.treatments} chosen={chosen} onChange={setChosen} />
        <fieldset class="picker">
          <legend>Value</legend>
          {(["tps", "p95_ms"] as const).map((each) => (
            <label key={each}>
              <input type="radio" name="metric" checked={metric === each} onChange={() => { setMetric(each); }} />
              <span>{each === "tps" ? "throughput, TPS" : "p95 response time, ms"}</span>
            </label>
          ))}
        </fieldset>
        <MarkChoice marks={all} hidden={hidden} onChange={setHidden} />
        {excluded.length === 0 ? null : (
          <fieldset class="picker">
            <legend>Excluded trials</legend>
            <label>
              <input type="checkbox" checked={withExcluded} onChange={() => { setWithExcluded(!withExcluded); }} />
              <span>draw the {excluded.length} failed or invalid, paler</span>
            </label>
          </fieldset>
        )}
      </div>
      <TimeFigure treatments={treatments} trials={trials} plan={report.treatments} metric={metric} warmup_s={warmup_s} unsettled={unsettled} summary={summary} name={`${what} over time`} marks={marks} />
      <TimeTable treatments={treatments} trials={trials} metric={metric} warmup_s={warmup_s} unsettled={unsettled} />
      <SecondsHeat treatments={withSeries} trials={report.trials} />
    </Section>
  );
}
