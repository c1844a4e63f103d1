import { metricOf, type Metric } from "../analysis/metric.ts";
import { VERDICT_ORDER } from "../analysis/verdicts.ts";
import { count, isKnown, plural, roundShare, share } from "../format/number.ts";
import { dateTime, isoTime } from "../format/time.ts";
import type { Decision, Report, Verdict } from "../model.ts";
import { Section } from "../parts/section.tsx";
import { VerdictMark } from "../parts/verdict-mark.tsx";

function meaning(verdict: Verdict, { decision, metric }: { decision: Decision; metric: Metric }): string {
  const more = metric.isTps ? ["more throughput", "less throughput"] : decision.larger_is_better === true ? ["larger", "smaller"] : ["smaller", "larger"];
  const figure = metric.isTps ? "" : `: ${metric.title}`;
  const band = `±${roundShare(decision.smallest_effect)}`;
  switch (verdict) {
    case "better":
      return `${more[0] ?? ""}${figure}; the interval leaves no doubt about the direction.`;
    case "worse":
      return `${more[1] ?? ""}${figure}; the interval leaves no doubt about the direction.`;
    case "same":
      return `no difference that matters: the interval is within ${band}.`;
    case "no-gain":
      return `the interval is too wide for these, and a gain of ${roundShare(decision.smallest_effect)} is improbable, so it was not tried again.`;
    case "undecided":
      return "the interval is too wide for any of these; more blocks would narrow it.";
  }
}

export function Footer({ report }: { report: Report }) {
  const { decision, experiment } = report;
  const metric = metricOf(report);
  const least = decision.minimum_detectable_effect;
  return (
    <footer>
      <Section id="method">
        <p>{decision.method}</p>
        <p>
          Trials ran in {experiment.design !== "search" && experiment.blocks_finished < experiment.blocks_planned ? "up to " : ""}
          {plural(experiment.blocks_planned, "block")}, the order inside each drawn with seed {experiment.seed}. All intervals hold together with a confidence of{" "}
          {roundShare(decision.confidence)}. Differences below {roundShare(decision.smallest_effect)} are taken not to matter.{" "}
          {isKnown(decision.noise_floor)
            ? `Trials of one and the same treatment spread by ${share(decision.noise_floor)}, estimated with ${plural(decision.degrees_of_freedom, "degree")} of freedom.`
            : "How much trials of one and the same treatment spread is not known."}{" "}
          {isKnown(least) ? `So many blocks find an effect of ${share(least)} with a probability of ${roundShare(decision.power)}.` : null}{" "}
          {decision.trial_length?.sentence}
        </p>
        {decision.stop !== "after-blocks" ? <p>Stopping rule: {decision.stop_rule}.</p> : null}
        <dl class="meanings">
          {VERDICT_ORDER.filter((verdict) => verdict !== "no-gain" || decision.stop === "when-gain-decided").map((verdict) => (
            <div key={verdict}>
              <dt>
                <VerdictMark verdict={verdict} />
              </dt>
              <dd>{meaning(verdict, { decision, metric })}</dd>
            </div>
          ))}
        </dl>
      </Section>
      <p class="colophon">
        Written by {report.generator} on <time dateTime={isoTime(report.generated_unix_ms)}>{dateTime(report.generated_unix_ms)}</time> from {count(report.trials.length)} trials.
      </p>
    </footer>
  );
}
