import { bareFigure, capitalised, compares, meanMetric, metricOf } from "../analysis/metric.ts";
import { percentileCurve } from "../analysis/percentiles.ts";
import { meanTps } from "../analysis/throughput.ts";
import { intervalSentence, quicknessWord, VERDICT_WORD } from "../analysis/verdicts.ts";
import { bounds, bytes, change, changeBounds, isKnown, plural, share, tps, UNKNOWN } from "../format/number.ts";
import { microseconds } from "../format/span.ts";
import type { Effect, Report, Treatment } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { PercentileFigure } from "../parts/percentile-table.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";

function StepName({ treatment }: { treatment: Treatment }) {
  const changed = treatment.settings.filter((setting) => setting.changed);
  // That a step is a step says its title.
  const levels = (treatment.levels ?? []).filter(({ factor }) => factor !== "step");
  return (
    <th scope="row" role="rowheader">
      <span class="step-title">{treatment.title}</span>
      {treatment.reason === null ? null : <span class="step-reason">{treatment.reason}</span>}
      {levels.length === 0 ? null : (
        <ul class="step-levels" aria-label="Levels">
          {levels.map(({ factor, level }, place) => (
            <li key={place}>
              {factor}: <b>{level}</b>
            </li>
          ))}
        </ul>
      )}
      {changed.length === 0 ? null : (
        <ul class="step-settings" aria-label="Settings changed">
          {changed.map((setting, place) => (
            <li key={place}>
              <code>
                {setting.knob} = {setting.value}
              </code>
              {setting.risk === "none" ? null : <span class={`risk risk-${setting.risk}`}>{setting.risk}</span>}
            </li>
          ))}
        </ul>
      )}
    </th>
  );
}

function Interval({ effect }: { effect: Effect | null }) {
  if (effect === null) return <>{UNKNOWN}</>;
  return (
    <>
      <span class="figure-main">{change(effect.ratio)}</span>
      <span class="interval">{changeBounds(effect.ratio_low, effect.ratio_high)}</span>
    </>
  );
}

interface StepProps {
  effect: Effect | null;
  report: Report;
  isReference: boolean;
}

function Step({ effect, report, isReference }: StepProps) {
  if (isReference) return <span class="quiet">the reference</span>;
  if (effect === null) return <span class="quiet">no interval: fewer than two blocks to compare</span>;
  const { blocks_planned } = report.experiment;
  const colon = effect.verdict === "undecided" ? ":" : "";
  return (
    <>
      <strong class="step-figure">{change(effect.ratio)}</strong> <VerdictMark verdict={effect.verdict} word={VERDICT_WORD[effect.verdict] + colon} />{" "}
      <span class="interval">{intervalSentence(effect, report.decision)}</span>
      {effect.blocks < blocks_planned ? (
        <span class="interval">
          {effect.blocks} of {plural(blocks_planned, "block")} compared
        </span>
      ) : null}
    </>
  );
}

function P95({ treatment }: { treatment: Treatment }) {
  const { percentiles, step_p95: step } = treatment;
  return (
    <>
      <PercentileFigure curve={percentileCurve(treatment)} percentile={95} ms={percentiles?.p95_ms} />
      {step === null ? null : (
        <span class="interval">
          {change(step.ratio)} {quicknessWord(step)}
        </span>
      )}
    </>
  );
}

function Deciding({ report, treatment }: { report: Report; treatment: Treatment }) {
  const metric = metricOf(report);
  const interval = metric.isTps ? treatment.tps : (treatment.metric ?? null);
  return (
    <Cell label={metricHeading(report)} number>
      <span class="figure-main">{metric.isTps ? tps(meanTps(report, treatment)) : bareFigure(meanMetric(report, treatment))}</span>
      {interval !== null && isKnown(interval.low) ? <span class="interval">{bounds(interval.low, interval.high, metric.isTps ? tps : bareFigure)}</span> : null}
    </Cell>
  );
}

/** The first of all steps, and with factors whatever is compared with nothing. */
function isReference(report: Report, treatment: Treatment): boolean {
  const isFirst = treatment.name === report.experiment.reference;
  return treatment.against === undefined ? isFirst : treatment.against === null;
}

function Row({ report, treatment }: { report: Report; treatment: Treatment }) {
  if (treatment.status === "not-tested") {
    return (
      <tr role="row" class="not-tested">
        <StepName treatment={treatment} />
        <td role="cell" colSpan={headingsOf(report).length - 1} data-label="Not tested">
          not tested: {treatment.why_not ?? "no reason is recorded"}
        </td>
      </tr>
    );
  }
  return (
    <tr role="row">
      <StepName treatment={treatment} />
      <Deciding report={report} treatment={treatment} />
      {compares(report) ? (
        <Cell label={stepHeading(report)}>
          <Step effect={treatment.step} report={report} isReference={isReference(report, treatment)} />
        </Cell>
      ) : null}
      {report.experiment.design === "cumulative" ? (
        <Cell label="Against the reference" number>
          <Interval effect={treatment.total} />
        </Cell>
      ) : null}
      <Cell label="p95, ms" number>
        <P95 treatment={treatment} />
      </Cell>
      <Cell label="p99, ms" number>
        <PercentileFigure curve={percentileCurve(treatment)} percentile={99} ms={treatment.percentiles?.p99_ms} />
      </Cell>
      <Cell label="Variation per second" number>
        {share(treatment.stability_cv)}
      </Cell>
      <Cell label="Server CPU per tx" number>
        {microseconds(treatment.server_cpu_us_per_tx)}
      </Cell>
      <Cell label="Client CPU per tx" number>
        {microseconds(treatment.client_cpu_us_per_tx)}
      </Cell>
      <Cell label="WAL per tx" number>
        {bytes(treatment.wal_bytes_per_tx)}
      </Cell>
    </tr>
  );
}

function stepHeading(report: Report): string {
  return report.experiment.design === "cumulative" ? "Effect of this step" : "Effect against the reference";
}

function metricHeading(report: Report): string {
  const { title, unit } = metricOf(report);
  return unit === "" ? capitalised(title) : `${capitalised(title)}, ${unit}`;
}

function headingsOf(report: Report): string[] {
  const cumulative = report.experiment.design === "cumulative";
  return [
    cumulative ? "Step" : "Treatment", metricHeading(report), ...(compares(report) ? [stepHeading(report)] : []),
    // One at a time, the effect is against the reference already.
    ...(cumulative ? ["Against the reference"] : []),
    "p95, ms", "p99, ms", "Variation per second", "Server CPU per tx", "Client CPU per tx", "WAL per tx",
  ];
}

export function VerdictTable({ report }: { report: Report }) {
  const headings = headingsOf(report);
  return (
    <DataTable class={`verdict-table cards ${compares(report) ? "compared" : ""}`} caption="Verdicts, with what each treatment costs and saves" headings={headings}>
      {report.treatments.map((treatment) => (
        <Row key={treatment.name} report={report} treatment={treatment} />
      ))}
    </DataTable>
  );
}
