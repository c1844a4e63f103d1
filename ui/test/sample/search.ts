import type { Report, SearchStep, Treatment, Trial } from "../../src/model.ts";
import { DECISION, reportAround } from "./report.ts";
import { percentilesAt, STARTED } from "./trials.ts";

const LEVELS: Record<string, string[]> = {
  shared_buffers: ["128MB", "1GB", "4GB"],
  max_wal_size: ["1GB", "4GB", "16GB"],
  random_page_cost: ["4", "1.1"],
};

/** Levels by number, and the figure: none where the server did not start. */
const TRIED: [string, number[], number | null][] = [
  ["reference", [0, 0, 0], 1010],
  ["advice", [1, 1, 1], 1300],
  ["pgtune", [1, 2, 0], 1240],
  ["candidate 3", [2, 2, 1], null],
  ["candidate 4", [2, 1, 1], 1520],
  ["candidate 5", [0, 2, 1], 1180],
  ["candidate 4", [2, 1, 1], 1480],
  ["candidate 6", [2, 0, 1], 1150],
  ["candidate 7", [2, 1, 0], 1530],
  ["candidate 8", [1, 0, 0], 1060],
];

/** The trial that breaks the bound. */
const BROKEN = 8;

function treatmentOf(like: Treatment, name: string, levels: number[], figure: number | null): Treatment {
  return {
    ...like, name, title: name === "reference" ? "As it is" : name, reason: null, settings: [], against: null, step: null, total: null, step_p95: null,
    levels: Object.entries(LEVELS).map(([factor, values], index) => ({ factor, level: values[levels[index] ?? 0] ?? "" })),
    trials_finished: figure === null ? 0 : 1, trials_failed: figure === null ? 1 : 0, trials_excluded: 0,
    metric: null, tps: null, percentiles: figure === null ? null : percentilesAt(figure), figures: figure === null ? {} : { tps: figure },
  };
}

/** A search of ten trials: one failed, one broke a bound, the best was measured twice. */
export function searched(): Report {
  const report = reportAround([], 2);
  const like = report.treatments[0];
  if (like === undefined) throw new Error("the sample has no treatment");
  const first = TRIED.filter(([name], index) => TRIED.findIndex(([other]) => other === name) === index);
  report.treatments = first.map(([name, levels, figure]) => treatmentOf(like, name, levels, figure));
  report.trials = TRIED.map(([treatment, , tps], index): Trial => ({
    id: index + 1, block: Math.floor(index / 5) + 1, position: (index % 5) + 1, treatment, status: tps === null ? "failed" : "finished",
    reason: tps === null ? "the server did not start" : null, started_unix_ms: STARTED + index * 160_000, tps, committed: (tps ?? 0) * 120, failed: 0,
    errors: [], percentiles: tps === null ? null : percentilesAt(tps), settled: true, warmup_s: 30, measured_s: 120, cross_check: null, disturbances: [],
    excluded: false, server_variant: null, unsettled_s: null, figures: tps === null ? {} : { tps }, series: { t_s: [], tps: [], p95_ms: [] },
  }));
  const best = ["reference", "advice", "advice", "advice", "candidate 4", "candidate 4", "candidate 4", "candidate 4", "candidate 4", "candidate 4"];
  const path = TRIED.map(([treatment, , figure], index): SearchStep => {
    const of = best[index] ?? "";
    const at = of === "reference" ? 1010 : of === "advice" ? 1280 : 1490;
    const broken = index === BROKEN ? [{ bound: "p99_ms <= 20", figure: 24.5 }] : [];
    return { trial: index + 1, treatment, figure, broken, best: { treatment: of, figure: at, interval: [at * 0.96, at * 1.04] } };
  });
  report.search = {
    best: { treatment: "candidate 4", figure: 1490, interval: [1430, 1550] }, reference: { treatment: "reference", figure: 1015, interval: [960, 1070] },
    importance: [{ factor: "shared_buffers", part: 0.61 }, { factor: "max_wal_size", part: 0.38 }, { factor: "random_page_cost", part: 0.01 }], path,
  };
  report.experiment = {
    ...report.experiment, name: "tune-search", question: "Which settings are the best for this load?", design: "search", reference: "reference", blocks_planned: 2, blocks_finished: 0,
    answer: "tpcb-like with 32 clients: of 10 trials the best is “candidate 4” with 1,490 TPS, +46.8 % to the reference. Chosen from many, it looks better than it is: new trials must confirm it.",
    factors: Object.entries(LEVELS).map(([name, levels]) => ({ name, title: name, condition: false, levels })),
  };
  delete report.experiment.headline;
  report.decision = { ...DECISION, metric: "tps", metric_title: "throughput", metric_unit: "TPS", larger_is_better: true, noise_floor: null, degrees_of_freedom: 0 };
  return report;
}
