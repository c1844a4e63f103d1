import type { Report, WholeChart } from "../model.ts";
import { ClaimList } from "./claim-list.tsx";

/** What the study says of its own chart. */
export function Published({ report, text }: { report: Report; text: string | null }) {
  if (text === null) return null;
  return (
    <p class="published">
      [{report.study?.source ?? ""}]: {text}.
    </p>
  );
}

/** The chart of a study that the experiment has anyway. */
export function wholeChart({ whole_charts = [] }: Report, wanted: WholeChart["form"]): WholeChart | undefined {
  return whole_charts.find(({ form }) => form === wanted);
}

/** The findings that such a chart shows. */
export function WholeChartClaims({ report, chart }: { report: Report; chart: WholeChart | undefined }) {
  const { claims = [] } = report;
  return <ClaimList claims={claims.filter((_, place) => chart?.claims.includes(place) ?? false)} />;
}
