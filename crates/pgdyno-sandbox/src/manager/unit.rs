//! A unit of systemd, and what systemctl says of it.

use crate::programs;
use crate::sandbox::process::command;
use pgdyno_host::LocalHost;
use pgdyno_server::User;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::process::Command;

const SYSTEMCTL: &str = "systemctl";
/// Properties that show whether a unit may be stopped and started.
const PROPERTIES: [&str; 6] = [
    "LoadState",
    "MainPID",
    "CanStop",
    "RefuseManualStop",
    "RefuseManualStart",
    "Transient",
];
/// Properties that name units which are stopped with it, and not started with it.
const DEPENDENT: [&str; 5] = [
    "RequiredBy",
    "RequisiteOf",
    "BoundBy",
    "ConsistsOf",
    "PropagatesStopTo",
];
/// The property that names units which start it again by themselves.
const UPHOLDING: &str = "UpheldBy";

/// A unit of systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Name with its ending, as "postgresql@17-main.service".
    pub(super) name: String,
    /// The user whose own manager has it; `None` of the system's.
    pub(super) of_user: Option<u32>,
}

/// What a unit is, as far as it matters for stopping it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Properties {
    /// Process id of its main process; 0 without one.
    pub(super) main_pid: u32,
    /// Why it is not stopped and started, if so.
    pub(super) refusal: Option<String>,
}

impl Unit {
    /// The unit of a control group, by the group's path, if it is in one.
    pub(super) fn of_group(path: &str) -> Option<Unit> {
        let of_user = path.split('/').find_map(|part| {
            let number = part.strip_prefix("user@")?.strip_suffix(".service")?;
            number.parse().ok()
        });
        let is_service = |part: &&str| part.ends_with(".service") && !part.starts_with("user@");
        let name = path.rsplit('/').find(is_service)?;
        // systemd puts it before names that would be files of the kernel's.
        let name = name.strip_prefix('_').unwrap_or(name);
        Some(Unit {
            name: name.to_owned(),
            of_user,
        })
    }

    /// `systemctl` with words, which go before the unit's name.
    pub(super) fn systemctl(&self, words: &[&str]) -> io::Result<Command> {
        let other = self.of_user.filter(|uid| !User::is_own(*uid));
        let user = other.and_then(|uid| User::numbered(&LocalHost::new(), uid));
        let mut command = command(&programs::find(SYSTEMCTL), user.as_ref(), &[])?;
        if let Some(uid) = self.of_user {
            command
                .env("XDG_RUNTIME_DIR", format!("/run/user/{uid}"))
                .arg("--user");
        }
        command
            .arg("--no-ask-password")
            .args(words)
            .arg("--")
            .arg(&self.name);
        Ok(command)
    }

    /// The command that a person would stop, start or restart it with.
    pub(super) fn line(&self, word: &str) -> String {
        let user = if self.of_user.is_some() { "--user " } else { "" };
        format!("{SYSTEMCTL} {user}{word} {}", self.name)
    }

    /// Asks systemd.
    pub(super) fn properties(&self) -> Result<Properties, String> {
        let asked: Vec<&str> = PROPERTIES
            .into_iter()
            .chain(DEPENDENT)
            .chain([UPHOLDING])
            .collect();
        let names = format!("--property={}", asked.join(","));
        let asked = ["show", names.as_str()];
        let output = self
            .systemctl(&asked)
            .and_then(programs::answer)
            .map_err(|error| format!("{SYSTEMCTL}: {error}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{SYSTEMCTL}: {}", text.trim()));
        }
        Ok(properties_in(&String::from_utf8_lossy(&output.stdout)))
    }
}

fn properties_in(text: &str) -> Properties {
    let of: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let is = |name: &str, value: &str| of.get(name) == Some(&value);
    let named = |names: &[&'static str]| {
        let mut all = names.iter().filter_map(|name| of.get(name).copied());
        all.find(|units| !units.is_empty())
    };
    let refusal = match () {
        () if is("LoadState", "masked") => Some("it is masked"),
        () if !is("LoadState", "loaded") => Some("its file is not loaded"),
        () if is("CanStop", "no") || is("RefuseManualStop", "yes") => {
            Some("it refuses to be stopped by hand")
        }
        () if is("RefuseManualStart", "yes") => Some("it refuses to be started by hand"),
        () if is("Transient", "yes") => Some("it is transient: once stopped it is gone"),
        () => None,
    };
    let dependent = || {
        let units = named(&DEPENDENT)?;
        Some(format!(
            "what needs it would be stopped with it, and stay down: {units}"
        ))
    };
    let upholding = || {
        let units = named(&[UPHOLDING])?;
        Some(format!(
            "it would be started again while it is stopped, by {units}"
        ))
    };
    let refusal = refusal.map(str::to_owned).or_else(dependent).or_else(upholding);
    Properties {
        main_pid: of.get("MainPID").and_then(|pid| pid.parse().ok()).unwrap_or(0),
        refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_of_a_group_is_the_service_that_is_deepest() {
        let check = |path: &str, expected: Option<(&str, Option<u32>)>| {
            let expected = expected.map(|(name, of_user)| Unit {
                name: name.to_owned(),
                of_user,
            });
            assert_eq!(Unit::of_group(path), expected, "{path}");
        };
        check(
            "/system.slice/system-postgresql.slice/postgresql@17-main.service",
            Some(("postgresql@17-main.service", None)),
        );
        check(
            "/system.slice/postgresql-16.service",
            Some(("postgresql-16.service", None)),
        );
        check("/system.slice/a.service/inner", Some(("a.service", None)));
        check(
            "/user.slice/user-1000.slice/user@1000.service/app.slice/db.service",
            Some(("db.service", Some(1000))),
        );
        check("/user.slice/user-1000.slice/user@1000.service/init.scope", None);
        check("/user.slice/user-0.slice/session-3.scope", None);
        check("/", None);
    }

    #[test]
    fn unit_that_may_not_be_stopped_is_refused() {
        let check = |text: &str, main_pid: u32, refusal: Option<&str>| {
            let found = properties_in(text);
            assert_eq!(
                (found.main_pid, found.refusal.as_deref()),
                (main_pid, refusal),
                "{text}"
            );
        };
        let loaded =
            "LoadState=loaded\nMainPID=812\nCanStop=yes\nRefuseManualStop=no\nRefuseManualStart=no\n";
        check(loaded, 812, None);
        check(
            &loaded.replace("RefuseManualStop=no", "RefuseManualStop=yes"),
            812,
            Some("it refuses to be stopped by hand"),
        );
        check(
            &loaded.replace("RefuseManualStart=no", "RefuseManualStart=yes"),
            812,
            Some("it refuses to be started by hand"),
        );
        check(
            "LoadState=not-found\nMainPID=0\n",
            0,
            Some("its file is not loaded"),
        );
        check("", 0, Some("its file is not loaded"));
        check(&format!("{loaded}RequiredBy=\nUpheldBy=\n"), 812, None);
        check(
            &format!("{loaded}PropagatesStopTo=app.service\n"),
            812,
            Some("what needs it would be stopped with it, and stay down: app.service"),
        );
        check(
            &format!("{loaded}UpheldBy=db.target\n"),
            812,
            Some("it would be started again while it is stopped, by db.target"),
        );
    }
}
