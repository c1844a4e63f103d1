import { useEffect } from "preact/hooks";
import { CompareContent } from "../compare/content.tsx";
import { SidePicker } from "../compare/side-picker.tsx";
import { sideOf } from "../compare/side.ts";
import type { Chosen } from "../compare/sides.tsx";
import { eachTreatment, nextSide, parseSpec, specText, whyNot } from "../compare/spec.ts";
import { useReports } from "../compare/use-reports.ts";
import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { TroubleBox } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { addressOf, LETTERS } from "../router.ts";

interface Named {
  id: number;
  name: string;
}

/** A report file knows one experiment. */
async function experimentsOf(source: Source): Promise<Named[]> {
  if (source.server !== null) return (await source.server.experiments()).map(({ id, name }) => ({ id, name }));
  const { experiment } = await source.report(null);
  return [{ id: experiment.id, name: experiment.name }];
}

function choose(sides: readonly string[]): void {
  location.hash = addressOf.compare(sides);
}

function withSide(sides: readonly string[], place: number, text: string): string[] {
  return sides.map((side, index) => (index === place ? text : side));
}

/** Up to eight experiments, treatments or trials side by side, which the address names. */
export function CompareView({ sides }: { sides: readonly string[] }) {
  const source = useSource();
  const [experiments, again] = useLoaded("compare/experiments", () => experimentsOf(source));
  const all = experiments.state === "here" ? experiments.value : [];
  const specs = sides.map(parseSpec);
  const wanted = [...new Set(specs.flatMap((spec) => (spec === null ? [] : [spec.experiment])))];
  // In a report file there is no other experiment than its own.
  const [reports, trouble, again_reports] = useReports(source, source.server === null ? wanted.filter((id) => all.some((each) => each.id === id)) : wanted);
  useEffect(() => {
    document.title = "Compare – pgdyno";
  }, []);
  const first = specs[0] ?? null;
  const reasons = specs.map((spec, place) => (place === 0 || first === null || spec === null ? null : whyNot(first, spec)));
  const chosen = specs.map((spec, place): Chosen | null => {
    const report = spec === null ? undefined : reports.get(spec.experiment);
    const side = spec === null || report === undefined ? null : sideOf(report, spec);
    return spec === null || report === undefined || side === null ? null : { place, letter: LETTERS[place] ?? "?", spec, report, side };
  });
  const missing = specs.flatMap((spec, place) => (spec !== null && reports.has(spec.experiment) && chosen[place] === null ? [LETTERS[place] ?? "?"] : []));
  const others = chosen.slice(1).filter((side, index) => side !== null && reasons[index + 1] === null) as Chosen[];
  const head = chosen[0] ?? null;
  const shownTrouble = experiments.state === "trouble" ? { trouble: experiments.trouble, again } : trouble === null ? null : { trouble, again: again_reports };
  const own = first === null ? undefined : reports.get(first.experiment);
  const each = own === undefined ? [] : eachTreatment(own);
  return (
    <div class="page page-wide">
      <div class="content">
        <TopBar trail={source.mode === "serve" ? [{ name: "pgdyno", href: "#/" }, { name: "compare", href: null }] : [{ name: all[0]?.name ?? "experiment", href: "#/" }, { name: "compare", href: null }]} current="Compare" />
        <main>
          <h1 class="view-title">Compare</h1>
          <div class="sides">
            {sides.map((text, place) => (
              <SidePicker
                key={place}
                place={place}
                count={sides.length}
                spec={specs[place] ?? null}
                reason={reasons[place] ?? null}
                experiments={all}
                report={reports.get(specs[place]?.experiment ?? -1) ?? null}
                onChange={(spec) => { choose(withSide(sides, place, specText(spec))); }}
                onFirst={() => { choose([text, ...sides.filter((_, index) => index !== place)]); }}
                onRemove={() => { choose(sides.filter((_, index) => index !== place)); }}
              />
            ))}
          </div>
          <p class="side-buttons">
            {sides.length < LETTERS.length ? (
              <button type="button" class="button" onClick={() => { choose([...sides, nextSide(own ?? null, specs)]); }}>
                Add a side
              </button>
            ) : null}
            {each.length > 1 && each.join() !== sides.join() ? (
              <button type="button" class="button" onClick={() => { choose(each); }}>
                All treatments of this experiment
              </button>
            ) : null}
          </p>
          {shownTrouble === null ? null : <TroubleBox trouble={shownTrouble.trouble} again={shownTrouble.again} />}
          {missing.length === 0 ? null : <p class="empty">There is no such treatment or trial: {missing.join(", ")}.</p>}
          {head === null || others.length === 0 ? (
            missing.length > 0 || shownTrouble !== null ? null : <p class="empty">{reasons.find((reason) => reason !== null) ?? "Choose A, the reference of the others, and at least one other."}</p>
          ) : (
            <CompareContent first={head} others={others} />
          )}
        </main>
      </div>
    </div>
  );
}
