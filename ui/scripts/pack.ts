import { deflateSync } from "node:zlib";
import type { Details, TrialDocument } from "../src/model.ts";

/** As crates/pgdyno-report/src/detail/packed.rs packs a trial: times once, as steps; zlib;
 * base64. */
export function packTrial({ series, ...document }: TrialDocument): string {
  const axes: number[][] = [];
  const known = new Map<string, number>();
  const columns = series.map(({ t_ms, ...column }) => {
    const key = t_ms.join();
    const axis = known.get(key) ?? axes.push(t_ms.map((at, place) => at - (t_ms[place - 1] ?? 0))) - 1;
    known.set(key, axis);
    return { ...column, axis };
  });
  return deflateSync(JSON.stringify({ ...document, axes, columns })).toString("base64");
}

/** The elements of a report file that hold its trials. */
export function trialElements(documents: readonly TrialDocument[], details: Details = { points_max: null, scope: "all", skipped: 0 }): string {
  const about = `<script type="application/json" id="pgdyno-details">${JSON.stringify(details)}</script>`;
  const trials = documents.map((document) => `<script type="text/plain" id="pgdyno-trial-${String(document.trial.id)}">${packTrial(document)}</script>`);
  return [about, ...trials].join("\n");
}
