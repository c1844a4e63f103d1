import { meanTps } from "../analysis/throughput.ts";
import { quicknessWord, intervalSentence } from "../analysis/verdicts.ts";
import { bareMilliseconds, bounds, bytes, change, changeBounds, isKnown, microseconds, plural, share, tps, UNKNOWN } from "../format/number.ts";
import type { Effect, Report, Treatment } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";

function StepName({ treatment }: { treatment: Treatment }) {
  const changed = treatment.settings.filter((setting) => setting.changed);
  return (
    <th scope="row" role="rowheader">
      <span class="step-title">{treatment.title}</span>
      {treatment.reason === null ? null : <span class="step-reason">{treatment.reason}</span>}
      {changed.length === 0 ? null : (
        <ul class="step-settings" aria-label="Settings changed">
          {changed.map((setting) => (
            <li key={setting.knob}>
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
      <strong class="step-figure">{change(effect.ratio)}</strong> <VerdictMark verdict={effect.verdict} word={effect.verdict + colon} />{" "}
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
      <span class="figure-main">{bareMilliseconds(percentiles?.p95_ms)}</span>
      {step === null ? null : (
        <span class="interval">
          {change(step.ratio)} {quicknessWord(step)}
        </span>
      )}
    </>
  );
}

function Row({ report, treatment }: { report: Report; treatment: Treatment }) {
  const interval = treatment.tps;
  if (treatment.status === "not-tested") {
    return (
      <tr role="row" class="not-tested">
        <StepName treatment={treatment} />
        <td role="cell" colSpan={report.experiment.design === "cumulative" ? 9 : 8} data-label="Not tested">
          not tested: {treatment.why_not ?? "no reason is recorded"}
        </td>
      </tr>
    );
  }
  return (
    <tr role="row">
      <StepName treatment={treatment} />
      <Cell label="Throughput, TPS" number>
        <span class="figure-main">{tps(meanTps(report, treatment))}</span>
        {interval !== null && isKnown(interval.low) ? <span class="interval">{bounds(interval.low, interval.high, tps)}</span> : null}
      </Cell>
      <Cell label={stepHeading(report)}>
        <Step effect={treatment.step} report={report} isReference={treatment.name === report.experiment.reference} />
      </Cell>
      {report.experiment.design === "cumulative" ? (
        <Cell label="Against the reference" number>
          <Interval effect={treatment.total} />
        </Cell>
      ) : null}
      <Cell label="p95, ms" number>
        <P95 treatment={treatment} />
      </Cell>
      <Cell label="p99, ms" number>
        {bareMilliseconds(treatment.percentiles?.p99_ms)}
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

export function VerdictTable({ report }: { report: Report }) {
  const cumulative = report.experiment.design === "cumulative";
  const headings = [
    cumulative ? "Step" : "Treatment", "Throughput, TPS", stepHeading(report),
    // One at a time, the effect is against the reference already.
    ...(cumulative ? ["Against the reference"] : []),
    "p95, ms", "p99, ms", "Variation per second", "Server CPU per tx", "Client CPU per tx", "WAL per tx",
  ];
  return (
    <DataTable class="verdict-table cards" caption="Verdicts, with what each treatment costs and saves" headings={headings}>
      {report.treatments.map((treatment) => (
        <Row key={treatment.name} report={report} treatment={treatment} />
      ))}
    </DataTable>
  );
}
