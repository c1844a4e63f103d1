import type { Heat, Layer, Mark, Report, Trial, TrialColumn, TrialDocument } from "../../src/model.ts";
import { TRIAL_FORMAT } from "../../src/model.ts";
import { seeded, type Random } from "./random.ts";

type Shape = (second: number, random: Random) => number;

const around = (level: number, spread: number): Shape => (_second, random) => Math.max(0, level * (1 + spread * random.normal()));
const wave = (level: number, spread: number, period: number): Shape => (second, random) =>
  Math.max(0, level * (1 + spread * Math.sin((second / period) * 2 * Math.PI) + 0.03 * random.normal()));
/** Zero but for the seconds of a checkpoint. */
const checkpoint = (level: number): Shape => (second, random) => (second % 150 >= 40 && second % 150 < 85 ? level * (1 + 0.1 * random.normal()) : 0);

const GB = 1024 ** 3;

const SHAPES: readonly [metric: string, label: string | null, unit: string, layer: Layer, title: string, shape: Shape][] = [
  ["cpu.user_ratio", "all", "ratio", "host", "CPU: user", wave(0.52, 0.1, 60)],
  ["cpu.system_ratio", "all", "ratio", "host", "CPU: system", wave(0.17, 0.15, 45)],
  ["cpu.softirq_ratio", "all", "ratio", "host", "CPU: softirq", around(0.03, 0.2)],
  ["cpu.iowait_ratio", "all", "ratio", "host", "CPU: iowait", wave(0.09, 0.5, 150)],
  ["cpu.steal_ratio", "all", "ratio", "host", "CPU: steal", around(0.004, 0.5)],
  ["cpu.user_ratio", "cpu0", "ratio", "host", "CPU: user", around(0.55, 0.1)],
  ["cpu.user_ratio", "cpu1", "ratio", "host", "CPU: user", around(0.49, 0.1)],
  ["cpu.run_queue", null, "", "host", "CPU: run queue", (second, random) => Math.round(around(7, 0.4)(second, random))],
  ["memory.available_bytes", null, "bytes", "host", "memory: available", wave(21 * GB, 0.04, 400)],
  ["memory.cached_bytes", null, "bytes", "host", "memory: cached", wave(18 * GB, 0.05, 500)],
  ["memory.dirty_bytes", null, "bytes", "host", "memory: dirty", wave(0.9 * GB, 0.6, 75)],
  ["disk.read_bytes_per_s", "nvme0n1", "bytes/s", "host", "disk: read", around(38e6, 0.2)],
  ["disk.write_bytes_per_s", "nvme0n1", "bytes/s", "host", "disk: write", (second, random) => around(61e6, 0.2)(second, random) + checkpoint(90e6)(second, random)],
  ["disk.util_ratio", "nvme0n1", "ratio", "host", "disk: util", wave(0.6, 0.4, 150)],
  ["psi.io.some_ratio", null, "ratio", "host", "pressure: io some", wave(0.12, 0.6, 150)],
  ["wal.bytes_per_s", null, "bytes/s", "server", "WAL: bytes", wave(24e6, 0.3, 150)],
  ["wal.full_page_images_per_s", null, "per second", "server", "WAL: full page images", checkpoint(2400)],
  ["checkpoints.blocks_written_per_s", null, "per second", "server", "checkpoints: blocks written", checkpoint(5200)],
  ["bgwriter.blocks_written_per_s", null, "per second", "server", "background writer: blocks written", around(310, 0.3)],
  ["sessions.active", null, "", "server", "sessions: active", (second, random) => Math.round(around(28, 0.1)(second, random))],
  ["db.blocks_hit_per_s", "all", "per second", "server", "database: blocks hit", around(412_000, 0.05)],
  ["replication.slot_retained_bytes", "standby <b>1</b>", "bytes", "server", "replication: slot retained", around(16e6, 0.1)],
];

const WAITS: readonly [name: string, shape: Shape][] = [
  ["CPU", around(9, 0.15)], ["LWLock", wave(7, 0.4, 80)], ["IO", wave(6, 0.5, 150)], ["Client", around(3, 0.2)], ["Lock", around(1.6, 0.5)], ["IPC", around(0.5, 0.4)],
];

const EVENTS: typeof WAITS = [
  ["CPU", around(9, 0.15)], ["LWLock: WALWrite", wave(6, 0.4, 80)], ["IO: WalSync", wave(4, 0.5, 150)], ["Client: ClientRead", around(3, 0.2)], ["IO: DataFileRead", around(2, 0.3)],
  ["Lock: transactionid", around(1.6, 0.5)], ["LWLock: BufferMapping", around(1, 0.4)], ["IPC: BgworkerShutdown", around(0.5, 0.4)], ["Timeout: VacuumDelay", around(0.2, 0.4)], ["other", around(0.1, 0.4)],
];

function column([metric, label, unit, layer, title, shape]: (typeof SHAPES)[number], t_ms: number[], random: Random): TrialColumn {
  return { metric, label, unit, layer, title, t_ms, values: t_ms.map((at, place) => (place % 97 === 96 ? null : Number(shape(at / 1000, random).toPrecision(5)))) };
}

function marks(seconds: number): Mark[] {
  const found: Mark[] = [{ at_ms: 0, until_ms: null, kind: "gap", text: "pg_stat_io io.read_ms_per_s: track_io_timing is off" }];
  found.push({ at_ms: 0, until_ms: null, kind: "gap", text: "perf.dtlb_*_walk_cycles: the events of this CPU (AMD family 25) are not known" });
  for (let at = 40; at < seconds; at += 150) found.push({ at_ms: at * 1000, until_ms: Math.min(seconds, at + 45) * 1000, kind: "checkpoint", text: "checkpoint: asked for, or WAL was full" });
  for (let at = 95; at < seconds; at += 210) found.push({ at_ms: at * 1000, until_ms: Math.min(seconds, at + 12) * 1000, kind: "vacuum", text: "autovacuum: up to 2 at once" });
  found.push({ at_ms: 70_000, until_ms: 74_000, kind: "disturbance", text: "the hypervisor took up to 9 % of the CPUs" });
  found.push({ at_ms: 110_000, until_ms: null, kind: "gap", text: "pg_stat_database: no answer within a second" });
  return found.toSorted((a, b) => a.at_ms - b.at_ms);
}

function heat(seconds: number, random: Random): Heat {
  const edges_ms = Array.from({ length: 25 }, (_, level) => 2 * 1.25 ** level);
  const t_s = Array.from({ length: Math.floor(seconds / 2) }, (_, place) => 30 + (place + 1) * 2).filter((end) => end <= seconds);
  const counts = t_s.map((second) => {
    const middle = 8 + (second % 150 >= 40 && second % 150 < 85 ? 3 : 0);
    return edges_ms.slice(1).map((_, level) => Math.round(Math.max(0, 4000 * Math.exp(-((level - middle) ** 2) / 9) + (level > middle ? 12 * random.uniform() : 0))));
  });
  return { from_s: 30, t_s, edges_ms, counts };
}

/** A trial of a sample report with everything beside it; longer than the trial itself where
 * `seconds` says so. */
export function sampleTrialDocument(report: Report, trial: Trial, seconds = trial.series.t_s.length, withHeat = true): TrialDocument {
  const random = seeded(trial.id + 1000);
  const host_ms = Array.from({ length: seconds }, (_, place) => (place + 1) * 1000 + 3);
  const server_ms = host_ms.map((at) => at + 21);
  const load_ms = Array.from({ length: seconds }, (_, place) => (place + 1) * 1000);
  const again = (values: readonly (number | null)[]) => load_ms.map((_, place) => values[place % Math.max(1, values.length)] ?? null);
  const load: TrialColumn[] = [
    { metric: "tps", label: null, unit: "TPS", layer: "load", title: "throughput", t_ms: load_ms, values: again(trial.series.tps) },
    { metric: "p95_ms", label: null, unit: "ms", layer: "load", title: "response time, p95", t_ms: load_ms, values: again(trial.series.p95_ms) },
  ];
  const sessions = ([name, shape]: (typeof WAITS)[number]) => ({ name, values: server_ms.map((at) => Number(shape(at / 1000, random).toFixed(2))) });
  const treatment = report.treatments.find(({ name }) => name === trial.treatment);
  return {
    format: TRIAL_FORMAT,
    experiment_id: report.experiment.id,
    trial: { ...trial, series: { t_s: [], tps: [], p95_ms: [] }, title: treatment?.title ?? null, settings: treatment?.settings ?? [] },
    load_begun_unix_ms: trial.started_unix_ms,
    warmup_s: trial.warmup_s,
    measured_s: seconds - trial.warmup_s,
    series: [...load, ...SHAPES.map((shape) => column(shape, shape[3] === "host" ? host_ms : server_ms, random))],
    marks: marks(seconds),
    waits: { t_ms: server_ms, types: WAITS.map(sessions), events: EVENTS.map(sessions) },
    statements: [
      { query_id: "-4721185093411", query: "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2", mean_sessions: 11.2, max_sessions: 24, share_ratio: 0.47, calls: 214_000, mean_ms: 4.2 },
      { query_id: "83310227111", query: null, mean_sessions: 7.1, max_sessions: 18, share_ratio: 0.31, calls: 214_000, mean_ms: 2.6 },
      { query_id: "99120", query: "<img src=x onerror=\"window.pgdynoHit=3\">", mean_sessions: 5.3, max_sessions: 11, share_ratio: 0.22, calls: 900, mean_ms: 19.4 },
    ],
    errors: trial.errors,
    distribution: treatment?.distribution ?? [],
    latency_heat: withHeat ? heat(seconds, random) : null,
  };
}
