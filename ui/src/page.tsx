import { useErrorBoundary } from "preact/hooks";
import { headlineTreatment } from "./analysis/headline.ts";
import type { Report } from "./model.ts";
import { Contents } from "./parts/contents.tsx";
import { Refusal } from "./parts/refusal.tsx";
import { Claims } from "./sections/claims.tsx";
import { Curves } from "./sections/curves.tsx";
import { FactorEffects } from "./sections/factor-effects.tsx";
import { Facts } from "./sections/facts.tsx";
import { Footer } from "./sections/footer.tsx";
import { Header } from "./sections/header.tsx";
import { KeyFigures } from "./sections/key-figures.tsx";
import { OverTime } from "./sections/over-time.tsx";
import { PutBackTable } from "./sections/put-back.tsx";
import { Repeat } from "./sections/repeat.tsx";
import { ResponseTimes } from "./sections/response-times.tsx";
import { Settings } from "./sections/settings.tsx";
import { Steps } from "./sections/steps.tsx";
import { StudyTables } from "./sections/study-tables.tsx";
import { Trials } from "./sections/trials.tsx";

/** The whole report, or a sentence where something in it breaks the showing. A boundary catches only what its children throw. */
export function Page({ report }: { report: Report }) {
  const [error] = useErrorBoundary() as [unknown, () => void];
  if (error !== undefined) {
    return (
      <Refusal
        heading="These measurements could not be shown."
        advice={`Something in them is not as it should be (${error instanceof Error ? error.message : "no message"}). Write the report again with “pgdyno report”.`}
      />
    );
  }
  return <Content report={report} />;
}

/** Everything it shows comes in as the one argument, so that a live page can hand in newer ones. */
function Content({ report }: { report: Report }) {
  const headline = headlineTreatment(report);
  return (
    <div class="page">
      <Contents report={report} />
      <div class="content">
        <Header report={report} />
        <main id="top">
          <KeyFigures report={report} headline={headline} />
          <Claims report={report} />
          <Steps report={report} />
          <FactorEffects report={report} />
          <Curves curves={report.curves ?? []} />
          <StudyTables tables={report.tables ?? []} />
          <OverTime report={report} headline={headline} />
          <ResponseTimes report={report} headline={headline} />
          <Settings report={report} />
          <Trials report={report} />
          <Facts facts={report.facts} />
          <PutBackTable entries={report.put_back} />
          <Repeat experiment={report.experiment} />
        </main>
        <Footer report={report} />
      </div>
    </div>
  );
}
