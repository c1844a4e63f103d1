import type { Curve, CurvePoint, Effect, FactorEffect, Report, StudyClaim, TableBlock, Treatment, Trial } from "../../src/model.ts";
import { DECISION, reportAround } from "./report.ts";
import { seeded } from "./random.ts";
import { percentilesAt, STARTED } from "./trials.ts";

const CLIENTS = [1, 4, 16, 32, 64, 128];
const POOLERS = ["none", "pgbouncer"];
const BLOCKS = 3;

/** Without a pooler throughput falls beyond 44 clients, with one it hardly does. */
function trueTps(clients: number, pooler: string): number {
  const kappa = pooler === "none" ? 0.0005 : 0.00005;
  const lambda = pooler === "none" ? 118 : 112;
  return (lambda * clients) / (1 + 0.02 * (clients - 1) + kappa * clients * (clients - 1));
}

function effect(ratio: number): Effect {
  const [ratio_low, ratio_high] = [ratio * 0.985, ratio * 1.015];
  const verdict = ratio_low > 1 ? "better" : ratio_high < 1 ? "worse" : "undecided";
  return { ratio, ratio_low, ratio_high, verdict, blocks: BLOCKS };
}

function nameOf(clients: number, pooler: string): string {
  return `clients=${String(clients)}, pooler=${pooler}`;
}

function p99At(clients: number, tps: number): number {
  return (clients / tps) * 1000 * 3.1;
}

function treatmentOf(like: Treatment, clients: number, pooler: string): Treatment {
  const mean = trueTps(clients, pooler);
  const against = trueTps(clients, "none");
  const step = pooler === "none" ? null : effect(mean / against);
  return {
    ...like,
    name: nameOf(clients, pooler),
    title: `${String(clients)} clients, ${pooler === "none" ? "no pooler" : pooler}`,
    reason: null,
    settings: [],
    trials_finished: BLOCKS,
    trials_failed: 0,
    trials_excluded: clients === 4 && pooler === "none" ? 1 : 0,
    levels: [{ factor: "clients", level: String(clients) }, { factor: "pooler", level: pooler }],
    against: pooler === "none" ? null : nameOf(clients, "none"),
    workload: { name: "tpcb-like", scale: 1000, clients, threads: 4, warmup_s: 30, measure_s: 120 },
    environment: [["server.pooler", pooler]],
    figures: { tps: mean, p99_ms: p99At(clients, mean) },
    metric: { mean, low: mean * 0.98, high: mean * 1.02 },
    tps: { mean, low: mean * 0.98, high: mean * 1.02 },
    percentiles: { ...percentilesAt(mean), p99_ms: p99At(clients, mean) },
    step,
    total: step,
    step_p95: null,
  };
}

function trialsOf(treatments: readonly Treatment[]): Trial[] {
  const random = seeded(5);
  const trials = Array.from({ length: BLOCKS }, (_, block) =>
    treatments.map((treatment, place): Trial => {
      const tps = (treatment.tps?.mean ?? 0) * (1 + 0.008 * random.normal());
      return {
        id: block * treatments.length + place + 1, block: block + 1, position: place + 1, treatment: treatment.name, status: "finished",
        reason: null, started_unix_ms: STARTED + (block * treatments.length + place) * 160_000, tps, committed: Math.round(tps * 120), failed: 0,
        errors: [], percentiles: percentilesAt(tps), settled: true, warmup_s: 30, measured_s: 120, cross_check: null, disturbances: [],
        excluded: false, server_variant: null, unsettled_s: null, figures: { tps }, series: { t_s: [1, 2, 3], tps: [tps, tps, tps], p95_ms: [2, 2, 2] },
      };
    }),
  ).flat();
  const far = trials[2];
  if (far !== undefined) Object.assign(far, { excluded: true, disturbances: ["CPU steal 12 %"], unsettled_s: 4 });
  return trials;
}

function curveOf(pooler: string): Curve {
  const points: CurvePoint[] = CLIENTS.map((x) => {
    const mean = trueTps(x, pooler);
    return { x, treatment: nameOf(x, pooler), tps: { mean, low: mean * 0.97, high: mean * 1.03 }, p99_ms: { mean: p99At(x, mean), low: p99At(x, mean) * 0.9, high: p99At(x, mean) * 1.1 }, n: BLOCKS };
  });
  const bounded = (value: number) => ({ value, low: value * 0.9, high: value * 1.1 });
  const plain = pooler === "none";
  const peak_x = plain ? 44.3 : 140;
  return {
    title: `Pooler ${pooler}`, factor: "clients", x: "clients", points,
    usl: {
      lambda: bounded(plain ? 118 : 112), sigma: bounded(0.02), kappa: { ...bounded(plain ? 0.0005 : 0.00005), high: plain ? 0.0006 : null },
      peak_x: bounded(peak_x), peak_tps: bounded(trueTps(peak_x, pooler)), spread: 0.012,
    },
    why_no_usl: null,
    highest: { x: plain ? 32 : 128, tps: { mean: 1850, low: 1820, high: 1880 } },
    zone: {
      lowest: plain ? 32 : 64, highest: plain ? 64 : 128, best: plain ? 32 : 128, knee: null, why_no_knee: "measure fewer clients",
      lower_edge: "throughput", upper_edge: plain ? "throughput" : "unmeasured", past_knee: false,
    },
    why_no_zone: null,
  };
}

const CLAIMS: StudyClaim[] = [
  {
    text: "A pooler pays with many clients", treatments: [nameOf(128, "pgbouncer")], against: [nameOf(128, "none")], event: null, metric: "tps", found: "better",
    study_ratio: 1.6, effect: effect(1.9), outcome: "agrees", sentence: "[pooler-2021] found +60.0 %; here +90.0 % (between +87.2 and +92.9): agrees",
  },
  {
    text: "It costs nothing with a single client", treatments: [nameOf(1, "pgbouncer")], against: [nameOf(1, "none")], event: null, metric: "tps", found: "same",
    study_ratio: null, effect: effect(0.949), outcome: "disagrees", sentence: "[pooler-2021] found no difference that matters; here −5.1 % (between −6.5 and −3.7): disagrees",
  },
  {
    text: "It pays on average", treatments: CLIENTS.map((n) => nameOf(n, "pgbouncer")), against: CLIENTS.map((n) => nameOf(n, "none")), event: null, metric: "tps", found: "better",
    study_ratio: null, effect: effect(1.01), outcome: "undecided", sentence: "[pooler-2021] found it better; here +1.0 % over 6 pairs of treatments (between −0.5 and +2.5): not decided",
  },
  {
    text: "Transaction pooling beats session pooling", treatments: [], against: [], event: null, metric: "tps", found: "better",
    study_ratio: null, effect: null, outcome: "not-tested", sentence: "[pooler-2021] found it better; not tested here: no treatment has these levels",
  },
];

const EFFECTS: FactorEffect[] = [
  { title: "Pooler pgbouncer", factor: "pooler", level: "pgbouncer", against: "none", other: null, effect: effect(1.2) },
  { title: "Huge pages on", factor: "pages", level: "on", against: "off", other: null, effect: effect(1.004) },
  { title: "Pooler pgbouncer with Huge pages on", factor: "pooler", level: "pgbouncer", against: "none", other: { factor: "pages", level: "on" }, effect: null },
];

/** Two factors, one of them a condition along which curves are drawn; repeats a study. */
export function factors(): Report {
  const report = reportAround([], BLOCKS);
  const like = report.treatments[0];
  if (like === undefined) throw new Error("the sample has no treatment");
  report.treatments = CLIENTS.flatMap((clients) => POOLERS.map((pooler) => treatmentOf(like, clients, pooler)));
  report.trials = trialsOf(report.treatments);
  report.experiment = {
    ...report.experiment,
    name: "Poolers over clients", question: "From how many clients on does a pooler pay?", design: "full-factorial",
    answer: "With “128 clients, pgbouncer” throughput rose from 1,320 to 2,500 TPS. Of 4 findings of [pooler-2021], this host agrees with 1, disagrees with 1, 1 is not decided, 1 is not tested.",
    reference: nameOf(1, "none"), headline: nameOf(128, "pgbouncer"), blocks_planned: 12,
    factors: [{ name: "clients", title: "Clients", condition: true, levels: CLIENTS.map(String) }, { name: "pooler", title: "Pooler", condition: false, levels: POOLERS }],
  };
  report.decision = {
    ...DECISION, metric: "tps", metric_title: "throughput", metric_unit: "TPS", larger_is_better: true, stop: "when-decided",
    stop_rule: "evaluated after each block; intervals hold at all of these looks", minimum_detectable_effect: null, power: 0.8,
    excluded: [{ trial: 3, block: 1, treatment: nameOf(4, "none"), disturbances: ["CPU steal 12 %"] }],
  };
  const cell = (clients: number, pooler: string) => {
    const mean = trueTps(clients, pooler);
    return { mean, low: mean * 0.98, high: mean * 1.02, n: BLOCKS };
  };
  report.tables = [{
    title: "Throughput by clients and pooler", rows: "Clients", columns_title: "Pooler",
    columns: POOLERS.map((title) => ({ title, figure: "tps", figure_title: "TPS" })),
    blocks: [{ title: null, rows: CLIENTS.map((n) => ({ title: String(n), cells: POOLERS.map((pooler) => (n === 4 && pooler === "none" ? null : cell(n, pooler))) })) }],
  }];
  const byPages = (title: string): TableBlock => ({
    title,
    rows: ["off", "on"].map((pages, row) => ({ title: pages, cells: POOLERS.map((pooler) => cell(32 * (row + 1), pooler)) })),
  });
  const [table] = report.tables;
  if (table === undefined) throw new Error("the sample has no table");
  report.charts = [
    { form: "lines", published: "From 16 clients on the pooler was ahead", claims: [0, 1], table: { ...table, title: "Throughput by clients, a line for each pooler" } },
    { form: "bars", published: null, claims: [], table: { ...table, title: "Throughput by page size", rows: "Huge pages", blocks: [byPages("ext4"), byPages("xfs")] } },
    { form: "heat", published: null, claims: [2], table: { ...table, title: "Where throughput is" } },
  ];
  const level = (t: number) => (t <= 62 ? 870 : 1500) * (1 + 0.03 * Math.sin(t));
  report.timelines = [{
    treatment: nameOf(1, "none"), trials: 4, warmup_s: 2,
    seconds: Array.from({ length: 122 }, (_, at) => ({ t_s: at + 1, tps: level(at + 1) })),
    shifts: [{ title: "jit off", t_s: 62, took_s: 0.4, before_tps: 870, after_tps: 1500, standstills: 0, effect: effect(1.72), trend: null }],
  }];
  report.whole_charts = [{ form: "timeline", title: "jit is switched off under load", published: "From 870 to 1,500 per second at once", claims: [] }];
  report.study = { source: "pooler-2021", title: "Poolers measured (2021)", summary: "Of 4 findings of [pooler-2021], this host agrees with 1, disagrees with 1, 1 is not decided, 1 is not tested" };
  report.claims = CLAIMS;
  report.effects = EFFECTS;
  report.curves = POOLERS.map(curveOf);
  return report;
}

/** Commands whose time is the result: no transactions, no response times. */
export function jobs(): Report {
  const report = reportAround([], BLOCKS);
  const like = report.treatments[0];
  if (like === undefined) throw new Error("the sample has no treatment");
  const made = (name: string, seconds: number, against: string | null): Treatment => ({
    ...like, name, title: name, settings: [], trials_finished: BLOCKS, tps: null, percentiles: null, distribution: [],
    figures: { job_s: seconds }, metric: { mean: seconds, low: seconds * 0.98, high: seconds * 1.02 }, against,
    step: against === null ? null : { ...effect(0.79), verdict: "better" }, total: against === null ? null : { ...effect(0.79), verdict: "better" }, step_p95: null,
  });
  report.treatments = [made("reference", 15.6, null), made("parallel", 12.3, "reference")];
  report.experiment = { ...report.experiment, design: "one-at-a-time", headline: "parallel", answer: "The job took 12.3 s instead of 15.6 s with “parallel” (−21.0 %).", factors: [] };
  report.decision = { ...DECISION, metric: "job_s", metric_title: "the time of the job", metric_unit: "s", larger_is_better: false };
  return report;
}

/** A ladder: nothing is held against anything else. */
export function ladder(): Report {
  const report = factors();
  report.experiment = { ...report.experiment, design: "ladder", headline: nameOf(32, "none") };
  report.treatments = report.treatments
    .filter(({ name }) => name.endsWith("none"))
    .map((treatment) => ({ ...treatment, against: null, step: null, total: null }));
  report.trials = report.trials.filter(({ treatment }) => treatment.endsWith("none"));
  report.curves = [curveOf("none")].map((curve) => ({ ...curve, title: null, usl: null, why_no_usl: "the scalability law needs at least 4 different N and there are 3" }));
  return { ...report, study: null, claims: [], effects: [], timelines: [], charts: [], whole_charts: [], tables: [] };
}
