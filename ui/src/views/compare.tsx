import { useEffect } from "preact/hooks";
import { CompareContent } from "../compare/content.tsx";
import { SidePicker } from "../compare/side-picker.tsx";
import { parseSpec, specText, whyNot, type Spec } from "../compare/spec.ts";
import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import { useLoaded, type Loading } from "../data/use-loaded.ts";
import type { Report } from "../model.ts";
import { TroubleBox } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { addressOf } from "../router.ts";

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

function useReport(source: Source, spec: Spec | null): [Loading<Report | null>, () => void] {
  return useLoaded<Report | null>(`compare/${String(spec?.experiment)}`, () => (spec === null ? Promise.resolve(null) : source.report(spec.experiment)));
}

/** Two experiments, treatments or trials side by side; the address tells which. */
export function CompareView({ a, b }: { a: string; b: string }) {
  const source = useSource();
  const [experiments, again] = useLoaded("compare/experiments", () => experimentsOf(source));
  const [spec_a, spec_b] = [parseSpec(a), parseSpec(b)];
  const [report_a, again_a] = useReport(source, spec_a);
  const [report_b, again_b] = useReport(source, spec_b);
  useEffect(() => {
    document.title = "Compare – pgdyno";
  }, []);
  const choose = (next_a: string, next_b: string) => {
    location.hash = addressOf.compare(next_a, next_b);
  };
  const all = experiments.state === "here" ? experiments.value : [];
  const here = (loading: Loading<Report | null>) => (loading.state === "here" ? loading.value : null);
  const troubles = [[experiments, again], [report_a, again_a], [report_b, again_b]] as const;
  const reason = spec_a === null || spec_b === null ? null : whyNot(spec_a, spec_b);
  const trouble = troubles.find(([loading]) => loading.state === "trouble");
  return (
    <div class="page page-plain">
      <div class="content">
        <TopBar trail={source.mode === "serve" ? [{ name: "pgdyno", href: "#/" }, { name: "compare", href: null }] : [{ name: all[0]?.name ?? "experiment", href: "#/" }, { name: "compare", href: null }]} current="Compare" />
        <main>
          <h1 class="view-title">Compare</h1>
          <div class="sides">
            <SidePicker letter="A" spec={spec_a} experiments={all} report={here(report_a)} onChange={(spec) => { choose(specText(spec), b); }} />
            <button type="button" class="button swap" disabled={a === "" && b === ""} aria-label="Swap A and B" onClick={() => { choose(b, a); }}>
              ⇄
            </button>
            <SidePicker letter="B" spec={spec_b} experiments={all} report={here(report_b)} onChange={(spec) => { choose(a, specText(spec)); }} />
          </div>
          {trouble?.[0].state === "trouble" ? <TroubleBox trouble={trouble[0].trouble} again={trouble[1]} /> : null}
          {spec_a === null || spec_b === null || reason !== null ? (
            <p class="empty">{reason ?? "Choose what B is held against, and B."}</p>
          ) : (
            <CompareContent spec_a={spec_a} spec_b={spec_b} report_a={here(report_a)} report_b={here(report_b)} />
          )}
        </main>
      </div>
    </div>
  );
}
