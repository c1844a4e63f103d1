//! Arguments of `pgdyno run` and `pgdyno resume`.

use super::{LoadFromArgs, LoadGroupArgs, RunHostArgs, StoreArgs};
use clap::Args;
use std::path::PathBuf;

/// Consent that is asked for again each time.
#[derive(Debug, Args)]
pub(crate) struct ConsentArgs {
    /// Allow KNOB, which may lose committed data in a crash. Repeatable.
    #[arg(long, value_name = "KNOB")]
    pub(crate) accept_durability_risk: Vec<String>,
    /// Allow stopping and starting a server that pgdyno did not create, by the file's
    /// restart_command or, without one, by what runs it: a systemd unit, pg_ctlcluster or pg_ctl.
    #[arg(long)]
    pub(crate) allow_restart: bool,
    /// Allow creating missing tables of the load on a server that pgdyno did not create (they are
    /// dropped at the end), and running the file's prepare, command and cleanup commands and
    /// scripts that create or drop objects there. `run --dry-run` lists them.
    #[arg(long)]
    pub(crate) allow_data: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The experiment file, or the name of a shipped one (`pgdyno experiments` lists them).
    pub(crate) file: PathBuf,
    /// One of the file's sizes, e.g. night.
    #[arg(long)]
    pub(crate) size: Option<String>,
    /// Replace the value of a key of the file, e.g. load.measure_s=60. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Set a fact that the file's profiles go by, where it cannot be read, or replace one, e.g.
    /// storage.data_medium=ssd. Repeatable.
    #[arg(long, value_name = "FACT=VALUE", value_parser = super::assignment)]
    pub(crate) given: Vec<(String, String)>,
    /// Check settings, privileges, statements, consent and disk space. Print each problem with its
    /// fix, each trial with its restarts, the data to be created and the expected duration. Run and
    /// change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// sandbox:NAME or a connection string, instead of the file's target.
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Write the report to FILE at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) at: RunHostArgs,
    #[command(flatten)]
    pub(crate) load_from: LoadFromArgs,
}

impl RunArgs {
    /// All keys of the file whose values are replaced.
    pub(crate) fn sets(&self) -> Vec<String> {
        let LoadFromArgs {
            hosts, connection, ..
        } = &self.load_from;
        let quoted = |text: &String| toml::Value::from(text.as_str()).to_string();
        let hosts = (!hosts.is_empty()).then(|| {
            let hosts: Vec<String> = hosts.iter().map(quoted).collect();
            format!("load.hosts=[{}]", hosts.join(", "))
        });
        let connection = connection
            .as_ref()
            .map(|text| format!("load.connection={}", quoted(text)));
        self.set.iter().cloned().chain(hosts).chain(connection).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Number of the experiment [default: the last unfinished one].
    pub(crate) id: Option<i64>,
    /// sandbox:NAME or a connection string, instead of the file's target.
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Write the report to FILE at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) at: RunHostArgs,
    #[command(flatten)]
    pub(crate) load: LoadGroupArgs,
}
