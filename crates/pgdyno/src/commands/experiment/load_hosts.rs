//! What load hosts do for a run on another host. That host is not trusted: it has nothing done by
//! hosts that the experiment's file does not name, and leads them to no other host than the file or
//! the command line does.

use crate::cli::{HostArgs, LoadFromArgs};
use crate::context::Context;
use crate::generators::{AskedOfHosts, LOCAL, length};
use pgdyno_lab::{ExperimentFile, LOAD_HOSTS_MAX};
use pgdyno_remote::{Answer, LoadHostWays, Question, SharedLoad, SshHost};
use pgdyno_server::{names_other_host, on_a_way_of};
use pgdyno_workload::Work;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// Longest load that is driven for another host.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// Load hosts, and connection strings that name the hosts of servers.
#[derive(Clone, Default)]
pub(crate) struct AllowedLoadHosts {
    hosts: BTreeSet<String>,
    ways: Vec<String>,
}

impl AllowedLoadHosts {
    /// What a file names, and the target that the command line does.
    pub(super) fn of(file: &ExperimentFile, target: Option<&str>) -> AllowedLoadHosts {
        let named = [target, file.target.connection.as_deref()].into_iter().flatten();
        let of_target = named.filter(|text| names_other_host(text)).map(str::to_owned);
        let listens = file
            .target
            .create
            .as_ref()
            .and_then(|create| create.listen.as_deref());
        let listens = listens.and_then(|listen| listen.split('/').next());
        AllowedLoadHosts {
            hosts: file.load_hosts(),
            ways: file
                .load_connections()
                .into_iter()
                .chain(of_target)
                .chain(listens.map(|address| format!("host={address}")))
                .collect(),
        }
    }

    /// The hosts, where all are allowed, on the ways that are. The host of the run reaches its own
    /// servers as it says.
    fn permitted(&self, hosts: LoadHostWays) -> Result<LoadHostWays, String> {
        if hosts.0.len() > LOAD_HOSTS_MAX {
            return Err(format!("it asks for more than {LOAD_HOSTS_MAX} load hosts"));
        }
        let each = hosts.0.into_iter().map(|(name, servers)| {
            if !self.hosts.contains(&name) {
                return Err("it asks for a load host that the experiment's file does not name".to_owned());
            }
            if name == LOCAL {
                return Ok((name, servers));
            }
            let servers = servers.iter().map(|text| on_a_way_of(text, &self.ways));
            let servers = servers.collect::<Option<Vec<String>>>().ok_or_else(|| {
                format!(
                    "load host {name}: neither connection = \"host=...\" in the file's [load] nor --target names the way to the server"
                )
            })?;
            Ok((name, servers))
        });
        each.collect::<Result<_, _>>().map(LoadHostWays)
    }

    /// What a command line names.
    fn named(load: &LoadFromArgs, target: &str) -> AllowedLoadHosts {
        let target = Some(target)
            .filter(|text| names_other_host(text))
            .map(str::to_owned);
        AllowedLoadHosts {
            hosts: load.hosts.iter().cloned().collect(),
            ways: load.connection.iter().cloned().chain(target).collect(),
        }
    }

    /// Whether this allows all that another does.
    pub(super) fn covers(&self, other: &AllowedLoadHosts) -> bool {
        self.hosts.is_superset(&other.hosts) && other.ways.iter().all(|way| self.ways.contains(way))
    }
}

/// The load hosts of a run on another host.
pub(crate) struct LoadHostsOfRun {
    context: Context,
    /// The host of the run, with whether it has root's rights there.
    on: HostArgs,
    pub(super) allowed: AllowedLoadHosts,
    asked: Option<AskedOfHosts>,
}

impl LoadHostsOfRun {
    pub(crate) fn new(context: &Context, on: &HostArgs, allowed: AllowedLoadHosts) -> LoadHostsOfRun {
        LoadHostsOfRun {
            context: context.clone(),
            on: on.clone(),
            allowed,
            asked: None,
        }
    }

    /// Of a command without an experiment of its own.
    pub(crate) fn of_command(
        context: &Context,
        on: &HostArgs,
        load: &LoadFromArgs,
        target: &str,
    ) -> LoadHostsOfRun {
        LoadHostsOfRun::new(context, on, AllowedLoadHosts::named(load, target))
    }

    /// The answer to what the run asks of load hosts.
    ///
    /// # Errors
    ///
    /// The question, where it asks for something else.
    pub(crate) fn answer(&mut self, question: Question) -> Result<Answer, Question> {
        let answered = match question {
            Question::AskLoadHosts(hosts) => self.ask(hosts),
            Question::Drive(load) => match &load.plan.work {
                // No experiment has one.
                Work::Scripts(scripts) if scripts.allow_shell => {
                    Err("it asks for commands of the shell".to_owned())
                }
                _ if length(&load.plan.drive) > LONGEST => {
                    Err("it asks for a load longer than any".to_owned())
                }
                _ => self.drive(*load),
            },
            Question::NextOfHosts { stop } => self.next(stop),
            other => return Err(other),
        };
        Ok(answered.unwrap_or_else(Answer::Failed))
    }

    fn ask(&mut self, hosts: LoadHostWays) -> Result<Answer, String> {
        let hosts = self.permitted(hosts)?;
        let target = self.target()?;
        let asked = AskedOfHosts::whether_they_reach(&self.context, hosts, target);
        self.keep(asked)
    }

    fn drive(&mut self, mut load: SharedLoad) -> Result<Answer, String> {
        load.hosts = self.permitted(load.hosts)?;
        let target = self.target()?;
        let asked = AskedOfHosts::driving(&self.context, load, target);
        self.keep(asked)
    }

    fn target(&self) -> Result<(&SshHost, bool), String> {
        let host = self.on.host.as_ref().ok_or("the run has no host")?;
        Ok((host, self.on.sudo))
    }

    fn permitted(&self, hosts: LoadHostWays) -> Result<LoadHostWays, String> {
        match hosts.0.is_empty() || self.asked.is_some() {
            true => Err("it asks for load hosts out of turn".to_owned()),
            false => self.allowed.permitted(hosts),
        }
    }

    fn keep(&mut self, asked: io::Result<AskedOfHosts>) -> Result<Answer, String> {
        self.asked = Some(asked.map_err(|error| error.to_string())?);
        Ok(Answer::Done)
    }

    fn next(&mut self, stop: bool) -> Result<Answer, String> {
        let asked = self.asked.as_mut().ok_or("no load host does anything")?;
        let answer = asked.next(stop);
        if !matches!(answer, Answer::Second(_) | Answer::Done) {
            self.asked = None;
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_hosts_are_those_of_the_file_and_lead_where_it_says() {
        let allowed = AllowedLoadHosts {
            hosts: BTreeSet::from(["ssh:gen1".to_owned(), LOCAL.to_owned()]),
            ways: vec!["host=10.0.0.5".to_owned()],
        };
        let check = |name: &str, server: &str| {
            let hosts = LoadHostWays(vec![(name.to_owned(), vec![server.to_owned()])]);
            allowed.permitted(hosts).map(|hosts| hosts.0[0].1[0].clone())
        };
        let found = check("ssh:gen1", "host=10.0.0.5 port=6432 user=ann service=x").unwrap();
        assert!(
            found.contains("port='6432'") && !found.contains("service"),
            "{found}"
        );
        // The host of the run reaches its own server.
        assert_eq!(
            check(LOCAL, "host=/run/postgresql").unwrap(),
            "host=/run/postgresql"
        );
        for server in ["host=/run/postgresql", "host=10.0.0.6 user=ann", "service=x"] {
            assert!(
                check("ssh:gen1", server)
                    .unwrap_err()
                    .contains("the way to the server"),
                "{server}"
            );
        }
        assert!(
            check("ssh:other", "host=10.0.0.5")
                .unwrap_err()
                .contains("does not name")
        );
    }
}
