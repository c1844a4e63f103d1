// Generated from the types that are serialised, by `make types`: do not edit.
// Units stand last in a name. `null` means "not known" or "not applicable", never zero. Optional fields are
// missing in files of earlier versions.

/** What intervals are made from, and so what they hold for. */
export type Basis = "blocks" | "trials" | "two-trials";

/** An estimate that may be without a value or bounds. */
export type Bounded = {
  /** The estimate; `null` where it lies at infinity. */
  value: number | null,
  /** Lower bound. */
  low: number | null,
  /** Upper bound; `null` where the data set none. */
  high: number | null,
};

/** An answer. */
export type CapacityAnswer = {
  /** Number of the experiment. */
  experiment: number,
  /** Its name. */
  name: string,
  /** Factors that set CPUs; none where they were not varied. */
  cpu_factors: Array<string>,
  /** Factors that set clients. */
  client_factors: Array<string>,
  /** Confidence of the intervals, each by itself. */
  confidence: number,
  /** A row for each combination of the other factors. */
  rows: Array<CapacityRow>,
};

/** An answer as other programs get it, with the question. */
export type CapacityDocument = {
  /** "pgdyno-capacity/1". */
  format: string,
  /** Wanted throughput, transactions per second. */
  tps: number,
  /** The longest 99th percentile of response time that counts, ms. */
  p99_ms: number | null,
  /** What an hour of a CPU costs. */
  price_per_cpu_hour: number | null,
  /** What an hour of the host costs. */
  price_per_host_hour: number | null,
  /** The answer. */
  answer: CapacityAnswer,
};

/** The answer for one combination of the other factors. */
export type CapacityRow = {
  /** Factor and level of the others; empty where there are none. */
  of: Array<[string, string]>,
  /** Which curve: "usl", "power-law", "two-levels"; `null` without one. */
  model: "usl" | "power-law" | "two-levels" | null,
  /** What it goes by. */
  measured: Array<Measured>,
  /** What came out. */
  found: Found,
  /** What was left out, and why. */
  notes: Array<string>,
};

/** B held against A. */
export type ComparePair = {
  /** The reference. */
  a: string,
  /** What is held against it. */
  b: string,
  /** Figures in the order they were asked for. */
  rows: Array<CompareRow>,
  /** What is not the same on both sides. */
  differs: Array<Difference>,
};

/** One figure of a pair. */
export type CompareRow = {
  /** The figure, unit last. */
  metric: string,
  /** Whether a larger value is the better one. */
  larger_is_better: boolean,
  /** Of the reference; `null` where it was not measured. */
  a: SideFigure | null,
  /** Of what is held against it. */
  b: SideFigure | null,
  /** B / A by the means alone, where there is no interval. */
  ratio: number | null,
  /** B / A with its interval. */
  effect: Effect | null,
  /** Why there is no interval. */
  why_no_interval: string | null,
  /** Trials that were left out for having been disturbed and lying far off. */
  left_out: number,
};

/** An answer. */
export type Comparison = {
  /** What its intervals hold for. */
  basis: Basis,
  /** Confidence with which the intervals of one figure hold together. */
  confidence: number,
  /** Differences below it do not matter. */
  smallest_effect: number,
  /** One, or one for each treatment that both experiments have. */
  pairs: Array<ComparePair>,
};

/** The clients' count held against the server's. */
export type CrossCheck = {
  /** Transactions that the clients saw committed, warm-up included. */
  client: number,
  /** What the server counted in the same time, without what pgdyno itself asked and without the commits of parallel workers. */
  server: number,
  /** What parallel workers committed for themselves; trials of earlier versions do not have it. */
  by_workers?: number,
  /** How far the two may be apart: in flight at the end, and background work. */
  allowed_difference: number,
  /** Whether they agree within that. */
  agrees: boolean,
};

/** A trial that runs now. */
export type Current = {
  /** Name of its treatment. */
  treatment: string,
  /** 1-based. */
  block: number,
  /** What is done of it now. */
  phase: string,
};

/** Throughput over the levels of a factor. */
export type Curve = {
  /** Levels of the other factors in words; `null` where there are none. */
  title: string | null,
  /** Name of the factor. */
  factor: string,
  /** What x is, for people: "clients", "CPUs", or the factor's title. */
  x: string,
  /** By x, upwards. */
  points: Array<CurvePoint>,
  /** The Universal Scalability Law fitted to all trials. */
  usl: UslCurve | null,
  /** Why there is none. */
  why_no_usl: string | null,
  /** Client counts near the peak and not past the knee. */
  zone: Zone | null,
  /** Why there is none. */
  why_no_zone: string | null,
};

/** A point of a curve. */
export type CurvePoint = {
  /** Clients or CPUs. */
  x: number,
  /** Name of the treatment. */
  treatment: string,
  /** Throughput; with a single trial its bounds are the value itself. */
  tps: Interval,
  /** Mean of the trials' 99th percentiles. */
  p99_ms: number | null,
  /** Trials. */
  n: number,
};

/** The verdict on a treatment. */
export type Decided = {
  /** Name of the treatment. */
  treatment: string,
  /** Never "undecided". */
  verdict: Verdict,
};

/** How it was decided. */
export type Decision = {
  /** Of all intervals together. */
  confidence: number,
  /** Smallest effect that matters. */
  smallest_effect: number,
  /** Spread between trials of one treatment. */
  noise_floor: number | null,
  /** Of that spread. */
  degrees_of_freedom: number,
  /** In plain words. */
  method: string,
  /** Name of the figure that decides. */
  metric?: string,
  /** What it is, in words: "throughput". */
  metric_title?: string,
  /** Its unit; empty for a number without one. */
  metric_unit?: string,
  /** Whether a larger value of it is the better one. */
  larger_is_better?: boolean,
  /** "after-blocks" or "when-decided". */
  stop?: "after-blocks" | "when-decided",
  /** The same in words. */
  stop_rule?: string,
  /** Finished trials that were left out. */
  excluded?: Array<LeftOut>,
  /** The smallest effect, 0.03 = 3 %, that so many blocks find with probability `power`; `null` where it was looked at
   * after each block, and where nothing is known of the spread. */
  minimum_detectable_effect?: number | null,
  /** That probability. */
  power?: number,
};

/** What the details of trials in a report file are. */
export type Details = {
  /** Points that a column has at most; `null` where it has all. */
  points_max: number | null,
  /** Which metrics. */
  scope: Scope,
  /** Trials that were wanted and have none, for the file would be too large. */
  left_out: number,
};

/** Something that is not the same on both sides. */
export type Difference = {
  /** What, as "PostgreSQL" or a knob's id. */
  what: string,
  /** On the side of A. */
  a: string,
  /** On the side of B. */
  b: string,
};

/** A point of a response-time distribution. */
export type DistributionPoint = {
  /** 0 to 100. */
  percentile: number,
  /** Milliseconds. */
  ms: number,
};

/** A ratio with its interval and what follows from it. */
export type Effect = {
  /** treatment / reference: 1.10 is ten percent more. */
  ratio: number,
  /** Lower bound of the simultaneous interval. */
  ratio_low: number,
  /** Upper bound. */
  ratio_high: number,
  /** What may be said. */
  verdict: Verdict,
  /** Blocks in which both sides finished. */
  blocks: number,
};

/** How often an error came. */
export type ErrorCount = {
  /** Five letters. */
  sqlstate: string,
  /** How often. */
  count: number,
  /** The server's message of the first one. */
  message?: string | null,
  /** Where that was: script and line, or the kind of transaction. */
  place?: string | null,
};

/** An estimate with its bounds. */
export type Estimate = {
  /** The estimate. */
  value: number,
  /** Lower bound. */
  low: number,
  /** Upper bound; `null` where there is none. */
  high: number | null,
};

/** The experiment. */
export type Experiment = {
  /** Number in the store. */
  id: number,
  /** Name. */
  name: string,
  /** Question. */
  question: string,
  /** Answer in one sentence. */
  answer: string,
  /** Design by name. */
  design: "cumulative" | "one-at-a-time" | "a-b" | "a-a" | "full-factorial" | "fractional" | "screening" | "ladder" | "load",
  /** What became of it: "running", "finished" or "interrupted"; where [`Report::tell_life`] was told of its process also
   * "killed" or "running or killed". */
  status: "running" | "killed" | "running or killed" | "finished" | "interrupted",
  /** When it began. */
  started_unix_ms: number,
  /** When it ended. */
  finished_unix_ms: number | null,
  /** Blocks planned. */
  blocks_planned: number,
  /** Blocks in which every tested treatment has been tried. */
  blocks_finished: number,
  /** Seed. The lab keeps it below 2^53, which is where the numbers of a browser end. */
  seed: number,
  /** Name of the reference. */
  reference: string,
  /** Name of the treatment that the answer is about. */
  headline?: string | null,
  /** Factors by name with their titles, in the order of the file. */
  factors?: Array<Factor>,
  /** The load. */
  workload: Workload,
  /** The experiment file. */
  file: string,
  /** Commands that repeat it. */
  repeat: Array<string>,
};

/** A fact, as pgdyno-host and pgdyno-server find them, with its group. */
export type Fact = {
  /** "host", "server", "load" or "sandbox". */
  group: "host" | "server" | "load" | "sandbox",
  /** Name with the unit last. */
  name: string,
  /** Value, if it is known: a text, number, truth value, or a list or an object of those. */
  value: JsonValue | null,
  /** Why not, if it is not. */
  missing: string | null,
  /** Where it was read. */
  source: string,
};

/** A factor. */
export type Factor = {
  /** Unique name. */
  name: string,
  /** For people. */
  title: string,
  /** A condition: its levels are not held against one another. */
  along: boolean,
  /** Names of its levels, the reference first. */
  levels: Array<string>,
};

/** What a level of a factor is worth, or two levels together. */
export type FactorEffect = {
  /** For people. */
  title: string,
  /** Name of the factor. */
  factor: string,
  /** Name of the level. */
  level: string,
  /** Name of the level that it is held against. */
  against: string,
  /** The level of another factor, for an interaction. */
  other: LevelOf | null,
  /** A main effect is the ratio to the first level; an interaction how much more the two are worth together than the
   * product of each alone. `null` where trials are missing or there is nothing to judge the error by. */
  effect: Effect | null,
};

/** What came out for one combination of the other factors. */
export type Found = { "kind": "needs",
  /** CPUs. */
  cpus: Estimate,
  /** Connections. */
  connections: Estimate,
  /** CPUs needed / largest number measured. */
  extrapolates: number,
  /** Of a million transactions, in the currency of the price. */
  cost_per_million: Estimate | null,
} | { "kind": "unreachable",
  /** Throughput at its peak, where it has one. */
  peak_tps: number | null,
  /** CPUs at which its upper bounds would reach it. */
  cpus_low: number | null,
} | { "kind": "zone",
  /** Most throughput, mean over trials. */
  peak_tps: number,
  /** With so many clients. */
  peak_clients: number,
  /** Lowest client count of the happy zone. */
  lowest_clients: number,
  /** Highest. */
  highest_clients: number,
  /** Whether more clients might still give more: the largest measured count is in the zone. */
  open: boolean,
  /** Whether the peak reaches what is wanted. */
  reaches: boolean,
} | { "kind": "no",
  /** Why. */
  why: string,
};

/** How many transactions of a stretch of time had a response time between two edges. */
export type Heat = {
  /** Where the first stretch begins: the end of the warm-up. */
  from_s?: number,
  /** Ends of the stretches, after the start of the load. */
  t_s: Array<number>,
  /** Lower edges of the classes, and the upper one of the last. */
  edges_ms: Array<number>,
  /** For each stretch a count for each class. */
  counts: Array<Array<number>>,
};

/** A mean with its interval. */
export type Interval = {
  /** Mean of the trials. */
  mean: number,
  /** Lower bound. */
  low: number,
  /** Upper bound. */
  high: number,
};

/** What one process has changed, as `pgdyno status --json` prints it. */
export type Journal = {
  /** Number that `pgdyno restore` and `pgdyno confirm` take. */
  number: number,
  /** What was done. */
  purpose: string,
  /** Who did it. */
  by: string | null,
  /** Since when. */
  since_unix_ms: number,
  /** Whether that process still runs. */
  alive: boolean,
  /** How long the changes stay; `null` of what a killed process left. */
  kept: Keep | null,
  /** What was changed. */
  changes: Array<StatusLine>,
};

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

/** How long changes stay that their process does not restore itself. */
export type Keep = "until-restored" | { "unless-confirmed": {
    /** Milliseconds since 1970. */
    until_unix_ms: number,
  } };

/** A trial that finished and is left out of every mean and effect. */
export type LeftOut = {
  /** Number in the store. */
  trial: number,
  /** 1-based. */
  block: number,
  /** Name of the treatment. */
  treatment: string,
  /** How many robust standard deviations it lies off; `null` where its figure has no ratio to others. */
  deviations: number | null,
  /** What disturbed it. */
  disturbances: Array<string>,
};

/** A level of a factor, both by name. */
export type LevelOf = {
  /** Name of the factor; "step" for steps. */
  factor: string,
  /** Name of the level. */
  level: string,
};

/** The list of experiments. */
export type List = {
  /** The newest first. */
  experiments: Array<Listed>,
  /** Whether all answers and plans that can be known are there; the others come with a later request. */
  is_whole: boolean,
};

/** An experiment of the list. */
export type Listed = {
  /** Number in the store. */
  id: number,
  /** Its name. */
  name: string,
  /** The question; empty where its record cannot be read. */
  question: string,
  /** Whether it runs or has ended, and how. */
  status: string,
  /** When it began. */
  started_unix_ms: number,
  /** When it ended. */
  finished_unix_ms: number | null,
  /** Name of the target; empty where its record cannot be read. */
  target: string,
  /** Its finished trials. */
  trials_finished: number,
  /** Those that failed or do not hold. */
  trials_failed: number,
  /** Trials at most. */
  trials_planned: number | null,
  /** The answer in one sentence. */
  answer: string | null,
  /** By the alphabet. */
  tags: Array<string>,
  /** How many notes there are. */
  notes: number,
};

/** Something that happened, or that is missing. */
export type Mark = {
  /** After the start of the load. */
  at_ms: number,
  /** Its end, where it has one. */
  until_ms: number | null,
  /** Its kind. */
  kind: MarkKind,
  /** In words. */
  text: string,
};

/** Kinds of marks. */
export type MarkKind = "checkpoint" | "vacuum" | "disturbance" | "gap";

/** The best that a number of CPUs did. */
export type Measured = {
  /** CPUs. */
  cpus: number,
  /** Clients with which it did best. */
  clients: number,
  /** Mean throughput over its trials. */
  tps: number,
  /** Mean 99th percentile of response time over those of its trials that have one, ms. */
  p99_ms: number | null,
  /** Trials. */
  trials: number,
};

/** A note on an experiment. */
export type Note = {
  /** Number in this store. */
  id: number,
  /** When it was written. */
  written_unix_ms: number,
  /** What it says. */
  text: string,
};

/** Response times in milliseconds: those that were measured, or that an external program has reported. */
export type Percentiles = {
  /** Mean; missing too in records of earlier versions. */
  mean_ms?: number | null,
  /** Median. */
  p50_ms: number | null,
  /** 95th percentile. */
  p95_ms: number | null,
  /** 99th percentile. */
  p99_ms: number | null,
  /** Longest. */
  max_ms: number | null,
};

/** How far an experiment is. */
export type Progress = {
  /** Its finished trials. */
  trials_finished: number,
  /** Those that failed or do not hold. */
  trials_failed: number,
  /** Trials at most. */
  trials_planned: number | null,
  /** Seconds that its process has run it. */
  elapsed_s: number | null,
  /** Seconds until its last trial ends. */
  left_s: number | null,
  /** What its process does now, where it reports it. */
  phase: string | null,
  /** The trial that runs now. */
  current: Current | null,
  /** Treatments that are decided. */
  decided: Array<Decided>,
};

/** A knob that was restored at the end. */
export type PutBack = {
  /** Id of the knob. */
  knob: string,
  /** Its file. */
  where: string,
  /** Value before. */
  was: string,
  /** Last value set. */
  set_to: string,
  /** "restored", "already", "left" or "failed". */
  outcome: "restored" | "already" | "left" | "failed",
  /** More to say. */
  detail: string | null,
};

/** A report. */
export type Report = {
  /** Format. */
  format: string,
  /** What wrote it. */
  generator: string,
  /** When. */
  generated_unix_ms: number,
  /** The experiment. */
  experiment: Experiment,
  /** How it was decided. */
  decision: Decision,
  /** Treatments, the reference first. */
  treatments: Array<Treatment>,
  /** Trials in the order they ran. */
  trials: Array<Trial>,
  /** Tables of results. */
  tables?: Array<StudyTable>,
  /** The study that is repeated, and how its findings stand here. */
  study?: Study | null,
  /** What each finding came to. */
  claims?: Array<StudyClaim>,
  /** What each level of a factor is worth over all levels of the others. */
  effects?: Array<FactorEffect>,
  /** Throughput over clients or CPUs. */
  curves?: Array<Curve>,
  /** What some throughputs take: documents of format "pgdyno-capacity/1" (docs/how-to/capacity.md), the usual one first. Whoever
   * has the catalogue of knobs puts them in; empty until then. */
  capacity?: Array<CapacityDocument>,
  /** Facts. */
  facts: Array<Fact>,
  /** What was restored. */
  put_back: Array<PutBack>,
};

/** Which metrics go along. */
export type Scope = "all" | "main";

/** Second by second. */
export type Series = {
  /** Seconds that a point stands for, where that is more than one: then `tps` is their mean and `p95_ms` the highest. */
  bucket_s?: number | null,
  /** Ends of the seconds. */
  t_s: Array<number>,
  /** Throughput. */
  tps: Array<number>,
  /** p95. */
  p95_ms: Array<number | null>,
};

/** A setting of a treatment. */
export type Setting = {
  /** Id of the knob. */
  knob: string,
  /** Asked for. */
  value: string,
  /** What the target reported. */
  effective: string | null,
  /** Layer by name. */
  layer: "postgres" | "table" | "kernel" | "memory" | "block" | "cpu" | "net",
  /** Risk by name. */
  risk: "none" | "stability" | "durability",
  /** Whether this treatment changes it. */
  changed: boolean,
};

/** A figure of one side. */
export type SideFigure = {
  /** Mean over trials, in the unit of the figure. */
  mean: number,
  /** Bounds of the mean's own interval; `null` with one trial. */
  low: number | null,
  /** Upper bound. */
  high: number | null,
  /** Trials. */
  n: number,
};

/** How a change stands. */
export type Standing = "in-force" | "as-before" | "rebooted" | "foreign" | "unknown";

/** A statement as samples of the sessions saw it, and as the server counted it; what is not known of one is `null`. */
export type Statement = {
  /** The server's number of the normalised statement. */
  query_id?: string,
  /** Its text without constants, cut, where it is known. */
  query?: string | null,
  /** Mean number of sessions that were at it, warm-up included. */
  mean_sessions?: number | null,
  /** The most in a second. */
  max_sessions?: number | null,
  /** Its part of all sessions that were at any statement. */
  share_ratio?: number | null,
  /** Executions in the measured time, as all that follows. */
  calls?: number | null,
  /** Their time together. */
  total_ms?: number | null,
  /** Time of one. */
  mean_ms?: number | null,
  /** Rows returned or changed. */
  rows?: number | null,
  /** Blocks of tables and indexes found in shared buffers. */
  shared_hit?: number | null,
  /** Blocks that were not there. */
  shared_read?: number | null,
  /** WAL written. */
  wal_bytes?: number | null,
};

/** A change and how it stands. */
export type StatusLine = {
  /** The knob. */
  knob: string,
  /** Its file. */
  place: string,
  /** The value from before. */
  was: string,
  /** What it was set to. */
  set_to: string,
  /** What it is; empty where that is not known. */
  now: string,
  /** Why it is not known. */
  why?: string | null,
  /** How it stands. */
  standing: Standing,
  /** Whether a reboot undoes it. */
  until_reboot: boolean,
};

/** A published study. */
export type Study = {
  /** Its tag. */
  source: string,
  /** Title and year. */
  title: string,
  /** How many findings this host agrees with, in a sentence without a full stop; `null` without findings. */
  summary: string | null,
};

/** What became of a finding of the study. */
export type StudyClaim = {
  /** In words. */
  text: string,
  /** Names of the treatments that it was tested on. */
  treatments: Array<string>,
  /** Names of what they were held against, one for each. */
  against: Array<string>,
  /** The figure. */
  metric: string,
  /** "better", "worse" or "same". */
  found: "better" | "worse" | "same",
  /** The ratio that the study told. */
  study_ratio: number | null,
  /** What was found here. */
  effect: Effect | null,
  /** "agrees", "disagrees", "undecided" or "not-tested". */
  outcome: "agrees" | "disagrees" | "undecided" | "not-tested",
  /** Both in a sentence without a full stop. */
  sentence: string,
};

/** A table of results. */
export type StudyTable = {
  /** Heading. */
  title: string,
  /** Heading of the first column. */
  rows: string,
  /** What the columns differ in; empty where each is a figure. */
  columns_title: string,
  /** The columns but the first. */
  columns: Array<TableColumn>,
  /** One for each combination of the levels of factors that the table does not name; those without any trial are not there. */
  blocks: Array<TableBlock>,
};

/** The part of a table for one combination of the other factors. */
export type TableBlock = {
  /** Their levels in words; `null` where the table names all factors. */
  title: string | null,
  /** Rows. */
  rows: Array<TableRow>,
};

/** A mean over trials. */
export type TableCell = {
  /** Mean. */
  mean: number,
  /** Lower bound of its interval; `null` for a single trial. */
  low: number | null,
  /** Upper bound. */
  high: number | null,
  /** Trials. */
  n: number,
};

/** A column. */
export type TableColumn = {
  /** Heading. */
  title: string,
  /** Name of the figure. */
  figure: string,
  /** Heading of that figure, with its unit. */
  figure_title: string,
};

/** A row. */
export type TableRow = {
  /** First column. */
  title: string,
  /** The others; `null` where no trial counts. */
  cells: Array<TableCell | null>,
};

/** A target. */
export type Target = {
  /** Its name. */
  name: string,
  /** Numbers of its experiments. */
  experiments: Array<number>,
  /** What is changed on it now; `null` where that is not known. */
  changed: Array<Journal> | null,
  /** Why it is not known. */
  why_not_known: string | null,
  /** Facts of its newest experiment. */
  facts: Array<Fact> | null,
  /** The document of `pgdyno advise --json`. */
  advice: unknown,
  /** It is not made yet, and comes with a later request. */
  is_advice_due: boolean,
};

/** The targets of the stored experiments. */
export type Targets = {
  /** Those of the newest experiments first. */
  targets: Array<Target>,
  /** All that is changed by a pgdyno of the host that the server runs on; `null` where that is not known. */
  changed_on_host: Array<Journal> | null,
  /** Why it is not known. */
  why_not_known: string | null,
  /** Whether servers were asked for their own settings. */
  servers_asked: boolean,
};

/** A treatment with its results. */
export type Treatment = {
  /** Unique name. */
  name: string,
  /** For people. */
  title: string,
  /** Why it was tried. */
  reason: string | null,
  /** "tested" or "not-tested". */
  status: "tested" | "not-tested",
  /** Why it was not. */
  why_not: string | null,
  /** Its settings. */
  settings: Array<Setting>,
  /** Trials that count. */
  trials_finished: number,
  /** Trials that failed or do not hold. */
  trials_failed: number,
  /** Finished trials that were left out all the same: in no mean and no effect. */
  trials_left_out?: number,
  /** Factor and level; "step" and its name for steps. */
  levels?: Array<LevelOf>,
  /** Name of the treatment that it is held against. */
  against?: string | null,
  /** Its load, where it is not the experiment's. */
  workload?: Workload | null,
  /** What else it has of its own, as ("server.pooler", "pgbouncer"). */
  around?: Array<[string, string]>,
  /** Means over its trials, by the name of the metric, as the verdicts take them. */
  figures?: { [key in string]: number },
  /** The figure that decides. */
  metric?: Interval | null,
  /** Throughput. */
  tps: Interval | null,
  /** Response times of all its trials together, where each has its histogram; else means over them. */
  percentiles: Percentiles | null,
  /** Their distribution, likewise. */
  distribution: Array<DistributionPoint>,
  /** Response times over time, of all its trials that count. */
  latency_heat?: Heat | null,
  /** Stability. */
  stability_cv: number | null,
  /** Client CPU. */
  client_cpu_us_per_tx: number | null,
  /** Server CPU. */
  server_cpu_us_per_tx: number | null,
  /** WAL. */
  wal_bytes_per_tx: number | null,
  /** The figure that decides, against the treatment before it, or the reference. */
  step: Effect | null,
  /** The figure that decides, against the reference. */
  total: Effect | null,
  /** p95 against the same as `step`. */
  step_p95: Effect | null,
};

/** A trial. */
export type Trial = {
  /** Number in the store. */
  id: number,
  /** 1-based. */
  block: number,
  /** 1-based. */
  position: number,
  /** Name of the treatment. */
  treatment: string,
  /** What became of it. */
  status: TrialStatus,
  /** Why. */
  reason: string | null,
  /** When it began. */
  started_unix_ms: number,
  /** Throughput. */
  tps: number | null,
  /** Responses that took longer are late. */
  latency_limit_ms?: number | null,
  /** Errors. */
  errors: Array<ErrorCount>,
  /** Response times. */
  percentiles: Percentiles | null,
  /** The external program that has reported throughput and response times, if one has. */
  reported_by?: string | null,
  /** Whether it was steady. */
  settled: boolean | null,
  /** Warm-up. */
  warmup_s: number,
  /** Measured time. */
  measured_s: number,
  /** The server's count. */
  cross_check: CrossCheck | null,
  /** What disturbed it. */
  disturbances: Array<string>,
  /** Whether others took CPU time from it. */
  disturbed?: boolean,
  /** Whether it is in no mean and no effect, though it finished. */
  left_out?: boolean,
  /** The server that it ran on, where that is not the target itself. */
  stand?: string | null,
  /** Seconds of the measured time that were still part of the warm-up. */
  unsettled_s?: number | null,
  /** All its figures by name. */
  figures?: { [key in string]: number },
  /** Checkpoints, vacuums and disturbances, where [`Report::mark`] has been told of them. */
  marks?: Array<Mark>,
  /** Second by second. */
  series: Series,
  /** Ended as they were meant to. */
  committed: number,
  /** Ended with an error. */
  failed: number | null,
  /** Were due in an open loop, and not begun before its end. */
  skipped?: number | null,
  /** Those of the committed ones that took longer than `latency_limit_ms`. */
  late?: number | null,
  /** Tries after the first one. */
  retries?: number | null,
  /** Those of the committed ones that were meant to end by a rollback. */
  rolled_back?: number | null,
};

/** One metric over time. */
export type TrialColumn = {
  /** Name with the unit last; "tps" and "p95_ms" are the load's. */
  metric: string,
  /** Which one of several. */
  label: string | null,
  /** For people; "ratio" goes from 0 to 1, empty for a number without a unit. */
  unit: string,
  /** "load", "host" or "server". */
  layer: "load" | "host" | "server",
  /** For people. */
  title: string,
  /** Milliseconds after the start of the load, in order. */
  t_ms: Array<number>,
  /** As many; `null` where there is no value. */
  values: Array<number | null>,
};

/** One trial with everything recorded beside it. */
export type TrialDocument = {
  /** "pgdyno-trial/1". */
  format: string,
  /** Number of its experiment. */
  experiment_id: number,
  /** The trial. */
  trial: TrialPart,
  /** When its load began, as far as it is known: when the trial did. */
  load_begun_unix_ms: number,
  /** Warm-up. */
  warmup_s: number,
  /** Measured time. */
  measured_s: number,
  /** Load first, then host, then server. */
  series: Array<TrialColumn>,
  /** In order of time. */
  marks: Array<Mark>,
  /** `null` where sessions were not looked at. */
  waits: Waits | null,
  /** The busiest first. */
  statements: Array<Statement>,
  /** Errors by SQLSTATE. */
  errors: Array<ErrorCount>,
  /** Response times of its measured time. */
  distribution?: Array<DistributionPoint>,
  /** `null` where response times were not kept for each second. */
  latency_heat: Heat | null,
};

/** A trial as a report has it, and what is told of it here alone. Its `series` is empty: the columns hold it. */
export type TrialPart = {
  /** Title of its treatment. */
  title?: string | null,
  /** Settings of its treatment with what the target reported in this trial. */
  settings?: Array<Setting>,
  /** Number in the store. */
  id: number,
  /** 1-based. */
  block: number,
  /** 1-based. */
  position: number,
  /** Name of the treatment. */
  treatment: string,
  /** What became of it. */
  status: TrialStatus,
  /** Why. */
  reason: string | null,
  /** When it began. */
  started_unix_ms: number,
  /** Throughput. */
  tps: number | null,
  /** Responses that took longer are late. */
  latency_limit_ms?: number | null,
  /** Errors. */
  errors: Array<ErrorCount>,
  /** Response times. */
  percentiles: Percentiles | null,
  /** The external program that has reported throughput and response times, if one has. */
  reported_by?: string | null,
  /** Whether it was steady. */
  settled: boolean | null,
  /** Warm-up. */
  warmup_s: number,
  /** Measured time. */
  measured_s: number,
  /** The server's count. */
  cross_check: CrossCheck | null,
  /** What disturbed it. */
  disturbances: Array<string>,
  /** Whether others took CPU time from it. */
  disturbed?: boolean,
  /** Whether it is in no mean and no effect, though it finished. */
  left_out?: boolean,
  /** The server that it ran on, where that is not the target itself. */
  stand?: string | null,
  /** Seconds of the measured time that were still part of the warm-up. */
  unsettled_s?: number | null,
  /** All its figures by name. */
  figures?: { [key in string]: number },
  /** Checkpoints, vacuums and disturbances, where [`Report::mark`] has been told of them. */
  marks?: Array<Mark>,
  /** Second by second. */
  series: Series,
  /** Ended as they were meant to. */
  committed: number,
  /** Ended with an error. */
  failed: number | null,
  /** Were due in an open loop, and not begun before its end. */
  skipped?: number | null,
  /** Those of the committed ones that took longer than `latency_limit_ms`. */
  late?: number | null,
  /** Tries after the first one. */
  retries?: number | null,
  /** Those of the committed ones that were meant to end by a rollback. */
  rolled_back?: number | null,
};

/** What became of a trial. */
export type TrialStatus = "finished" | "failed" | "invalid";

/** X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)). */
export type UslCurve = {
  /** Throughput at N = 1. */
  lambda: Bounded,
  /** Contention. */
  sigma: Bounded,
  /** Coherency. */
  kappa: Bounded,
  /** Where the curve peaks. */
  peak_x: Bounded,
  /** How high. */
  peak_tps: Bounded,
  /** Spread of the points around the curve: 0.03 = 3 %. */
  spread: number,
};

/** What may be said of a comparison. */
export type Verdict = "better" | "worse" | "same" | "undecided";

/** Sessions that waited for one type of event, or for one event. */
export type WaitSessions = {
  /** As the server names it, an event behind its type ("IO: WalSync"); `CPU` are those that ran, `other` the rest of many events. */
  name: string,
  /** Mean number of sessions in each second. */
  values: Array<number>,
};

/** What sessions waited for. */
export type Waits = {
  /** After the start of the load: ends of the seconds. */
  t_ms: Array<number>,
  /** By type, the busiest first. */
  types: Array<WaitSessions>,
  /** By event, the busiest first, and last what many smaller ones are together. */
  events?: Array<WaitSessions>,
};

/** The load. */
export type Workload = {
  /** Name. */
  name: string,
  /** Scale of the data. */
  scale: number,
  /** Clients. */
  clients: number,
  /** Threads. */
  threads: number,
  /** Warm-up. */
  warmup_s: number,
  /** Measured time. */
  measure_s: number,
};

/** The happy zone: the measured client counts with at least 95 % of the peak throughput, not past the knee of response time. */
export type Zone = {
  /** Lowest client count. */
  lowest: number,
  /** Highest client count. */
  highest: number,
  /** The client count of the zone with the most throughput. */
  best: number,
  /** The client count with the most throughput of all. */
  peak: number,
  /** The throughput there. */
  peak_tps: Interval,
  /** Highest client count not past the knee of response time. */
  knee: number | null,
  /** Why there is no knee. */
  why_no_knee: string | null,
  /** Why it begins there: "throughput" or "unmeasured". */
  lower_edge: "throughput" | "unmeasured",
  /** Why it ends there: "throughput", "knee" or "unmeasured". */
  upper_edge: "throughput" | "knee" | "unmeasured",
  /** 95 % of the peak is reached only past the knee. */
  past_knee: boolean,
};
