import { useEffect } from "preact/hooks";
import { useSource } from "../data/context.ts";
import { useLoaded } from "../data/use-loaded.ts";
import type { TrialDocument } from "../model.ts";
import { Loaded } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { addressOf } from "../router.ts";
import { TrialContent } from "../trial/content.tsx";

/** One trial, with the report beside it for its neighbours and titles. */
export function TrialView({ experiment, trial }: { experiment: number | null; trial: number }) {
  const source = useSource();
  const [report] = useLoaded(`experiment/${String(experiment)}`, () => source.report(experiment));
  const [loading, again] = useLoaded(`trial/${String(experiment)}/${String(trial)}`, () => source.trial(experiment, trial));
  const known = report.state === "here" ? report.value : null;
  useEffect(() => {
    document.title = `Trial ${String(trial)} – pgdyno`;
  }, [trial]);
  const id = experiment ?? known?.experiment.id ?? 0;
  const name = known?.experiment.name ?? (experiment === null ? "experiment" : `experiment ${String(experiment)}`);
  return (
    <div class="page page-wide">
      <div class="content">
        <TopBar trail={[{ name, href: addressOf.experiment(source.mode, id) }, { name: `trial ${String(trial)}`, href: null }]} />
        <main>
          <Loaded loading={loading} again={again} what="the trial">
            {(document: TrialDocument) => <TrialContent document={document} report={known} />}
          </Loaded>
        </main>
      </div>
    </div>
  );
}
