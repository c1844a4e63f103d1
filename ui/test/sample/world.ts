import type { World } from "../../scripts/mock-server.ts";
import type { Comparison, Journal, Listed, Report } from "../../src/model.ts";
import { FACTS } from "./facts.ts";
import { sampleReport } from "./report.ts";
import { sampleTrialDocument } from "./trial-document.ts";
import { ladder } from "./factors.ts";
import { cores, coresDocument, zoneDocument } from "./capacity.ts";

const DAY_MS = 86_400_000;

function listed(report: Report, change: Partial<Listed>): Listed {
  const { experiment, trials } = report;
  return {
    id: experiment.id,
    name: experiment.name,
    question: experiment.question,
    status: experiment.status,
    started_unix_ms: experiment.started_unix_ms,
    finished_unix_ms: experiment.finished_unix_ms,
    target: "sandbox demo",
    trials_finished: trials.filter(({ status }) => status === "finished").length,
    trials_failed: trials.filter(({ status }) => status !== "finished").length,
    trials_planned: trials.length,
    answer: experiment.answer,
    tags: [],
    notes: 0,
    ...change,
  };
}

const WORDS = ["read-ahead", "huge-pages", "commit-delay", "nightly", "wal-compression", "jit"] as const;

function many(report: Report): Listed[] {
  return Array.from({ length: 60 }, (_, place) => {
    const word = WORDS[place % WORDS.length] ?? "nightly";
    return listed(report, {
      id: 100 + place,
      name: `${word}-${String(place)}`,
      question: `Does ${word} pay here?`,
      answer: place % 5 === 0 ? null : `${word} is worth +${String((place % 7) + 1)}.2 % on this host.`,
      status: (["finished", "finished", "interrupted", "killed"] as const)[place % 4] ?? "finished",
      started_unix_ms: report.experiment.started_unix_ms - place * DAY_MS,
      finished_unix_ms: report.experiment.started_unix_ms - place * DAY_MS + 2_400_000,
      target: place % 2 === 0 ? "sandbox demo" : "db1.example:5432",
      tags: place % 3 === 0 ? ["nightly"] : place % 4 === 0 ? ["db1", "keep"] : [],
      notes: place % 9 === 0 ? 2 : 0,
    });
  });
}

export const COMPARISON: Comparison = {
  basis: "blocks",
  confidence: 0.95,
  smallest_effect: 0.02,
  pairs: [
    {
      a: "experiment 7, stock",
      b: "experiment 7, memory",
      rows: [
        { metric: "tps", larger_is_better: true, a: { mean: 1870, low: 1820, high: 1920, n: 3 }, b: { mean: 2210, low: 2150, high: 2270, n: 3 }, ratio: 1.18, effect: { ratio: 1.182, ratio_low: 1.151, ratio_high: 1.214, verdict: "better", blocks: 3 }, why_no_interval: null, failed: [0, 0], tried: [3, 3] },
        { metric: "p95_ms", larger_is_better: false, a: { mean: 33, low: 31, high: 35, n: 3 }, b: { mean: 28, low: 27, high: 29, n: 3 }, ratio: 0.85, effect: { ratio: 0.848, ratio_low: 0.81, ratio_high: 0.89, verdict: "better", blocks: 3 }, why_no_interval: null, failed: [0, 0], tried: [3, 3] },
        { metric: "wal_bytes_per_tx", larger_is_better: false, a: { mean: 5200, low: 5000, high: 5400, n: 3 }, b: { mean: 5210, low: 5100, high: 5300, n: 3 }, ratio: 1.002, effect: { ratio: 1.002, ratio_low: 0.992, ratio_high: 1.012, verdict: "same", blocks: 3 }, why_no_interval: null, failed: [0, 0], tried: [3, 3] },
        { metric: "energy_j_per_tx", larger_is_better: false, a: null, b: { mean: 0.02, low: null, high: null, n: 1 }, ratio: null, effect: null, why_no_interval: "only one side has it", failed: [0, 0], tried: [3, 3] },
      ],
      why_no_verdict: null,
      differs: [{ what: "shared_buffers", a: "128MB", b: "8GB" }],
    },
  ],
};

const about = (value: number) => ({ value, low: value * 0.94, high: value * 1.06 });
/** What fits the points of the sample's ladder. */
const LAW = {
  usl: { lambda: about(118), sigma: about(0.02), kappa: about(0.0005), peak_x: about(44.3), peak_tps: about(1851), spread: 0.012 },
  why_no_usl: null,
};

/** A store of a running, a finished and many older experiments. */
export function sampleWorld(): World {
  const finished = sampleReport();
  const curve = ladder();
  curve.experiment.id = 8;
  curve.capacity = [60_000, 930].map(zoneDocument);
  curve.curves = curve.curves?.map((each) => ({ ...each, ...LAW })) ?? [];
  const running = sampleReport();
  running.experiment.id = 9;
  running.experiment.name = "Which read-ahead for the nightly load?";
  running.experiment.status = "running";
  running.experiment.finished_unix_ms = null;
  const cpus = cores();
  const reports = new Map([finished, curve, running, cpus].map((report) => [report.experiment.id, report]));
  const changed: Journal[] = [
    {
      number: 1, purpose: "apply vm.dirty_background_bytes", by: "root", since_unix_ms: finished.experiment.started_unix_ms, alive: false, kept: "until-restored",
      changes: [{ knob: "vm.dirty_background_bytes", place: "/proc/sys/vm/dirty_background_bytes", was: "0", set_to: "67108864", now: "67108864", state: "in-force", until_reboot: true }],
    },
  ];
  return {
    reports,
    trial: (report, id) => {
      const trial = report.trials.find((each) => each.id === id);
      return trial === undefined ? null : sampleTrialDocument(report, trial);
    },
    experiments: [
      listed(running, { trials_finished: 11, trials_failed: 0, answer: null, started_unix_ms: finished.experiment.started_unix_ms + DAY_MS }),
      listed(curve, { tags: ["capacity"] }),
      listed(finished, { tags: ["keep"], notes: 1 }),
      listed(finished, { id: 6, started_unix_ms: finished.experiment.started_unix_ms - 90 * DAY_MS, finished_unix_ms: null, name: "<img src=x onerror=\"window.pgdynoHit=4\">", question: "</script><script>window.pgdynoHit=5</script>", answer: null, tags: ["<b>bold</b>"], target: "x\"><svg onload=alert(1)>" }),
      ...many(finished),
    ],
    lacks_answers: false,
    notes: [{ id: 1, written_unix_ms: finished.experiment.started_unix_ms + 7_200_000, text: "The host had a new kernel since the day before.\nSee the ticket of the operators." }],
    comparison: COMPARISON,
    capacity: coresDocument,
    targets: [
      {
        name: "sandbox demo",
        experiments: [7, 8, 9],
        why_not_known: null,
        is_advice_due: false,
        changed,
        facts: FACTS,
        advice: { format: "pgdyno-advice/1", severe: true, skipped: [], not_judged: [], silent: 12, advice: [
          { rule: "wal-compression", severity: "worthwhile", setting: { knob: "wal_compression", value: "lz4" }, now: "off", recommended: "lz4", why: "Full-page images are 62 % of the WAL here.", commands: ["pgdyno apply wal_compression=lz4"] },
          { rule: "huge-pages", severity: "severe", setting: { knob: "huge_pages", value: "on" }, now: "try", recommended: "on", why: "shared_buffers is 8 GB and no huge page is in use.", commands: [] },
        ] },
      },
      { name: "db1.example:5432", experiments: [101], changed: null, why_not_known: "while an experiment runs, servers are not asked, for that would disturb it", facts: null, advice: null, is_advice_due: false },
    ],
    changed_on_host: changed,
    why_not_known: null,
    servers_asked: true,
    progress: { trials_finished: 11, trials_failed: 0, trials_planned: 21, elapsed_s: 2260, left_s: 2100, current: { treatment: "read-ahead", block: 2, phase: "measuring" }, decided: [{ treatment: "memory", verdict: "better" }], phase: "measuring" },
    refuses: false,
    cuts: false,
    is_broken: false,
  };
}
