import { useEffect } from "preact/hooks";
import { headlineTreatment } from "../analysis/headline.ts";
import { useSource } from "../data/context.ts";
import { useLoaded, useReturn, type Loading } from "../data/use-loaded.ts";
import { LiveStrip } from "../live/strip.tsx";
import type { Report } from "../model.ts";
import { Contents } from "../parts/contents.tsx";
import { Refusal } from "../parts/refusal.tsx";
import { Guarded, Loaded, Stale } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { Capacity } from "../sections/capacity.tsx";
import { Claims } from "../sections/claims.tsx";
import { Curves } from "../sections/curves.tsx";
import { Efficiency } from "../sections/efficiency.tsx";
import { FactorEffects } from "../sections/factor-effects.tsx";
import { Facts } from "../sections/facts.tsx";
import { Footer } from "../sections/footer.tsx";
import { Header } from "../sections/header.tsx";
import { KeyFigures } from "../sections/key-figures.tsx";
import { Notes } from "../sections/notes.tsx";
import { OverTime } from "../sections/over-time.tsx";
import { RestoredTable } from "../sections/restored.tsx";
import { Repeat } from "../sections/repeat.tsx";
import { ResponseTimes } from "../sections/response-times.tsx";
import { Search } from "../sections/search.tsx";
import { Settings } from "../sections/settings.tsx";
import { Steps } from "../sections/steps.tsx";
import { StudyCharts } from "../sections/study-charts.tsx";
import { StudyTables } from "../sections/study-tables.tsx";
import { Timelines } from "../sections/timelines.tsx";
import { Trials } from "../sections/trials.tsx";

const nothing = () => undefined;

/** One experiment: from the page itself, or from the server, where it may still be running. */
export function ExperimentView({ experiment, section }: { experiment: number | null; section: string | null }) {
  const source = useSource();
  const [loading, again] = useLoaded(`experiment/${String(experiment)}`, () => source.report(experiment));
  const name = experiment === null ? "Experiment" : `Experiment ${String(experiment)}`;
  useReturn(source.mode === "serve" ? again : nothing);
  const isHere = loading.state === "here";
  useEffect(() => {
    if (!isHere && source.mode === "serve") document.title = `${name} – pgdyno`;
  }, [isHere, source.mode, name]);
  if (loading.state === "trouble" && source.mode === "file") {
    return <Refusal heading={loading.trouble.heading} advice={loading.trouble.advice} />;
  }
  if (loading.state !== "here") {
    return (
      <div class="page page-plain">
        <div class="content">
          <TopBar trail={[{ name: "pgdyno", href: "#/" }, { name: name.toLowerCase(), href: null }]} />
          <main>
            <h1 class="view-title">{name}</h1>
            <Loaded loading={loading} again={again} what="the experiment">
              {() => null}
            </Loaded>
          </main>
        </div>
      </div>
    );
  }
  return (
    <Guarded refused={source.mode === "file"}>
      <Content loading={loading} report={loading.value} section={section} onNews={again} />
    </Guarded>
  );
}

interface ContentProps {
  loading: Loading<Report>;
  report: Report;
  section: string | null;
  onNews: () => void;
}

/** Everything it shows comes in as the one report, so that a live page can hand in newer ones. */
function Content({ loading, report, section, onNews }: ContentProps) {
  const headline = headlineTreatment(report);
  useEffect(() => {
    document.title = `${report.experiment.name} – pgdyno`;
  }, [report.experiment.name]);
  useEffect(() => {
    // When this came from another view, the browser had nowhere to go yet.
    if (section !== null) document.getElementById(section)?.scrollIntoView();
  }, [section]);
  return (
    <div class="page">
      <Contents report={report} />
      <div class="content">
        <Header report={report} />
        <Stale loading={loading} again={onNews} />
        <LiveStrip experiment={report.experiment.id} running={report.experiment.status.startsWith("running")} trials={report.trials.length} onNews={onNews} />
        <main id="top">
          <KeyFigures report={report} headline={headline} />
          <Search report={report} />
          <Claims report={report} />
          <Timelines report={report} />
          <StudyCharts report={report} />
          <Steps report={report} />
          <FactorEffects report={report} />
          <Curves curves={report.curves ?? []} />
          <Capacity report={report} />
          <StudyTables tables={report.tables ?? []} />
          <OverTime report={report} headline={headline} />
          <ResponseTimes report={report} headline={headline} />
          <Efficiency report={report} />
          <Settings report={report} />
          <Trials report={report} />
          <Notes experiment={report.experiment.id} />
          <Facts facts={report.facts} />
          <RestoredTable entries={report.restored} />
          <Repeat experiment={report.experiment} />
        </main>
        <Footer report={report} />
      </div>
    </div>
  );
}
