import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import { asTrouble, type Trouble } from "../data/trouble.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { roundShare } from "../format/number.ts";
import type { Comparison } from "../model-serve.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Loaded } from "../parts/state.tsx";
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

async function held(source: Source, first: Chosen, other: Chosen): Promise<Held> {
  if (source.server === null) return { comparison: plainComparison(first.side, other.side), trouble: null };
  try {
    return { comparison: await source.server.compare(specText(first.spec), specText(other.spec)), trouble: null };
  } catch (error) {
    return { comparison: null, trouble: asTrouble(error) };
  }
}

async function heldAll(source: Source, first: Chosen, others: readonly Chosen[]): Promise<Held[]> {
  const all = await Promise.all(others.map((other) => held(source, first, other)));
  const trouble = all[0]?.trouble ?? null;
  // One refused side is said beside the others; where there are only such, the page says why.
  if (trouble !== null && all.every(({ comparison }) => comparison === null)) throw trouble;
  return all;
}

function Lede({ comparisons, isServed }: { comparisons: readonly Comparison[]; isServed: boolean }) {
  const first = comparisons[0];
  if (first === undefined) return null;
  if (!isServed) return <p class="lede">A report file gives no verdicts between these; the commands below do.</p>;
  const bases = [...new Set(comparisons.map(({ basis }) => basis))];
  const each = comparisons.length > 1 ? " Each side is held against A by itself: the more sides there are, the likelier one of the intervals misses." : "";
  return (
    <p class="lede">
      {bases.map((basis) => BASIS[basis]).join(" ")} Intervals are at {roundShare(first.confidence)}; differences below {roundShare(first.smallest_effect)} do not matter.{each}
    </p>
  );
}

function Answers({ first, others, all, isServed }: { first: Chosen; others: readonly Chosen[]; all: readonly Held[]; isServed: boolean }) {
  const said = others.map((other, index) => ({ other, ...(all[index] ?? { comparison: null, trouble: null }) }));
  const lines = said.map(({ other, comparison, trouble }) => ({ letter: other.letter, text: comparison === null ? `${other.letter}: ${trouble?.heading ?? "not compared"} ${trouble?.advice ?? ""}` : answerOf(other.letter, comparison) }));
  // Tables know sides by their places among all; those between that cannot be compared have no column.
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

/** All chosen sides beside each other, the first of which the others are held against. */
export function CompareContent({ first, others }: { first: Chosen; others: readonly Chosen[] }) {
  const source = useSource();
  const sides = [first, ...others];
  const key = sides.map(({ place, spec }) => `${String(place)}=${specText(spec)}`).join(" ");
  const [loading, again] = useLoaded(`compare/${key}`, () => heldAll(source, first, others));
  const timed = sides.flatMap(({ place, letter, spec, report, side }): Timed[] => {
    const id = trialOf(report, spec, source.hasTrial);
    const trial = report.trials.find((each) => each.id === id);
    return trial === undefined ? [] : [{ place, title: `${letter} · ${side.short}`, experiment: spec.experiment, trial }];
  });
  return (
    <>
      <Loaded loading={loading} again={again} what="the comparison">
        {(all) => <Answers first={first} others={others} all={all} isServed={source.server !== null} />}
      </Loaded>
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
