import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import type { Trouble } from "../data/trouble.ts";
import { useEach } from "../data/use-each.ts";
import { roundShare } from "../format/number.ts";
import type { Comparison } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { TroubleBox } from "../parts/state.tsx";
import { DiffersTable, FigureTable } from "./figures.tsx";
import { merged } from "./merged.ts";
import { SidesOverTime, type Timed } from "./over-time.tsx";
import { plainComparison } from "./side.ts";
import { SidesPercentiles, SidesSettings, SidesTable, type Chosen } from "./sides.tsx";
import { quoted, specText, trialOf } from "./spec.ts";
import { answerOf, BASIS } from "./words.ts";

/** What a side came to against the first: figures, or why there are none. */
interface Held {
  comparison: Comparison | null;
  trouble: Trouble | null;
}

function compared(source: Source, first: Chosen, other: Chosen): Promise<Comparison> {
  if (source.server === null) return Promise.resolve(plainComparison(first.side, other.side));
  return source.server.compare(specText(first.spec), specText(other.spec));
}

/** Why a side is not compared, and whether that is tried again. */
function whyNot(letter: string, trouble: Trouble | null): string {
  const again = trouble?.passes === true ? " It is tried again by itself, with growing pauses." : "";
  return `${letter}: ${trouble?.heading ?? "not compared"} ${trouble?.advice ?? ""}${again}`;
}

function Lede({ comparisons, isServed }: { comparisons: readonly Comparison[]; isServed: boolean }) {
  const first = comparisons[0];
  if (first === undefined) return null;
  if (!isServed) return <p class="lede">A report file gives no verdicts between these; the commands below do.</p>;
  const bases = [...new Set(comparisons.map(({ basis }) => basis))];
  // Those of one experiment hold together over all its pairs.
  const each = comparisons.length > 1 && bases.some((basis) => basis !== "blocks") ? " Each side is compared with A separately: the more sides there are, the likelier one of the intervals misses." : "";
  return (
    <p class="lede">
      {bases.map((basis) => BASIS[basis]).join(" ")} Intervals are at {roundShare(first.confidence)}; differences below {roundShare(first.smallest_effect)} do not matter.{each}
    </p>
  );
}

function Answers({ first, others, all, isServed }: { first: Chosen; others: readonly Chosen[]; all: readonly Held[]; isServed: boolean }) {
  const said = others.map((other, index) => ({ other, ...(all[index] ?? { comparison: null, trouble: null }) }));
  const lines = said.map(({ other, comparison, trouble }) => ({ letter: other.letter, text: comparison === null ? whyNot(other.letter, trouble) : answerOf(other.letter, comparison) }));
  // Tables know sides by their places among all; those between that cannot be compared have no
  // column.
  const places = Array.from({ length: Math.max(0, ...others.map(({ place }) => place)) }, (_, index) => said.find(({ other }) => other.place === index + 1)?.comparison ?? null);
  const tables = merged(places);
  return (
    <>
      {lines.length === 1 ? (
        <p class="answer answer-below">{lines[0]?.text}</p>
      ) : (
        <ul class="answer answer-below answers">
          {lines.map(({ letter, text }) => (
            <li key={letter}>{text}</li>
          ))}
        </ul>
      )}
      <Lede comparisons={places.filter((comparison) => comparison !== null)} isServed={isServed} />
      <SidesTable sides={[first, ...others]} />
      {tables.map((table) => (
        <div key={table.first}>
          <FigureTable table={table} comparisons={places} hasVerdicts={isServed} />
          <DiffersTable table={table} />
        </div>
      ))}
    </>
  );
}

/** What the sides come to against the first. One that is refused is said beside the others; where
 * there are only such, the page says why. */
function Against({ first, others }: { first: Chosen; others: readonly Chosen[] }) {
  const source = useSource();
  const keyOf = ({ spec }: Chosen) => `${specText(first.spec)} ${specText(spec)}`;
  const [{ values, troubles }, again] = useEach(others.map((other) => ({ key: keyOf(other), load: () => compared(source, first, other) })));
  const all = others.map((other): Held => ({ comparison: values.get(keyOf(other)) ?? null, trouble: troubles.get(keyOf(other)) ?? null }));
  if (all.some(({ comparison, trouble }) => comparison === null && trouble === null)) {
    return (
      <p class="waiting" role="status">
        Loading the comparison …
      </p>
    );
  }
  const trouble = all[0]?.trouble ?? null;
  if (trouble !== null && all.every(({ comparison }) => comparison === null)) return <TroubleBox trouble={trouble} again={again} />;
  return <Answers first={first} others={others} all={all} isServed={source.server !== null} />;
}

/** All chosen sides beside each other, the first of which the others are compared with. */
export function CompareContent({ first, others }: { first: Chosen; others: readonly Chosen[] }) {
  const source = useSource();
  const sides = [first, ...others];
  const timed = sides.flatMap(({ place, letter, spec, report, side }): Timed[] => {
    const id = trialOf(report, spec, source.hasTrial);
    const trial = report.trials.find((each) => each.id === id);
    return trial === undefined ? [] : [{ place, title: `${letter} · ${side.short}`, experiment: spec.experiment, trial }];
  });
  return (
    <>
      <Against first={first} others={others} />
      <SidesOverTime sides={timed} />
      <SidesPercentiles sides={sides} />
      <SidesSettings sides={sides} />
      {others.map(({ letter, spec }) => {
        const command = `pgdyno compare ${quoted(specText(first.spec))} ${quoted(specText(spec))}`;
        return (
          <p class="copy-line" key={letter}>
            <code>{command}</code> <CopyButton text={command} what={`Compare command, ${letter}`} />
          </p>
        );
      })}
    </>
  );
}
