// Generated from the types that are serialised, by `make types`: do not edit.
// Units are last in a name. `null` is "not known" or "not applicable", not zero.
// Optional fields are missing in files of earlier versions.

/** What intervals are made from, and so what they hold for. */
export type Basis = "blocks" | "trials" | "two-trials";

/** An estimate that may be without a value or bounds. */
export type Bounded = {
  /** The estimate; `null` where it is at infinity. */
  value: number | null,
  /** Lower bound; `null` where even that is at infinity. */
  low: number | null,
  /** Upper bound; `null` where the data set none. */
  high: number | null,
};

/** A bound that a trial or a treatment breaks. */
export type BrokenBound = {
  /** The bound as the file has it. */
  bound: string,
  /** The figure that is beyond it; `null` where it was not measured. */
  figure: number | null,
};

/** What a wanted throughput needs, by the trials of one experiment. */
export type CapacityAnswer = {
  /** Number of the experiment in the store. */
  experiment: number,
  /** Name of the experiment. */
  name: string,
  /** Names of the factors that set CPUs; empty where CPUs were not varied. */
  cpu_factors: Array<string>,
  /** Names of the factors that set clients. */
  client_factors: Array<string>,
  /** Confidence of the intervals, each by itself. */
  confidence: number,
  /** A row for each combination of the other factors. */
  rows: Array<CapacityRow>,
};

/** An answer as other programs get it, with the question. */
export type CapacityDocument = {
  /** Always "pgdyno-capacity/1". */
  format: string,
  /** Wanted throughput, transactions per second. */
  tps: number,
  /** Number of CPUs of which the throughput is asked for. */
  cpus: number | null,
  /** The longest 99th percentile of response time that counts, ms. */
  p99_ms: number | null,
  /** What an hour of a CPU costs. */
  price_per_cpu_hour: number | null,
  /** What an hour of the host costs. */
  price_per_host_hour: number | null,
  /** Answer to the question. */
  answer: CapacityAnswer,
};

/** What the CPUs that were asked for give. */
export type CapacityGives = {
  /** Throughput, transactions per second. */
  tps: Estimate,
  /** Connections with which they give it. */
  connections: Estimate,
  /** The CPUs / largest number measured, at most 2. */
  extrapolates: number,
  /** Cost of a million transactions at that throughput, in the currency of the price; `null`
   * without a price. */
  cost_per_million: Estimate | null,
};

/** The answer for one combination of the other factors. */
export type CapacityRow = {
  /** Factor and level of the others; empty where there are none. */
  of: Array<[string, string]>,
  /** Kind of the fitted curve: "usl", "power-law", "two-levels"; `null` without one. */
  model: "usl" | "power-law" | "two-levels" | null,
  /** Measured points that the curve goes by, one for each number of CPUs. */
  measured: Array<Measured>,
  /** Need or zone that follows from them, or why there is none. */
  found: Found,
  /** What the CPUs give that were asked for; `null` where none were, or nothing measured speaks
   * for an answer. */
  gives: CapacityGives | null,
  /** What to know of it: how far it is extrapolated, where the curve has its peak. */
  remark: string,
  /** Trials and levels that were excluded, with the reason, a sentence each. */
  notes: Array<string>,
};

/** Whether a change is still in effect. */
export type ChangeState = "in-force" | "as-before" | "rebooted" | "foreign" | "unknown";

/** Whether this host agrees with a study's finding. */
export type ClaimOutcome = "agrees" | "disagrees" | "undecided" | "not-tested";

/** Two treatments or trials, figure by figure. */
export type ComparePair = {
  /** The reference as text: "experiment 3, memory". */
  a: string,
  /** What is compared with the reference, as text. */
  b: string,
  /** Figures in the order in which they were asked for. */
  rows: Array<CompareRow>,
  /** Reason as text why no figure has a verdict; `null` where some may. */
  why_no_verdict: string | null,
  /** Settings and facts that are not the same on both sides. */
  differs: Array<Difference>,
};

/** One figure of both sides, and their ratio. */
export type CompareRow = {
  /** Name of the figure, which ends with its unit. */
  metric: string,
  /** Whether a larger value is the better one. */
  larger_is_better: boolean,
  /** Figure of the reference; `null` where it was not measured. */
  a: SideFigure | null,
  /** Figure of what is compared with the reference; `null` where it was not measured. */
  b: SideFigure | null,
  /** B / A by the means alone; `null` where a side was not measured. */
  ratio: number | null,
  /** B / A with its interval; `null` where there is no interval. */
  effect: Effect | null,
  /** Reason as text; `null` where there is an interval. */
  why_no_interval: string | null,
  /** Trials that count as failed for A and for B: that failed, do not hold, lack the figure or
   * have none of what there should be more of; and those of the other side that have none of
   * what there should be less of. */
  failed: [number, number],
  /** Trials of A and of B among which these were counted: of one experiment those in blocks in
   * which both were tried. */
  tried: [number, number],
};

/** The pairs of a comparison, and the rules that they were judged by. */
export type Comparison = {
  /** What its intervals are made from, and so what they hold for. */
  basis: Basis,
  /** Confidence with which the intervals of one figure hold together. */
  confidence: number,
  /** Smallest effect that matters, 0.03 = 3 %. */
  smallest_effect: number,
  /** One pair, or one for each treatment that both experiments have. */
  pairs: Array<ComparePair>,
};

/** The clients' count of commits compared with the server's. */
export type CrossCheck = {
  /** Transactions that the clients saw committed, warm-up included. */
  client: number,
  /** What the server counted in the same time, without what pgdyno itself asked and without the
   * commits of parallel workers. */
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
  /** Name of the treatment that it tries. */
  treatment: string,
  /** Number of its block, from 1. */
  block: number,
  /** What is done of it now: "warm-up". */
  phase: string,
};

/** Throughput over the levels of a factor. */
export type Curve = {
  /** Levels of the other factors as text; `null` where there are none. */
  title: string | null,
  /** Name of the factor that x is a level of. */
  factor: string,
  /** What x is, for people: "clients", "CPUs", or the factor's title. */
  x: string,
  /** Points with rising x, one for each treatment. */
  points: Array<CurvePoint>,
  /** Where throughput is highest; `null` where none was measured. */
  highest: Highest | null,
  /** The Universal Scalability Law fitted to all trials; `null` where it does not fit. */
  usl: UslCurve | null,
  /** Why there is no fitted law. */
  why_no_usl: string | null,
  /** Client counts near the peak and not past the knee. */
  zone: Zone | null,
  /** Why there is no zone. */
  why_no_zone: string | null,
};

/** Throughput at one number of clients or CPUs. */
export type CurvePoint = {
  /** Number of clients or CPUs. */
  x: number,
  /** Name of the treatment with that number. */
  treatment: string,
  /** Throughput; with a single trial its bounds are the value itself. */
  tps: Interval,
  /** Mean of the trials' 99th percentiles; with a single one its bounds are the value itself. */
  p99_ms: Interval | null,
  /** Number of trials that the means are of. */
  n: number,
};

/** The verdict on a treatment. */
export type Decided = {
  /** Name of the treatment that was decided. */
  treatment: string,
  /** Verdict, never "undecided". */
  verdict: Verdict,
};

/** Rules and noise that the verdicts follow from. */
export type Decision = {
  /** Confidence of all intervals together: 0.95. */
  confidence: number,
  /** Smallest effect that matters, 0.03 = 3 %. */
  smallest_effect: number,
  /** Spread between trials of one treatment, 0.03 = 3 %; `null` where trials are too few to see
   * it. */
  noise_floor: number | null,
  /** Degrees of freedom of the noise floor. */
  degrees_of_freedom: number,
  /** How the intervals are made, in sentences. */
  method: string,
  /** Name of the figure that decides. */
  metric?: string,
  /** Name of that figure within a sentence: "throughput". */
  metric_title?: string,
  /** Unit of that figure; empty for a number without one. */
  metric_unit?: string,
  /** Whether a larger value of that figure is the better one. */
  larger_is_better?: boolean,
  /** Rule for the end: "after-blocks", "when-decided" or "when-gain-decided". */
  stop?: "after-blocks" | "when-decided" | "when-gain-decided",
  /** The rule for the end as a sentence. */
  stop_rule?: string,
  /** Finished trials that are in no mean and no effect. */
  excluded?: Array<Excluded>,
  /** The smallest effect, 0.03 = 3 %, that so many blocks find with probability `power`; `null`
   * where it was evaluated after each block, and where nothing is known of the spread. */
  minimum_detectable_effect?: number | null,
  /** How long trials should measure; `null` where too little is known of their seconds, and where
   * treatments took turns. */
  trial_length?: TrialLength | null,
  /** Probability with which `minimum_detectable_effect` is found: 0.8. */
  power?: number,
};

/** What the details of trials in a report file are. */
export type Details = {
  /** Points that a column has at most; `null` where it has all. */
  points_max: number | null,
  /** Metrics that have columns in them. */
  scope: Scope,
  /** Trials without details, because the file would be too large. */
  skipped: number,
};

/** Something that is not the same on both sides. */
export type Difference = {
  /** Name of the setting or fact: "PostgreSQL", or a knob's id. */
  what: string,
  /** Value on the side of A. */
  a: string,
  /** Value on the side of B. */
  b: string,
};

/** A point of a response-time distribution. */
export type DistributionPoint = {
  /** Percentage of the transactions at or below `ms`, 0 to 100. */
  percentile: number,
  /** Response time in milliseconds. */
  ms: number,
  /** Lower bound of its interval of 95 %; `null` where it is not known, and in records of earlier
   * versions. */
  low_ms?: number | null,
  /** Upper bound; `null` likewise, or where the longest response time may be below it. */
  high_ms?: number | null,
};

/** What ends a zone of client counts on one side. */
export type Edge = "throughput" | "knee" | "unmeasured";

/** A ratio with its interval and what follows from it. */
export type Effect = {
  /** treatment / reference: 1.10 is ten percent more. */
  ratio: number,
  /** Lower bound of the simultaneous interval. */
  ratio_low: number,
  /** Upper bound of the simultaneous interval. */
  ratio_high: number,
  /** Where the interval is, compared with 1 and the smallest effect that matters. */
  verdict: Verdict,
  /** Blocks in which both sides finished. */
  blocks: number,
};

/** An error code with its number of transactions. */
export type ErrorCount = {
  /** Code of the error, five characters: "40001". */
  sqlstate: string,
  /** How often the code came in the measured time. */
  count: number,
  /** The server's message of the first one. */
  message?: string | null,
  /** Where that was: script and line, or the kind of transaction. */
  place?: string | null,
};

/** An estimate with its bounds. */
export type Estimate = {
  /** The estimate itself, in the unit of what is estimated. */
  value: number,
  /** Lower bound of the interval. */
  low: number,
  /** Upper bound of the interval; `null` where the data set none. */
  high: number | null,
};

/** A trial that finished and is in no mean and no effect, because its figure is not above zero. */
export type Excluded = {
  /** Number of the trial in the store. */
  trial: number,
  /** Number of its block, from 1. */
  block: number,
  /** Name of the treatment that it tried. */
  treatment: string,
  /** What disturbed the trial, a sentence each. */
  disturbances: Array<string>,
};

/** Question, answer, plan and progress of an experiment. */
export type Experiment = {
  /** Number of the experiment in the store. */
  id: number,
  /** Name from the experiment file; several experiments of a store may have the same. */
  name: string,
  /** Question that the experiment answers, as its file has it. */
  question: string,
  /** Answer to the question in one sentence. */
  answer: string,
  /** Name of the design, which fixes what is compared with what. */
  design: "cumulative" | "one-at-a-time" | "a-b" | "a-a" | "full-factorial" | "fractional" | "screening" | "switchback" | "ladder" | "search" | "load",
  /** Its state: "running", "finished" or "interrupted"; where [`Report::set_life`] was given the
   * state of its process also "killed" or "running or killed". */
  status: "running" | "killed" | "running or killed" | "finished" | "interrupted",
  /** Time of its begin, since 1970. */
  started_unix_ms: number,
  /** Time of its end, since 1970; `null` while it runs, and where it was killed. */
  finished_unix_ms: number | null,
  /** Blocks planned; fewer are run where it may stop early. */
  blocks_planned: number,
  /** Blocks in which every tested treatment has been tried. */
  blocks_finished: number,
  /** Seed. The lab keeps it below 2^53, which is where the numbers of a browser end. */
  seed: number,
  /** Name of the treatment that the others are compared with. */
  reference: string,
  /** Name of the treatment that the answer is about; `null` where it is about none. */
  headline?: string | null,
  /** Factors by name with their titles, in the order of the file. */
  factors?: Array<Factor>,
  /** Load of every treatment that has none of its own. */
  workload: Workload,
  /** Text of the experiment file; empty where there is none. */
  file: string,
  /** Shell commands that repeat the experiment, in order. */
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
  /** File, query or program that the fact comes from: "/proc/meminfo". */
  source: string,
};

/** Something that an experiment varies in levels. */
export type Factor = {
  /** Name, unique in the experiment. */
  name: string,
  /** Title that is shown in place of the name. */
  title: string,
  /** Whether it is a condition, whose levels are not compared with one another. */
  condition: boolean,
  /** Names of its levels, the reference first. */
  levels: Array<string>,
};

/** The effect of a level of a factor, or of two levels together. */
export type FactorEffect = {
  /** Level, or both levels of an interaction, as they are shown. */
  title: string,
  /** Name of the factor that the level is of. */
  factor: string,
  /** Name of the level, never the first one. */
  level: string,
  /** Name of the level that it is compared with. */
  against: string,
  /** The level of another factor, for an interaction. */
  other: LevelOf | null,
  /** A main effect is the ratio to the first level; an interaction how much more the two change
   * together than the product of each alone. `null` where trials are missing or there is nothing
   * to judge the error by. */
  effect: Effect | null,
};

/** The answer for one combination of the other factors: a need, a zone, or why there is none. */
export type Found = { "kind": "needs",
  /** CPUs that the wanted throughput needs. */
  cpus: Estimate,
  /** Connections that it needs with those CPUs. */
  connections: Estimate,
  /** CPUs needed / largest number measured, at most 2. */
  extrapolates: number,
  /** Cost of a million transactions, in the currency of the price; `null` without a price. */
  cost_per_million: Estimate | null,
} | { "kind": "beyond",
  /** CPUs at which the upper bounds of the laws reach it; `null` where these never do. */
  cpus_low: number | null,
  /** CPUs at which the lower bounds of the laws reach it; `null` where these never do. */
  cpus_high: number | null,
  /** Throughput at the peak of the curve, where that is below what is wanted. */
  peak_tps: number | null,
  /** CPUs at that peak; `null` without one, or where the curve comes ever nearer to it. */
  peak_cpus: number | null,
  /** The peak's CPUs / largest number measured: above 1 nobody has seen it. */
  peak_extrapolates: number | null,
} | { "kind": "zone",
  /** Most throughput at any client count, by blocks that had no say in which it is. */
  peak_tps: number,
  /** Lower bound of its interval; `null` of a single value. */
  peak_tps_low: number | null,
  /** Upper bound of its interval; `null` of a single value. */
  peak_tps_high: number | null,
  /** Client count with the most throughput. */
  peak_clients: number,
  /** Lowest client count of the happy zone. */
  lowest_clients: number,
  /** Highest client count of the happy zone. */
  highest_clients: number,
  /** Whether more clients might still give more: the largest measured count is in the zone. */
  open: boolean,
  /** Whether the peak reaches the throughput that is asked for; `null` where that is within
   * its interval or there is none. */
  reaches: boolean | null,
} | { "kind": "no",
  /** Reason in a sentence. */
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

/** Where throughput is highest, and what it is there by blocks that had no say in where: the
 * largest of some means is larger than what it is the mean of. A single block has its say, and no
 * interval. */
export type Highest = {
  /** Number of clients or CPUs, or level. */
  x: number,
  /** Throughput; of a single block its bounds are the value itself. */
  tps: Interval,
};

/** A factor's part of what the settings changed. */
export type Importance = {
  /** Name of the factor. */
  factor: string,
  /** Its part; those of all factors are 1 together. */
  part: number,
};

/** A mean with its interval. */
export type Interval = {
  /** Mean over the trials, in the unit of the metric. */
  mean: number,
  /** Lower bound of the interval. */
  low: number,
  /** Upper bound of the interval. */
  high: number,
};

/** What one process has changed, as `pgdyno status --json` prints it. */
export type Journal = {
  /** Number that `pgdyno restore` and `pgdyno confirm` take. */
  number: number,
  /** What the changes were made for: "run demo". */
  purpose: string,
  /** User that made them; `null` in journals of earlier versions. */
  by: string | null,
  /** Time at which the journal was begun, since 1970. */
  since_unix_ms: number,
  /** Whether the process that made them still runs. */
  alive: boolean,
  /** How long the changes stay; `null` of what a killed process left. */
  kept: Keep | null,
  /** Changes with what they are now. */
  changes: Array<StatusLine>,
};

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

/** How long changes stay that their process does not restore itself. */
export type Keep = "until-restored" | { "unless-confirmed": {
    /** Milliseconds since 1970. */
    until_unix_ms: number,
  } };

/** A level of a factor, both by name. */
export type LevelOf = {
  /** Name of the factor; "step" for steps. */
  factor: string,
  /** Name of the level: "128kB". */
  level: string,
};

/** The list of experiments. */
export type List = {
  /** Experiments, the newest first. */
  experiments: Array<Listed>,
  /** Whether all answers and plans that can be known are there; the others come with a later
   * request. */
  is_whole: boolean,
};

/** An experiment of the list. */
export type Listed = {
  /** Number of the experiment in the store. */
  id: number,
  /** Name from the experiment file; not unique. */
  name: string,
  /** The question; empty where its record cannot be read. */
  question: string,
  /** State of the experiment: "running", "killed", "running or killed", "finished" or
   * "interrupted". */
  status: string,
  /** Time of its begin, since 1970. */
  started_unix_ms: number,
  /** Time of its end, since 1970; `null` while it runs, and where it was killed. */
  finished_unix_ms: number | null,
  /** Name of the target; empty where its record cannot be read. */
  target: string,
  /** Trials that finished and count. */
  trials_finished: number,
  /** Trials that failed or whose figures do not hold. */
  trials_failed: number,
  /** Trials of the plan, at most; `null` where it is not known yet. */
  trials_planned: number | null,
  /** Answer in one sentence; `null` where it is not known yet. */
  answer: string | null,
  /** Tags in alphabetical order. */
  tags: Array<string>,
  /** Number of its notes. */
  notes: number,
};

/** Something that happened, or that is missing. */
export type Mark = {
  /** Its begin, after the start of the load. */
  at_ms: number,
  /** Its end, after the start of the load; `null` for an instant. */
  until_ms: number | null,
  /** What happened, as a kind. */
  kind: MarkKind,
  /** What happened, as text. */
  text: string,
};

/** Kinds of marks. */
export type MarkKind = "checkpoint" | "vacuum" | "disturbance" | "gap";

/** The client count with the most throughput at one number of CPUs. */
export type Measured = {
  /** Number of CPUs that the server may use. */
  cpus: number,
  /** Client count with the most throughput at that number of CPUs. */
  clients: number,
  /** Mean throughput, transactions per second, of the client counts that other blocks chose. */
  tps: number,
  /** Mean 99th percentile of response time over those of its trials that have one, ms. */
  p99_ms: number | null,
  /** Number of blocks that the mean is of. */
  blocks: number,
};

/** A note on an experiment. */
export type Note = {
  /** Number in this store, from 1. */
  id: number,
  /** Time at which it was written, since 1970. */
  written_unix_ms: number,
  /** Text as it was written, at most 10,000 characters. */
  text: string,
};

/** Response times in milliseconds: those that were measured, or that an external program has
 * reported. A percentile beyond which fewer than ten transactions lie is not known. */
export type Percentiles = {
  /** Mean; missing too in records of earlier versions. */
  mean_ms?: number | null,
  /** 50th percentile, the median. */
  p50_ms: number | null,
  /** 95th percentile. */
  p95_ms: number | null,
  /** 99th percentile. */
  p99_ms: number | null,
  /** Longest response time of all. */
  max_ms: number | null,
};

/** Progress of an experiment. */
export type Progress = {
  /** Trials that finished and count. */
  trials_finished: number,
  /** Trials that failed or whose figures do not hold. */
  trials_failed: number,
  /** Trials of the plan, at most; `null` where it is not known. */
  trials_planned: number | null,
  /** Seconds that its process has run it; `null` where none does. */
  elapsed_s: number | null,
  /** Seconds until its last trial ends; `null` where that is not known. */
  left_s: number | null,
  /** What its process does now, in a word; `null` where it does not report it. */
  phase: string | null,
  /** The trial that runs now; `null` between two. */
  current: Current | null,
  /** Treatments with a verdict other than "undecided". */
  decided: Array<Decided>,
};

/** An experiment with all that follows from its trials. */
export type Report = {
  /** Always "pgdyno-report/1". */
  format: string,
  /** Name and version of the program that made the report. */
  generator: string,
  /** Time at which the report was made, since 1970. */
  generated_unix_ms: number,
  /** The experiment that the report is about. */
  experiment: Experiment,
  /** Rules and noise that the verdicts follow from. */
  decision: Decision,
  /** Treatments, the reference first. */
  treatments: Array<Treatment>,
  /** Trials in the order they ran. */
  trials: Array<Trial>,
  /** Throughput over time where something was done to the server while loads ran. */
  timelines?: Array<Timeline>,
  /** Charts of the study. */
  charts?: Array<StudyChart>,
  /** What the study says of the waterfall and of throughput over time. */
  whole_charts?: Array<WholeChart>,
  /** Tables of the study, or else the figure that decides by the first two factors. */
  tables?: Array<StudyTable>,
  /** The study that is repeated, and how its findings are here. */
  study?: Study | null,
  /** Outcome of each finding of the study, in the order of the file. */
  claims?: Array<StudyClaim>,
  /** Main effects of the levels, then interactions of two. */
  effects?: Array<FactorEffect>,
  /** Curves of throughput over clients or CPUs, one for each combination of the other factors. */
  curves?: Array<Curve>,
  /** What some throughputs take: documents of format "pgdyno-capacity/1"
   * (docs/how-to/capacity.md), the usual one first. Whoever has the catalogue of knobs puts them
   * in; empty until then. */
  capacity?: Array<CapacityDocument>,
  /** What a search has found, path and importance; whoever has the catalogue of knobs puts it in.
   * `null` until then, and where the experiment is not a search. */
  search?: Searched | null,
  /** Facts of host, server and load, as of before the first trial. */
  facts: Array<Fact>,
  /** Knobs that were restored at the end. */
  restored: Array<Restored>,
};

/** A knob that was restored at the end. */
export type Restored = {
  /** Id of the knob in the catalogue. */
  knob: string,
  /** Where the value is: the path of a file, or a command such as "ALTER SYSTEM work_mem". */
  where: string,
  /** Value before the experiment, which is restored. */
  was: string,
  /** Last value that pgdyno set. */
  set_to: string,
  /** "restored", "already", "left" or "failed". */
  outcome: "restored" | "already" | "left" | "failed",
  /** Why it was left or failed; `null` where there is no more to it. */
  detail: string | null,
};

/** Metrics that are in the details of trials. */
export type Scope = "all" | "main";

/** A trial of a search. */
export type SearchStep = {
  /** Number of the trial in the store. */
  trial: number,
  /** Name of the treatment that it tried. */
  treatment: string,
  /** The figure that decides; `null` where the trial did not finish, or its figures do not hold. */
  figure: number | null,
  /** Bounds that it breaks, as `p99_ms <= 20`, each with its figure where it has one. */
  broken: Array<BrokenBound>,
  /** The best of the trials up to this one; `null` before the first that did not fail. */
  best: TreatmentEstimate | null,
};

/** What a search has found so far. */
export type Searched = {
  /** The best that was tried; `null` where every trial failed. */
  best: TreatmentEstimate | null,
  /** The state before the search. */
  reference: TreatmentEstimate | null,
  /** Factors, the most important first; empty before there is anything to go by. */
  importance: Array<Importance>,
  /** Trials in the order they ran. */
  path: Array<SearchStep>,
};

/** Throughput and response time for each second of a trial. */
export type Series = {
  /** Seconds that a point represents, where that is more than one: then `tps` is their mean and
   * `p95_ms` the highest. */
  bucket_s?: number | null,
  /** Ends of the seconds, after the start of the load. */
  t_s: Array<number>,
  /** Transactions committed in each second. */
  tps: Array<number>,
  /** 95th percentile of the response time in each second; `null` where nothing was committed. */
  p95_ms: Array<number | null>,
};

/** A setting of a treatment. */
export type Setting = {
  /** Id of the knob in the catalogue: "vm.swappiness". */
  knob: string,
  /** Value as the experiment file has it: "8GB". */
  value: string,
  /** Value that the target reported after it was set; `null` where no trial has it. */
  effective: string | null,
  /** Layer that the knob belongs to. */
  layer: "postgres" | "table" | "kernel" | "memory" | "block" | "cpu" | "net",
  /** What the value may cost: the machine's stability, or the durability of commits. */
  risk: "none" | "stability" | "durability",
  /** Whether this treatment adds or changes it against what it is compared with. */
  changed: boolean,
};

/** An event, and throughput before and after it. */
export type Shift = {
  /** What it was: "jit off". */
  title: string,
  /** When it began, from the start of the load, mean over the trials. */
  t_s: number,
  /** How long it took, mean over the trials. */
  took_s: number,
  /** Throughput from the event before, or from the begin of the measured time; `null` where too
   * few seconds are known. */
  before_tps: number | null,
  /** Throughput up to the event after, or to the end. */
  after_tps: number | null,
  /** Trials in which nothing was committed any more after it. */
  standstills: number,
  /** After against before, each trial compared with itself; `null` with a single block, and of a
   * load at a standstill. */
  effect: Effect | null,
  /** What the trend before it would have changed by itself, from the middle of one side to that
   * of the other, as a share of the throughput: 0.1 is a tenth more. `null` where no trend is
   * known that matters; with one there is no verdict. */
  trend: number | null,
};

/** A figure of one side. */
export type SideFigure = {
  /** Mean over trials, in the unit of the figure. */
  mean: number,
  /** Lower bound of the mean's own interval; `null` with one trial. */
  low: number | null,
  /** Upper bound of the mean's own interval; `null` with one trial. */
  high: number | null,
  /** Number of trials that the mean is of. */
  n: number,
};

/** A statement as samples of the sessions saw it, and as the server counted it; what is not known
 * of one is `null`. */
export type Statement = {
  /** The server's number of the normalised statement. */
  query_id?: string,
  /** Its text without constants, cut, where it is known. */
  query?: string | null,
  /** Mean number of sessions that were at it, warm-up included. */
  mean_sessions?: number | null,
  /** Largest number of sessions that were at it in a second. */
  max_sessions?: number | null,
  /** Share of all sessions that were at any statement, 0 to 1. */
  share_ratio?: number | null,
  /** Executions in the measured time, as all that follows. */
  calls?: number | null,
  /** Execution time of all calls together. */
  total_ms?: number | null,
  /** Execution time of a call, mean over `calls`. */
  mean_ms?: number | null,
  /** Rows returned or changed by all calls. */
  rows?: number | null,
  /** Blocks of tables and indexes found in shared buffers. */
  shared_hit?: number | null,
  /** Blocks that were not there. */
  shared_read?: number | null,
  /** WAL written by all calls. */
  wal_bytes?: number | null,
};

/** A change and its state. */
export type StatusLine = {
  /** Id of the knob in the catalogue. */
  knob: string,
  /** Where the value is: the path of a file, or a command such as "ALTER SYSTEM work_mem". */
  place: string,
  /** Value before the first change of the journal. */
  was: string,
  /** Last value that the journal's process set. */
  set_to: string,
  /** Value that it has now; empty where that is not known. */
  now: string,
  /** Why the present value is not known; `null` where it is. */
  why?: string | null,
  /** Whether the change is still in effect. */
  state: ChangeState,
  /** Whether a reboot resets it. */
  until_reboot: boolean,
};

/** The publication that an experiment repeats. */
export type Study = {
  /** Tag of the publication, as "ibm-z". */
  source: string,
  /** Title and year of the publication. */
  title: string,
  /** How many findings this host agrees with, in a sentence without a full stop; `null` without
   * findings. */
  summary: string | null,
};

/** A figure drawn along a factor, as a study draws it. */
export type StudyChart = {
  /** How it is drawn. */
  form: "lines" | "bars" | "heat",
  /** What the study's own chart shows, in a sentence without a full stop; `null` where nobody
   * says. */
  published: string | null,
  /** Its figures: a row for each place along the axis, a column for each line, a block for each
   * panel. */
  table: StudyTable,
  /** Places of the findings that it shows, in the list of all findings. */
  claims: Array<number>,
};

/** A finding of the study, and its test in this experiment. */
export type StudyClaim = {
  /** The finding in a sentence without a full stop. */
  text: string,
  /** Names of the treatments that it was tested on. */
  treatments: Array<string>,
  /** Names of the treatments that these are compared with, one for each. */
  against: Array<string>,
  /** Title of the event that it is about; `null` where it is about treatments alone. */
  event: string | null,
  /** Name of the figure that it is about. */
  metric: string,
  /** Direction that the study found: "better", "worse", "same" or "not-worse". */
  found: "better" | "worse" | "same" | "not-worse",
  /** Ratio that the study reports; `null` where it reports none. */
  study_ratio: number | null,
  /** Effect in this experiment; `null` where it was not tested or there is no interval. */
  effect: Effect | null,
  /** Whether the effect agrees with the finding. */
  outcome: ClaimOutcome,
  /** Finding and effect in a sentence without a full stop. */
  sentence: string,
};

/** A table of figures by one or two factors. */
export type StudyTable = {
  /** Heading above the table. */
  title: string,
  /** Heading of the first column, such as the title of the factor of the rows. */
  rows: string,
  /** What the columns differ in; empty where each is a figure. */
  columns_title: string,
  /** The columns but the first. */
  columns: Array<TableColumn>,
  /** One for each combination of the levels of factors that the table does not name; those
   * without any trial are not there. */
  blocks: Array<TableBlock>,
};

/** The part of a table for one combination of the other factors. */
export type TableBlock = {
  /** Their levels as text; `null` where the table names all factors. */
  title: string | null,
  /** Rows of this part, in the order of their levels. */
  rows: Array<TableRow>,
};

/** A mean over trials. */
export type TableCell = {
  /** Mean over the trials, in the unit of the figure. */
  mean: number,
  /** Lower bound of its interval; `null` for a single trial. */
  low: number | null,
  /** Upper bound of its interval; `null` for a single trial. */
  high: number | null,
  /** Number of trials that the mean is of. */
  n: number,
};

/** A column with a figure, for a level of a factor or alone. */
export type TableColumn = {
  /** Heading of the column. */
  title: string,
  /** Name of the figure in its cells. */
  figure: string,
  /** Heading of that figure, with its unit. */
  figure_title: string,
};

/** A row of cells. */
export type TableRow = {
  /** Text of the first column, such as the level. */
  title: string,
  /** Cells in the order of the columns; `null` where no trial counts. */
  cells: Array<TableCell | null>,
};

/** A server with the host that it runs on. */
export type Target = {
  /** Name of the target, without secrets. */
  name: string,
  /** Numbers of the experiments that ran on it. */
  experiments: Array<number>,
  /** What is changed on it now; `null` where that is not known. */
  changed: Array<Journal> | null,
  /** Why the changes are not known; `null` where they are. */
  why_not_known: string | null,
  /** Facts of its newest experiment, as of before the first trial. */
  facts: Array<Fact> | null,
  /** The document of `pgdyno advise --json`; `null` where there is none. */
  advice: unknown,
  /** Whether the advice is not made yet, and comes with a later request. */
  is_advice_due: boolean,
};

/** The targets of the stored experiments. */
export type Targets = {
  /** Targets, those of the newest experiments first. */
  targets: Array<Target>,
  /** All that is changed by a pgdyno of the host that the server runs on; `null` where that is
   * not known. */
  changed_on_host: Array<Journal> | null,
  /** Why the changes on the host are not known; `null` where they are. */
  why_not_known: string | null,
  /** Whether servers were asked for their own settings. */
  servers_asked: boolean,
};

/** Throughput over time of a treatment whose loads had events, and what each has changed. */
export type Timeline = {
  /** Name of the treatment. */
  treatment: string,
  /** Number of trials that the means are of. */
  trials: number,
  /** Length of the warm-up, with which the seconds begin. */
  warmup_s: number,
  /** Means over the trials, second by second. */
  seconds: Array<TimelinePoint>,
  /** What each event has changed, in the order of time. */
  shifts: Array<Shift>,
};

/** A second of loads. */
export type TimelinePoint = {
  /** End of the second, from the start of the load. */
  t_s: number,
  /** Transactions committed in it, mean over the trials. */
  tps: number,
};

/** A treatment with its results. */
export type Treatment = {
  /** Name, unique in the experiment. */
  name: string,
  /** Title that is shown in place of the name. */
  title: string,
  /** Why it was tried, from the experiment file; `null` without a reason there. */
  reason: string | null,
  /** Whether it was tested: "tested" or "not-tested". */
  status: "tested" | "not-tested",
  /** Why it was not tested; `null` where it was. */
  why_not: string | null,
  /** All settings that it runs with, not only the changed ones. */
  settings: Array<Setting>,
  /** Trials that finished and count. */
  trials_finished: number,
  /** Trials that failed or whose figures do not hold. */
  trials_failed: number,
  /** Finished trials in no mean and no effect, because their figure is not above zero. */
  trials_excluded?: number,
  /** Factor and level; "step" and its name for steps. */
  levels?: Array<LevelOf>,
  /** Name of the treatment that it is compared with; `null` where it is compared with none. */
  against?: string | null,
  /** Its load, where it is not the experiment's. */
  workload?: Workload | null,
  /** What else it has of its own, as ("server.pooler", "pgbouncer"). */
  environment?: Array<[string, string]>,
  /** Means over its trials, by the name of the metric, as the verdicts take them. */
  figures?: { [key in string]: number },
  /** Mean of the figure that decides, over its trials. */
  metric?: Interval | null,
  /** Mean of committed transactions per second, over its trials. */
  tps: Interval | null,
  /** Response times of all its trials together, where each has its histogram; else means over
   * them. */
  percentiles: Percentiles | null,
  /** Percentiles of the response time, made like `percentiles`. */
  distribution: Array<DistributionPoint>,
  /** Response times over time, of all its trials that count. */
  latency_heat?: Heat | null,
  /** Coefficient of variation of the throughput within a trial, mean over its trials. */
  stability_cv: number | null,
  /** Client CPU per committed transaction, mean over its trials. */
  client_cpu_us_per_tx: number | null,
  /** Server CPU per committed transaction, mean over its trials. */
  server_cpu_us_per_tx: number | null,
  /** WAL per committed transaction, mean over its trials. */
  wal_bytes_per_tx: number | null,
  /** Effect on the figure that decides, against the treatment before it or the reference. */
  step: Effect | null,
  /** Effect on the figure that decides, against the reference. */
  total: Effect | null,
  /** Effect on the 95th percentile of the response time, against the same treatment as `step`. */
  step_p95: Effect | null,
};

/** The figure of a treatment as all trials of the search together have it. */
export type TreatmentEstimate = {
  /** Name of the treatment. */
  treatment: string,
  /** Its figure, in the unit of the experiment's metric. */
  figure: number,
  /** The ends of the figure's 95 % interval, the lower first; `null` where the method has none. */
  interval: [number, number] | null,
};

/** A trial with its figures. */
export type Trial = {
  /** Number of the trial in the store. */
  id: number,
  /** Number of its block, from 1. */
  block: number,
  /** Position in the block, from 1. */
  position: number,
  /** Name of the treatment that it tried. */
  treatment: string,
  /** Whether it ended in order and its figures count. */
  status: TrialStatus,
  /** Why it failed or does not hold; `null` where it counts. */
  reason: string | null,
  /** Time at which it began, since 1970. */
  started_unix_ms: number,
  /** Transactions committed per second of the measured time. */
  tps: number | null,
  /** Response time above which a transaction is late; `null` without such a limit. */
  latency_limit_ms?: number | null,
  /** Errors of the measured time, by their code. */
  errors: Array<ErrorCount>,
  /** Response times of committed transactions; `null` where none is known. */
  percentiles: Percentiles | null,
  /** External program that has reported throughput and response times; `null` where pgdyno has
   * measured them. */
  reported_by?: string | null,
  /** Whether its throughput had no trend; `null` where there were too few seconds to see. */
  settled: boolean | null,
  /** Length of the warm-up. */
  warmup_s: number,
  /** Length of the measured time. */
  measured_s: number,
  /** Clients' count of commits against the server's; `null` where the server's is not known. */
  cross_check: CrossCheck | null,
  /** What disturbed the trial, a sentence each. */
  disturbances: Array<string>,
  /** Whether others took CPU time from it. */
  disturbed?: boolean,
  /** Whether it is in no mean and no effect, though it finished. */
  excluded?: boolean,
  /** The server that it ran on, where that is not the target itself. */
  server_variant?: string | null,
  /** Seconds of the measured time that were still part of the warm-up: they are in no rate of the
   * trial and in no response time that was measured here. */
  unsettled_s?: number | null,
  /** Whether the warm-up ended within the measured time. */
  warm_up?: WarmUpEnd,
  /** Figures by the name of the metric, which ends with the unit. */
  figures?: { [key in string]: number },
  /** Checkpoints, vacuums and disturbances; empty before [`Report::mark`]. */
  marks?: Array<Mark>,
  /** Throughput and response time for each second of the load. */
  series: Series,
  /** Transactions that ended as intended, by a commit or an intended rollback. */
  committed: number,
  /** Transactions that ended with an error. */
  failed: number | null,
  /** Were due and not begun before the end, which only an open loop has, or not ended soon after
   * it. */
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
  /** Which one of several: a disk, a CPU, a class of processes; `null` where there is one. */
  label: string | null,
  /** Unit for axes; "ratio" goes from 0 to 1, empty for a number without a unit. */
  unit: string,
  /** Where the metric is from: "load", "host" or "server". */
  layer: "load" | "host" | "server",
  /** Title of the chart, without the label. */
  title: string,
  /** Milliseconds after the start of the load, in order. */
  t_ms: Array<number>,
  /** One value for each of `t_ms`; `null` where there is no value. */
  values: Array<number | null>,
};

/** One trial with everything recorded beside it. */
export type TrialDocument = {
  /** Always "pgdyno-trial/1". */
  format: string,
  /** Number of its experiment in the store. */
  experiment_id: number,
  /** The trial with title and settings of its treatment. */
  trial: TrialPart,
  /** When its load began, as far as it is known: when the trial did. */
  load_begun_unix_ms: number,
  /** Length of the warm-up. */
  warmup_s: number,
  /** Length of the measured time. */
  measured_s: number,
  /** Metrics over time: those of the load first, then of the host, then of the server. */
  series: Array<TrialColumn>,
  /** What happened beside the load, in order of time. */
  marks: Array<Mark>,
  /** Sessions by what they waited for; `null` where sessions were not recorded. */
  waits: Waits | null,
  /** Statements of the load, the busiest first. */
  statements: Array<Statement>,
  /** Errors of the measured time, by SQLSTATE. */
  errors: Array<ErrorCount>,
  /** Percentiles of the response time in the measured time. */
  distribution?: Array<DistributionPoint>,
  /** Response times over time; `null` where they were not kept. */
  latency_heat: Heat | null,
};

/** How long trials measure, and how long they should. */
export type TrialLength = {
  /** Seconds that a trial measures, and those that it costs besides: median over the trials. */
  measured_s: number,
  /** Seconds from the end of the measured time to the beginning of the next trial's. */
  overhead_s: number,
  /** Spread between trials that stays however long they measure: 0.01 = 1 %. */
  between: number,
  /** Seconds that would take least time for the same error; `null` where longer ones are always
   * better. */
  best_s: number | null,
  /** The time of the whole experiment with trials of that length, as a share of its own: at
   * most 1. */
  time: number | null,
  /** All of it as a sentence. */
  sentence: string,
};

/** A trial as a report has it, and what is reported of it here alone. Its `series` is empty: the
 * columns hold it. */
export type TrialPart = {
  /** Title of its treatment; `null` where the plan does not have it. */
  title?: string | null,
  /** Settings of its treatment with what the target reported in this trial. */
  settings?: Array<Setting>,
  /** Number of the trial in the store. */
  id: number,
  /** Number of its block, from 1. */
  block: number,
  /** Position in the block, from 1. */
  position: number,
  /** Name of the treatment that it tried. */
  treatment: string,
  /** Whether it ended in order and its figures count. */
  status: TrialStatus,
  /** Why it failed or does not hold; `null` where it counts. */
  reason: string | null,
  /** Time at which it began, since 1970. */
  started_unix_ms: number,
  /** Transactions committed per second of the measured time. */
  tps: number | null,
  /** Response time above which a transaction is late; `null` without such a limit. */
  latency_limit_ms?: number | null,
  /** Errors of the measured time, by their code. */
  errors: Array<ErrorCount>,
  /** Response times of committed transactions; `null` where none is known. */
  percentiles: Percentiles | null,
  /** External program that has reported throughput and response times; `null` where pgdyno has
   * measured them. */
  reported_by?: string | null,
  /** Whether its throughput had no trend; `null` where there were too few seconds to see. */
  settled: boolean | null,
  /** Length of the warm-up. */
  warmup_s: number,
  /** Length of the measured time. */
  measured_s: number,
  /** Clients' count of commits against the server's; `null` where the server's is not known. */
  cross_check: CrossCheck | null,
  /** What disturbed the trial, a sentence each. */
  disturbances: Array<string>,
  /** Whether others took CPU time from it. */
  disturbed?: boolean,
  /** Whether it is in no mean and no effect, though it finished. */
  excluded?: boolean,
  /** The server that it ran on, where that is not the target itself. */
  server_variant?: string | null,
  /** Seconds of the measured time that were still part of the warm-up: they are in no rate of the
   * trial and in no response time that was measured here. */
  unsettled_s?: number | null,
  /** Whether the warm-up ended within the measured time. */
  warm_up?: WarmUpEnd,
  /** Figures by the name of the metric, which ends with the unit. */
  figures?: { [key in string]: number },
  /** Checkpoints, vacuums and disturbances; empty before [`Report::mark`]. */
  marks?: Array<Mark>,
  /** Throughput and response time for each second of the load. */
  series: Series,
  /** Transactions that ended as intended, by a commit or an intended rollback. */
  committed: number,
  /** Transactions that ended with an error. */
  failed: number | null,
  /** Were due and not begun before the end, which only an open loop has, or not ended soon after
   * it. */
  skipped?: number | null,
  /** Those of the committed ones that took longer than `latency_limit_ms`. */
  late?: number | null,
  /** Tries after the first one. */
  retries?: number | null,
  /** Those of the committed ones that were meant to end by a rollback. */
  rolled_back?: number | null,
};

/** The outcome of a trial. */
export type TrialStatus = "finished" | "failed" | "invalid";

/** X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)). */
export type UslCurve = {
  /** Throughput at N = 1. */
  lambda: Bounded,
  /** Contention: the serial share of the work, 0 to 1. */
  sigma: Bounded,
  /** Coherency: the cost of agreement between each pair of N, from 0. */
  kappa: Bounded,
  /** N at the peak of the curve. */
  peak_x: Bounded,
  /** Throughput at the peak of the curve. */
  peak_tps: Bounded,
  /** Spread of the points around the curve: 0.03 = 3 %. */
  spread: number,
};

/** What may be said of a comparison. */
export type Verdict = "better" | "worse" | "same" | "no-gain" | "undecided";

/** Sessions that waited for one type of event, or for one event. */
export type WaitSessions = {
  /** As the server names it, an event behind its type ("IO: WalSync"); `CPU` are those that ran,
   * `other` the rest of many events. */
  name: string,
  /** Mean number of sessions in each second. */
  values: Array<number>,
};

/** Sessions of the server by what they waited for, second by second. */
export type Waits = {
  /** Ends of the seconds, after the start of the load. */
  t_ms: Array<number>,
  /** Sessions by type of event, the busiest first. */
  types: Array<WaitSessions>,
  /** Sessions by event, the busiest first, and last what many smaller ones are together. */
  events?: Array<WaitSessions>,
};

/** Whether the throughput of a trial became steady. */
export type WarmUpEnd = "ended" | "never" | "unknown";

/** What a study says of a chart that an experiment has anyway. */
export type WholeChart = {
  /** Which one: its waterfall, or throughput over time with its events. */
  form: "waterfall" | "timeline",
  /** Heading above the chart. */
  title: string,
  /** What the study's own chart shows, in a sentence without a full stop; `null` where nobody
   * says. */
  published: string | null,
  /** Places of the findings that it shows, in the list of all findings. */
  claims: Array<number>,
};

/** Workload, data and clients of a load. */
export type Workload = {
  /** Name of the workload: "tpcb". */
  name: string,
  /** Scale of its data: units of 100,000 rows, or warehouses. */
  scale: number,
  /** Number of connections that send transactions. */
  clients: number,
  /** Number of threads that drive the clients. */
  threads: number,
  /** Time at the start of the load that is in no figure. */
  warmup_s: number,
  /** Time after the warm-up that all figures are of. */
  measure_s: number,
};

/** The happy zone: the measured client counts with at least 95 % of the peak throughput, not past
 * the knee of response time. */
export type Zone = {
  /** Lowest client count of the zone. */
  lowest: number,
  /** Highest client count of the zone. */
  highest: number,
  /** The client count of the zone with the most throughput. */
  best: number,
  /** Highest client count not past the knee of response time. */
  knee: number | null,
  /** Why there is no knee. */
  why_no_knee: string | null,
  /** What ends the zone below: never the knee. */
  lower_edge: Edge,
  /** What ends the zone above. */
  upper_edge: Edge,
  /** 95 % of the peak is reached only past the knee. */
  past_knee: boolean,
};
