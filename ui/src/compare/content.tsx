import { PercentileChart } from "../charts/percentile-chart.tsx";
import { useSource } from "../data/context.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { change, changeBounds, roundShare } from "../format/number.ts";
import type { Report } from "../model.ts";
import type { Comparison } from "../model-serve.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Loaded } from "../parts/state.tsx";
import { Part } from "../trial/part.tsx";
import { Pair } from "./pair.tsx";
import { figureTitle, plainComparison, settingLines, settingsDiffer, sideOf, type Side } from "./side.ts";
import { quoted, specText, type Spec } from "./spec.ts";

const BASIS: Record<Comparison["basis"], string> = {
  blocks: "Treatments of one experiment, compared within its blocks: drift of the machine cancels.",
  trials: "The two did not run in blocks: what drifted between them is not cancelled, and is part of the ratio.",
  "two-trials": "These two trials only: the interval is made of their seconds, and trials of one and the same treatment usually differ by more.",
};

/** The answer first: what the first figure of the first pair says. */
function answerOf({ pairs }: Comparison): string {
  const row = pairs[0]?.rows[0];
  if (row === undefined) return "The two have no figure in common.";
  const { title } = figureTitle(row.metric);
  const { effect } = row;
  const of = pairs.length > 1 ? `${pairs[0]?.b ?? "B"}: ` : "";
  if (effect === null) return row.ratio === null ? `${of}${title} is not known on both sides.` : `${of}${title} ${change(row.ratio)}, without an interval.`;
  const interval = `${change(effect.ratio)} (${changeBounds(effect.ratio_low, effect.ratio_high)})`;
  switch (effect.verdict) {
    case "better":
      return `${of}B is better: ${title.toLowerCase()} ${interval}.`;
    case "worse":
      return `${of}B is worse: ${title.toLowerCase()} ${interval}.`;
    case "same":
      return `${of}No difference that matters: ${title.toLowerCase()} ${interval}.`;
    case "undecided":
      return `${of}Undecided: ${title.toLowerCase()} ${interval}.`;
  }
}

function SettingsDiff({ a, b }: { a: Side; b: Side }) {
  const rows = settingsDiffer(a.settings, b.settings);
  if (rows.length === 0) return <p class="quiet">Both set the same.</p>;
  const value = (text: string | null) => (text === null ? <span class="quiet">as it was</span> : <code>{text}</code>);
  return (
    <>
      <p class="copy-line">
        {(["a", "b"] as const).map((side) => (
          <span key={side}>
            {side.toUpperCase()} as lines: <CopyButton text={settingLines(rows, side)} what={`Settings of ${side.toUpperCase()} that differ`} />{" "}
          </span>
        ))}
      </p>
      <DataTable class="cards" captionHidden caption="Settings that differ" headings={["Setting", `A: ${a.title}`, `B: ${b.title}`]}>
        {rows.map((row) => (
          <tr role="row" key={row.knob}>
            <th scope="row" role="rowheader"><code>{row.knob}</code></th>
            <Cell label="A">{value(row.a)}</Cell>
            <Cell label="B">{value(row.b)}</Cell>
          </tr>
        ))}
      </DataTable>
    </>
  );
}

interface Props {
  spec_a: Spec;
  spec_b: Spec;
  report_a: Report | null;
  report_b: Report | null;
}

function Sides({ a, b }: { a: Side; b: Side }) {
  // One and the same on both sides would be drawn in one colour.
  const plan = [{ ...a, name: `A ${a.name}`, title: `A · ${a.short}` }, { ...b, name: `B ${b.name}`, title: `B · ${b.short}` }];
  return (
    <>
      <Part id="response" title="Response times" lede="A dashed, B drawn through. To the right each further nine has the same room.">
        <ul class="circumstances">
          <li>A: {a.title}</li>
          <li>B: {b.title}</li>
        </ul>
        <figure>
          <PercentileChart treatments={plan} plan={plan} />
        </figure>
      </Part>
      <Part id="settings" title="Settings that differ">
        <SettingsDiff a={a} b={b} />
      </Part>
    </>
  );
}

export function CompareContent({ spec_a, spec_b, report_a, report_b }: Props) {
  const { server } = useSource();
  const [text_a, text_b] = [specText(spec_a), specText(spec_b)];
  const a = report_a === null ? null : sideOf(report_a, spec_a);
  const b = report_b === null ? null : sideOf(report_b, spec_b);
  const both = a !== null && b !== null;
  const load = (): Promise<Comparison | null> => {
    if (server !== null) return server.compare(text_a, text_b);
    return Promise.resolve(both ? plainComparison(a, b) : null);
  };
  const [loading, again] = useLoaded(`compare/${text_a} ${text_b} ${server === null ? String(both) : ""}`, load);
  const command = `pgdyno compare ${quoted(text_a)} ${quoted(text_b)}`;
  return (
    <>
      <Loaded loading={loading} again={again} what="the comparison">
        {(comparison) =>
          comparison === null ? (
            <p class="empty">There is no such treatment or trial.</p>
          ) : (
            <>
              <p class="answer answer-below">{answerOf(comparison)}</p>
              <p class="lede">
                {server === null ? "A report file gives no verdicts between these; the command below does." : `${BASIS[comparison.basis]} Intervals are at ${roundShare(comparison.confidence)}; differences below ${roundShare(comparison.smallest_effect)} do not matter.`}
              </p>
              {comparison.pairs.map((pair, place) => (
                <Pair key={place} pair={pair} comparison={comparison} />
              ))}
            </>
          )
        }
      </Loaded>
      {both ? <Sides a={a} b={b} /> : null}
      <p class="copy-line">
        <code>{command}</code> <CopyButton text={command} what="Compare command" />
      </p>
    </>
  );
}
