//! A container of docker or podman, and what its engine says of it.

use super::Act;
use crate::sandbox::process::{WAIT_S, ask, command};
use crate::started_with;
use crate::{log, programs};
use pgdyno_host::{Directory, HostAccess, parent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

/// An engine's description of one container is some kilobytes.
const INSPECTED_BYTES_MAX: usize = 1 << 20;
/// The signal with which PostgreSQL ends its sessions and stops in order: with SIGTERM it waits
/// until its clients have left.
const FAST: (&str, u64) = ("INT", 2);
/// First processes of a container that only pass signals on.
const INITS: [&str; 4] = ["docker-init", "podman-init", "tini", "dumb-init"];
/// Labels of containers that something else starts again, and what.
const SUPERVISED: [(&str, &str); 2] = [
    ("PODMAN_SYSTEMD_UNIT", "the systemd unit"),
    ("com.docker.swarm.service.name", "the swarm's service"),
];

/// What runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Engine {
    Docker,
    Podman,
}

impl Engine {
    /// The one of that name.
    pub(super) fn named(name: &str) -> Option<Engine> {
        [Engine::Docker, Engine::Podman]
            .into_iter()
            .find(|engine| engine.program() == name)
    }

    /// Its command.
    pub(super) fn program(self) -> &'static str {
        match self {
            Engine::Docker => "docker",
            Engine::Podman => "podman",
        }
    }

    fn command(self, words: &[&str]) -> io::Result<Command> {
        let mut command = command(&programs::find(self.program()), None, &[])?;
        command.args(words);
        Ok(command)
    }

    fn ask(self, words: &[&str]) -> Result<Output, String> {
        let command = self.command(words).map_err(|error| error.to_string())?;
        ask(self.program(), command).map_err(|error| error.to_string())
    }
}

/// A container of docker or podman.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    engine: Engine,
    /// Its number, which no other one has: 64 hexadecimal digits.
    id: String,
    /// Its name, for people.
    name: String,
}

/// What an engine says of a container, as far as it matters for stopping it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    name: String,
    image: String,
    /// Podman's name of the program that makes its namespaces.
    #[serde(rename = "OCIRuntime")]
    oci_runtime: Option<String>,
    state: InspectedState,
    config: InspectedConfig,
    host_config: InspectedHostConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedState {
    /// Its first process; 0 where it does not run.
    pid: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedConfig {
    /// Name or number of a signal; by default SIGTERM.
    #[serde(default)]
    stop_signal: Value,
    labels: Option<BTreeMap<String, String>>,
    /// Variables of its environment; there may be secrets among them.
    env: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedHostConfig {
    auto_remove: bool,
    /// Docker's name of the program that makes its namespaces.
    runtime: Option<String>,
    ulimits: Option<Vec<InspectedLimit>>,
}

/// A limit of the kernel's for its processes (getrlimit(2)); -1 without one.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedLimit {
    /// "nofile", or with podman "RLIMIT_NOFILE".
    name: String,
    soft: i64,
    hard: i64,
}

impl Container {
    /// The container of a server's first process, by the part of its control group that names it.
    ///
    /// # Errors
    ///
    /// Why it is not stopped and started: the end of a sentence.
    pub(super) fn find(
        host: &dyn HostAccess,
        engine: Engine,
        id: &str,
        pid: u32,
    ) -> Result<Container, String> {
        let found = inspect(engine, id)?;
        let name = found.name.trim_start_matches('/').to_owned();
        let of = format!("it runs in the container {name} ({})", engine.program());
        let first = found.state.pid;
        let is_init = || {
            let name = host
                .read_trimmed(&format!("/proc/{first}/comm"))
                .unwrap_or_default();
            parent(host, pid) == Ok(first) && INITS.contains(&name.as_str())
        };
        if first != pid && !is_init() {
            return Err(format!("{of}, whose first process is another, {first}"));
        }
        match found.refusal() {
            Some(why) => Err(format!("{of}, {why}")),
            None => Ok(Container {
                engine,
                id: id.to_owned(),
                name,
            }),
        }
    }

    /// Whether both are the same container, whatever it is called.
    pub(super) fn is_as(&self, other: &Container) -> bool {
        (self.engine, &self.id) == (other.engine, &other.id)
    }

    /// The command that a person would stop, start or restart it with.
    pub(super) fn line(&self, word: &str) -> String {
        format!("{} {word} {}", self.engine.program(), self.name)
    }

    pub(super) fn command(&self, act: Act) -> io::Result<Command> {
        let time = WAIT_S.to_string();
        match act {
            Act::Stop => self.engine.command(&["stop", "--time", &time, &self.id]),
            Act::Start => self.engine.command(&["start", &self.id]),
        }
    }

    /// The end of what it has printed since, in either way.
    pub(crate) fn printed_since(&self, since: SystemTime) -> Option<String> {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let since = since.as_secs().to_string();
        let words = ["logs", "--tail", "100", "--since", &since, &self.id];
        let output = self.engine.ask(&words).ok()?;
        let text = [output.stdout, output.stderr].concat();
        let last = log::last_lines(&String::from_utf8_lossy(&text))?;
        Some(format!("; {} ends with: {last}", self.line("logs")))
    }

    /// `postgres -C NAME` with the files of this stopped container, in another one of its image,
    /// which is removed afterwards.
    ///
    /// # Errors
    ///
    /// What keeps it from running, or what its program says.
    pub(crate) fn computed_parameter(&self, data: &Path, name: &str) -> io::Result<String> {
        let text = started_with::read(data)?;
        let (program, arguments) = started_with::options_in(&text)?;
        let owner = Directory::open(data)?.owner();
        let user = format!("{}:{}", owner.uid, owner.gid);
        let found = inspect(self.engine, &self.id).map_err(io::Error::other)?;
        let volumes = format!("--volumes-from={}", self.id);
        let (runtime, limits) = (found.runtime(), found.limits());
        let mut words = match (self.engine, &runtime) {
            (Engine::Podman, Some(runtime)) => vec!["--runtime", runtime, "run"],
            (Engine::Docker, Some(runtime)) => vec!["run", "--runtime", runtime],
            (_, None) => vec!["run"],
        };
        words.extend(["--rm", "--network=none", "--read-only", "--user", &user, &volumes]);
        words.extend(limits.iter().flat_map(|limit| ["--ulimit", limit]));
        words.extend(["--entrypoint", program]);
        if let Some(place) = found.place_of_data() {
            words.extend(["--env", place]);
        }
        words.push(&found.image);
        words.extend(arguments);
        words.extend(["-C", name]);
        let output = self.engine.ask(&words).map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Inspected {
    /// The variable that names the server's data directory, where its arguments may not.
    fn place_of_data(&self) -> Option<&str> {
        let mut all = self.config.env.iter().flatten();
        all.find(|variable| variable.starts_with("PGDATA="))
            .map(String::as_str)
    }

    /// The program that makes its namespaces, by its engine's name.
    fn runtime(&self) -> Option<&str> {
        self.oci_runtime
            .as_deref()
            .or(self.host_config.runtime.as_deref())
    }

    /// Its limits as --ulimit takes them.
    fn limits(&self) -> Vec<String> {
        let all = self.host_config.ulimits.iter().flatten();
        let of = |limit: &InspectedLimit| {
            let name = limit.name.trim_start_matches("RLIMIT_").to_ascii_lowercase();
            format!("{name}={}:{}", limit.soft, limit.hard)
        };
        all.map(of).collect()
    }

    /// Why the container is not stopped and started, if so: the end of a sentence.
    fn refusal(&self) -> Option<String> {
        if self.host_config.auto_remove {
            return Some("which is removed once it stops (--rm)".to_owned());
        }
        let labels = self.config.labels.as_ref();
        let supervisor = SUPERVISED.iter().find_map(|(label, what)| {
            let name = labels?.get(*label).filter(|name| !name.is_empty())?;
            Some(format!("which {what} {name} starts and stops"))
        });
        let is_fast = match &self.config.stop_signal {
            Value::Number(number) => number.as_u64() == Some(FAST.1),
            Value::String(name) => name.trim_start_matches("SIG") == FAST.0 || name.parse() == Ok(FAST.1),
            _ => false,
        };
        let waits = || {
            "whose stop signal is not SIGINT (--stop-signal): PostgreSQL would wait for its clients to leave, and be killed"
                .to_owned()
        };
        supervisor.or_else(|| (!is_fast).then(waits))
    }
}

/// Asks the engine.
fn inspect(engine: Engine, id: &str) -> Result<Inspected, String> {
    let output = engine.ask(&["container", "inspect", id])?;
    inspected(&output.stdout).ok_or_else(|| {
        format!(
            "{} container inspect {id}: expected one container",
            engine.program()
        )
    })
}

/// What `container inspect` prints of one container.
fn inspected(json: &[u8]) -> Option<Inspected> {
    if json.len() > INSPECTED_BYTES_MAX {
        return None;
    }
    let [found]: [Inspected; 1] = serde_json::from_slice(json).ok()?;
    Some(found)
}

/// For the fuzz targets.
pub(crate) fn fuzzed_inspected(json: &[u8]) {
    let refusal = inspected(json).and_then(|found| found.refusal());
    assert!(refusal.is_none_or(|why| !why.is_empty()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As docker and podman 5 print it, and as podman 4 does.
    const RUNS: &str = r#"[{"Id": "3fa1", "Name": "/pg", "Image": "sha256:12", "State": {"Pid": 60, "Status": "running"},
        "Config": {"StopSignal": "SIGINT", "Labels": null, "Env": ["POSTGRES_PASSWORD=secret", "PGDATA=/data"]},
        "HostConfig": {"AutoRemove": false, "Runtime": "runc", "Ulimits": [{"Name": "nofile", "Soft": 1024, "Hard": -1}]}}]"#;

    #[test]
    fn container_that_does_not_come_back_in_order_is_refused() {
        let check = |from: &str, to: &str, expected: Option<&str>| {
            let text = RUNS.replace(from, to);
            assert!(from.is_empty() || text != RUNS, "{from}");
            let found = inspected(text.as_bytes()).expect("a container");
            assert_eq!(found.place_of_data(), Some("PGDATA=/data"));
            assert_eq!(found.runtime(), Some("runc"));
            assert_eq!(found.limits(), ["nofile=1024:-1"]);
            match (found.refusal(), expected) {
                (None, None) => {}
                (Some(why), Some(expected)) => assert!(why.contains(expected), "{why}"),
                (found, _) => panic!("{found:?} is not {expected:?}: {to}"),
            }
        };
        check("", "", None);
        check("\"SIGINT\"", "2", None);
        check("\"SIGINT\"", "\"INT\"", None);
        for other in ["15", "\"SIGTERM\"", "\"\"", "null"] {
            check("\"SIGINT\"", other, Some("not SIGINT"));
        }
        check("\"StopSignal\": \"SIGINT\",", "", Some("not SIGINT"));
        check("\"AutoRemove\": false", "\"AutoRemove\": true", Some("--rm"));
        check(
            "null",
            r#"{"PODMAN_SYSTEMD_UNIT": "pg.service"}"#,
            Some("which the systemd unit pg.service starts"),
        );
        check("null", r#"{"PODMAN_SYSTEMD_UNIT": "", "a": "b"}"#, None);
        check("\"nofile\"", "\"RLIMIT_NOFILE\"", None);
        let of_podman = RUNS.replace("\"Runtime\": \"runc\"", "\"Runtime\": \"oci\"");
        let of_podman = of_podman.replace("\"Name\": \"/pg\"", "\"Name\": \"pg\", \"OCIRuntime\": \"crun\"");
        assert_eq!(inspected(of_podman.as_bytes()).unwrap().runtime(), Some("crun"));
    }

    #[test]
    fn what_is_no_container_is_none() {
        for text in [
            "",
            "[]",
            "{}",
            "[1]",
            &RUNS.replace("60", "-1"),
            &format!("[{RUNS}]"),
        ] {
            assert!(inspected(text.as_bytes()).is_none(), "{text}");
        }
        let mut large = RUNS.as_bytes().to_vec();
        large.resize(INSPECTED_BYTES_MAX + 1, b' ');
        assert!(inspected(&large).is_none());
    }
}
