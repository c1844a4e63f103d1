//! The parts of an experiment file, as serde reads them. Every key is documented in
//! docs/reference/experiment-file.md, and the JSON schema that editors check against is made from
//! these types.

use super::choices::{
    Design, Instances, LoadOn, PoolModeWord, PoolerWord, Prewarm, Reset, RestartPolicy, SettingScope,
    StopRule, Untested,
};
use super::search::SearchPart;
use super::study::{FigurePart, StudyPart};
use pgdyno_advice::Scale;
use pgdyno_engine::{Protocol, Spacing};
use pgdyno_workload::{Control, Dataset, Partitions, Workload};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Table;

/// An experiment file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// Short name, which lists show and commands take.
    pub name: String,
    /// Question that the experiment answers, as a sentence.
    pub question: String,
    /// How treatments are made of steps or factors.
    pub design: Design,
    /// How often each treatment is tried, at most.
    pub blocks: u32,
    /// When it ends before all blocks are run.
    #[serde(default)]
    pub stop: StopRule,
    /// What follows where a treatment cannot be tested.
    #[serde(default)]
    pub untested: Untested,
    /// The figure that decides: a metric of trials that the load reports, e.g. tps, goodput_tps,
    /// p99_ms, nopm (the book lists all), or the name of a [[figure]]. Without it tps; job_s where
    /// every load is a job.
    #[serde(default)]
    pub metric: String,
    /// Seed of order and load; drawn when not given.
    pub seed: Option<u64>,
    /// Confidence of all intervals together; 0.95 when not given.
    #[serde(default = "default_confidence")]
    pub confidence: f64,
    /// Smallest effect that matters.
    #[serde(default = "default_smallest_effect")]
    pub smallest_effect: f64,
    /// What must hold, as expressions over target.*, data.*, load.* and setting.*: the file is
    /// refused where it does not.
    #[serde(default)]
    pub holds: Vec<String>,
    /// The server that trials run on.
    #[serde(default)]
    pub target: TargetPart,
    /// What expressions take for the target's memory and CPUs; a run writes it down where the
    /// target is there already.
    #[serde(default)]
    pub given: GivenPart,
    /// Data set, its scale, and its state before a trial.
    #[serde(default)]
    pub data: DataPart,
    /// Load of every treatment that has none of its own.
    pub load: LoadPart,
    /// The environment of the server: its version, volumes, pooler, neighbour and network.
    #[serde(default)]
    pub server: ServerPart,
    /// A profile whose settings are below those of `base`.
    pub profile: Option<String>,
    /// Settings of the reference and of every treatment.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub base: Table,
    /// Steps, each a treatment; instead of factors.
    #[serde(default)]
    pub step: Vec<StepPart>,
    /// Factors, whose levels are combined to treatments; instead of steps.
    #[serde(default)]
    pub factor: Vec<FactorPart>,
    /// Combinations of levels that are not tried: factor = level, all of which must hold.
    #[serde(default)]
    pub exclude: Vec<BTreeMap<String, String>>,
    /// What is done to the server while each load runs, in the order of time.
    #[serde(default)]
    pub event: Vec<EventPart>,
    /// How the load of a switchback is cut.
    #[serde(default)]
    pub switch: SwitchPart,
    /// What a search tries.
    pub search: Option<SearchPart>,
    /// Bounds that end a treatment.
    #[serde(default)]
    pub guard: GuardPart,
    /// Bounds of time and trials for the whole experiment.
    #[serde(default)]
    pub budget: BudgetPart,
    /// Hours of the day in which trials may begin; always when not given.
    pub window: Option<WindowPart>,
    /// Figures of a trial that are taken from its series.
    #[serde(default)]
    pub figure: Vec<FigurePart>,
    /// A published study that this experiment repeats.
    pub study: Option<StudyPart>,
    /// Named sizes: keys of this file with other values. Chosen by `--size`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub size: Table,
}

/// The server that trials run on: a sandbox, or one by its connection.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPart {
    /// Name of a sandbox; instead of `connection`.
    pub sandbox: Option<String>,
    /// What the sandbox is made with where there is none of that name; without it none is made.
    pub create: Option<CreatePart>,
    /// Connection string of a server that is not a sandbox.
    pub connection: Option<String>,
    /// When the server is restarted between trials.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// Whether settings are those of the server and its host, or of the load's own sessions, which
    /// changes nothing for others.
    #[serde(default)]
    pub scope: SettingScope,
    /// When the servers that treatments have of their own are made, with their file systems and
    /// data.
    #[serde(default)]
    pub instances: Instances,
    /// Whether a server that is not a sandbox may be stopped and started; as `--allow-restart`.
    #[serde(default)]
    pub allow_restart: bool,
    /// Host over ssh that `allow_restart` is for, as "ssh:db1"; the own host when not given.
    pub host: Option<String>,
    /// Command that restarts a server which is not a sandbox, in place of what runs it; used with
    /// consent only.
    pub restart_command: Option<String>,
    /// Command that stops such a server; with `start_command`, in place of `restart_command`.
    pub stop_command: Option<String>,
    /// Command that starts it again.
    pub start_command: Option<String>,
}

impl TargetPart {
    /// When the server is restarted between trials: what is set in sessions has no restart.
    pub fn restarts(&self) -> RestartPolicy {
        match self.scope {
            SettingScope::Server => self.restart,
            SettingScope::Session => RestartPolicy::WhenNeeded,
        }
    }

    /// Whether a checkpoint is asked for before each load, which others would notice.
    pub fn checkpoints(&self) -> bool {
        self.scope == SettingScope::Server
    }
}

/// A sandbox that an experiment makes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePart {
    /// Major version of PostgreSQL.
    pub version: Option<u32>,
    /// Whether it runs the newest binaries that are installed on this machine, with all their
    /// programs beside them.
    #[serde(default)]
    pub installed: bool,
    /// CPUs that it may use, as 1.5.
    pub cpus: Option<f64>,
    /// Memory that it may use, as "1GB".
    pub memory: Option<String>,
    /// I/O operations per second that it may do.
    pub iops: Option<u64>,
    /// Bytes per second that it may read and write, as "125M".
    pub bandwidth: Option<String>,
    /// Address of the host's at which it listens too, with the bits of the network that is let in,
    /// as "10.0.0.5/24".
    pub listen: Option<String>,
    /// Physical standbys, with the same limits.
    pub standbys: Option<u32>,
    /// Whether commits wait until one of its standbys has them.
    #[serde(default)]
    pub sync: bool,
}

/// What expressions take for the target's; without it, the limits of the sandbox that the file
/// makes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenPart {
    /// Memory, as "64GB".
    pub memory: Option<String>,
    /// CPUs, as 1.5.
    pub cpus: Option<f64>,
}

/// Data set, its scale, and its state before a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataPart {
    /// Which data set, where the load does not determine it: "pgbench" (usual), "oltp"
    /// (sysbench's), "tpcc".
    #[schemars(with = "Option<String>")]
    pub dataset: Option<Dataset>,
    /// Scale of the data set: units of 100,000 rows, or warehouses of tpcc.
    pub scale: Option<u32>,
    /// How it is brought to the same state before a trial.
    pub reset: Option<Reset>,
    /// What is in the caches when the load begins.
    pub prewarm: Option<Prewarm>,
    /// How full the pages of its tables are made, in percent; needs `reset = "recreate"` where it
    /// varies.
    pub fillfactor: Option<u32>,
    /// Partitions of its large tables, "hash:16" or "range:16": accounts of pgbench by aid, each
    /// table of oltp by id, tables of tpcc that grow with the warehouses by warehouse.
    #[schemars(with = "Option<String>")]
    pub partitions: Option<Partitions>,
    /// SQL that is run once the data set is made, in a database of its own: tables, indexes and
    /// functions of one's own.
    pub sql: Option<String>,
}

/// The load. A step or level names what it has otherwise.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadPart {
    /// Name of a built-in workload: "tpcb".
    #[schemars(with = "Option<String>")]
    pub workload: Option<Workload>,
    /// A script in pgbench's language, in place of a workload.
    pub script: Option<String>,
    /// Another program that is the load: pgbench, sysbench, sysbench-tpcc, go-tpc, benchbase,
    /// hammerdb, or "job" for a command whose time is the result.
    pub program: Option<String>,
    /// Its command line, where it is not the program's usual one.
    pub command: Option<String>,
    /// A command that goes before it and is not measured.
    pub prepare: Option<String>,
    /// A command that goes after it and is not measured.
    pub cleanup: Option<String>,
    /// Protocol of queries: "simple", "extended" or "prepared".
    #[schemars(with = "Option<String>")]
    pub protocol: Option<Protocol>,
    /// Control of transactions: "none", "explicit" or "pipelined".
    #[schemars(with = "Option<String>")]
    pub transaction: Option<Control>,
    /// Whether it goes to the treatment's server ("server", usual) or to each of its standbys
    /// ("standbys"), which have replayed by then what the server has; for sandboxes with standbys.
    pub on: Option<LoadOn>,
    /// Hosts that drive it together, each with its part of the clients: "ssh:gen1", or "local" for
    /// the host that the experiment runs on.
    pub hosts: Option<Vec<String>>,
    /// How those hosts reach the server: "host=10.0.0.5"; user, database and password are added
    /// where they are missing.
    pub connection: Option<String>,
    /// Number of connections that send transactions.
    pub clients: Option<u32>,
    /// Threads, of each host; half of the CPUs when not given.
    pub threads: Option<u32>,
    /// CPUs that the load's threads are bound to.
    pub cpus: Option<Vec<u32>>,
    /// Open loop: arrivals per second, as for `pgdyno bench --rate`.
    pub rate: Option<String>,
    /// Spacing of arrivals: "constant" or "poisson".
    #[schemars(with = "Option<String>")]
    pub spacing: Option<Spacing>,
    /// Open loop: what is due is begun together, at most once in this time.
    pub batch_ms: Option<f64>,
    /// Closed loop: pause between transactions.
    pub think_ms: Option<f64>,
    /// Response time above which a transaction is late.
    pub latency_limit_ms: Option<f64>,
    /// How often a transaction is tried that fails with a serialisation error or a deadlock.
    pub max_tries: Option<u32>,
    /// Whether every transaction has a connection of its own.
    pub connect: Option<bool>,
    /// Full load before measuring; with `settle`, at most.
    pub warmup_s: Option<f64>,
    /// Whether the warm-up ends when throughput has settled.
    pub settle: Option<bool>,
    /// Measured time; with `checkpoint_cycles`, at least.
    pub measure_s: Option<f64>,
    /// Measures on until so many checkpoints have ended; at most ten times `measure_s`.
    pub checkpoint_cycles: Option<u32>,
    /// Kills the server at the end of the load and takes the time of its recovery as the figure
    /// `recovery_s`.
    pub crash: Option<bool>,
}

/// The environment of the server: its version, volumes, pooler, neighbour and network.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPart {
    /// Major version of PostgreSQL, for sandboxes.
    pub version: Option<u32>,
    /// Directory of initdb, pg_ctl and postgres, instead of a version: an absolute path; for
    /// sandboxes.
    pub bin: Option<String>,
    /// Where its data is: "disk", "tmpfs:4G", "ext4:4G", "xfs:4G", or an absolute path; for
    /// sandboxes.
    pub data_on: Option<String>,
    /// Where its WAL is, if not with the data.
    pub wal_on: Option<String>,
    /// Where its temporary files are, if not with the data.
    pub temp_on: Option<String>,
    /// Pooler between clients and server, for sandboxes.
    pub pooler: Option<PoolerWord>,
    /// For how long a client keeps a session of pgbouncer's.
    pub pool_mode: Option<PoolModeWord>,
    /// Number of connections of the pooler to the server.
    pub pool_size: Option<u32>,
    /// A command that runs beside the load, from before the warm-up to its end.
    pub neighbour: Option<String>,
    /// Memory that the neighbour may use, as "512MB"; without it, all.
    pub neighbour_memory: Option<String>,
    /// Network between client and server: "loopback", or the MTU of a link between two network
    /// namespaces, as "mtu:9000".
    pub network: Option<String>,
    /// Servers that run on the host at once, each like the others, with data of its own and the
    /// whole load; 1 when not given; for sandboxes.
    pub count: Option<u32>,
    /// Number of a server of its own that is made like the target, or like others of its kind; for
    /// sandboxes.
    pub instance: Option<u32>,
}

/// A step, or a level of a factor.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepPart {
    /// Name, unique in the experiment.
    pub name: String,
    /// Title in reports; the name when not given.
    pub title: Option<String>,
    /// Why it is tried, which reports show.
    pub reason: Option<String>,
    /// What must hold of it, as expressions: the file is refused where it does not.
    #[serde(default)]
    pub holds: Vec<String>,
    /// A profile whose settings are below its own.
    pub profile: Option<String>,
    /// Knob = value, over those of the profile.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub settings: Table,
    /// Keys of the load that differ from `[load]`.
    #[serde(default)]
    pub load: LoadPart,
    /// Keys of the data that differ from `[data]`.
    #[serde(default)]
    pub data: DataPart,
    /// Keys of the environment that differ from `[server]`.
    #[serde(default)]
    pub server: ServerPart,
}

/// Something that the experiment varies in levels.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorPart {
    /// Name, unique in the experiment.
    pub name: String,
    /// Title in reports; the name when not given.
    pub title: Option<String>,
    /// Whether it is a condition, whose levels are not compared with one another.
    #[serde(default, alias = "along")]
    pub condition: bool,
    /// What `values` are of: a knob, or a key as "load.clients", "data.scale", "server.version".
    pub of: Option<String>,
    /// Values that are levels; in place of `level`.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<toml::Value>,
    /// Levels, the reference first.
    #[serde(default)]
    pub level: Vec<StepPart>,
    /// In a search, how likely each level is to be the best, as weights; alike when not given.
    #[serde(default)]
    pub weights: Vec<f64>,
    /// In a search, how much it is expected to matter, as a weight among the factors; 1 when not
    /// given.
    pub relevance: Option<f64>,
    /// In a search, how levels that are numbers are arranged; by their logarithms when not given.
    #[schemars(with = "Option<String>")]
    pub scale: Option<Scale>,
}

/// Something that is done to the server while a load runs: settings, a kill, or a neighbour.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventPart {
    /// When, from the begin of the measured time, as "60s".
    pub at: String,
    /// Title in reports, unique among events; what is done when not given.
    pub title: Option<String>,
    /// Settings from then on, over those of the treatment; such as take effect without a restart.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub settings: Table,
    /// Whether the server is killed, as by a crash, and started again; for sandboxes.
    #[serde(default)]
    pub kill: bool,
    /// A command that runs beside the load from then on.
    pub neighbour: Option<String>,
    /// Memory that this neighbour may use, as "512MB"; without it, all.
    pub neighbour_memory: Option<String>,
}

/// How the load of a switchback is cut into the turns of its treatments, or of their servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchPart {
    /// Measured seconds of a turn: whole ones, 3 when not given; of servers 0.002 to 60, 0.05 when
    /// not given.
    pub slice_s: Option<f64>,
    /// Seconds after each change of settings that are not measured; when not given, what the knobs
    /// need: 0.5 or 5.
    pub wash_out_s: Option<f64>,
}

/// Bounds that end a trial and keep its treatment from being tried again.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardPart {
    /// 99th percentile of a second's response times, five seconds in a row.
    pub p99_ms_max: Option<f64>,
    /// Failed transactions among all of a second, five seconds in a row.
    pub error_ratio_max: Option<f64>,
    /// What a second's throughput is below that of the reference so far, as a part of it, five
    /// measured seconds in a row.
    pub slowdown_max: Option<f64>,
    /// Memory that the kernel can give, as "500MB".
    pub memory_available_min: Option<String>,
    /// Room on the data's file system, as "2GB".
    pub disk_free_min: Option<String>,
}

impl GuardPart {
    /// A bound must be passed in so many seconds in a row: one bad second is a checkpoint.
    pub(crate) const IN_A_ROW: u32 = 5;

    /// Whether a bound is on what each second of the load has.
    pub(crate) fn is_by_second(&self) -> bool {
        let bounds = [self.p99_ms_max, self.error_ratio_max, self.slowdown_max];
        bounds.iter().any(Option::is_some)
    }
}

/// What the experiment may cost. The trial that would go beyond is not begun.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetPart {
    /// Time in all, as "8h", pauses outside of the window not counted.
    pub time: Option<String>,
    /// Number of trials.
    pub trials: Option<u32>,
}

/// Hours of the day, local time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowPart {
    /// Time of day from which trials may begin, as "22:00".
    pub from: String,
    /// Time of day from which none begins any more, as "06:00"; earlier than `from` means the next
    /// day.
    pub to: String,
}

impl WindowPart {
    /// The window of "22:00-06:00".
    ///
    /// # Errors
    ///
    /// It is none; what is expected.
    pub fn parse(text: &str) -> Result<WindowPart, String> {
        let ends = text.split_once('-').map(|(from, to)| WindowPart {
            from: from.trim().to_owned(),
            to: to.trim().to_owned(),
        });
        ends.filter(|window| window.minutes().is_some_and(|(from, to)| from != to))
            .ok_or_else(|| "expected two different times of the day, e.g. 22:00-06:00".to_owned())
    }

    /// Its ends in minutes since midnight; `None` where one is no time of the day.
    pub(crate) fn minutes(&self) -> Option<(u32, u32)> {
        Some((clock(&self.from)?, clock(&self.to)?))
    }
}

/// Minutes since midnight of "22:00".
pub(super) fn clock(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

fn default_confidence() -> f64 {
    0.95
}

fn default_smallest_effect() -> f64 {
    0.02
}
