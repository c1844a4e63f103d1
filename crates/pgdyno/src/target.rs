//! From what the user names to a target: a sandbox, or a server by its connection string.

use crate::cli::{CreateArgs, HostArgs};
use crate::context::{Context, variable};
use crate::failure::{Failure, InContext as _, Refused, Result, Usage};
use crate::output::hide;
use crate::sandboxes;
use pgdyno_host::{HostAccess, block};
use pgdyno_knobs::{ServerRef, Target};
use pgdyno_lab::{CreatePart, ExperimentFile, Finding, FindingKind, TargetPart};
use pgdyno_sandbox::{Control, DEFAULT_MAJOR, Guard, MAJORS, Managed, Manager, Sandbox, SandboxError, State};
use pgdyno_server::{Conninfo, Found, Postmaster, Server, Sought};
use std::path::PathBuf;

const SANDBOX_PREFIX: &str = "sandbox:";

/// A target that a command holds.
pub(crate) struct Held {
    pub(crate) target: Target,
    /// For people and the store; no secret in it.
    pub(crate) name: String,
    /// As it was named; it may hold a password.
    pub(crate) text: String,
    /// Keeps other commands away from a sandbox.
    guard: Option<Guard>,
}

impl Held {
    /// The target, and what keeps other commands away from it.
    pub(crate) fn parts(self) -> (Target, Option<Guard>) {
        (self.target, self.guard)
    }

    /// Says by what it would be restarted, where that is agreed to.
    pub(crate) fn show_manager(&self) {
        if let Some(manager) = self.target.control.manager() {
            err!("restarts of {}: `{manager}` ({})", self.name, manager.kind());
        }
    }

    /// The sandbox that it is, if it is one.
    pub(crate) fn sandbox(&self) -> Option<&str> {
        match &self.target.reference {
            ServerRef::Sandbox { name, .. } => Some(name),
            ServerRef::Address { .. } => None,
        }
    }
}

/// A target that is only read, or loaded: nothing is locked, a sandbox must be running.
pub(crate) fn conninfo(context: &Context, text: &str) -> Result<(Conninfo, Option<Sandbox>)> {
    hide(text);
    match text.strip_prefix(SANDBOX_PREFIX) {
        Some(name) => {
            let sandbox = Sandbox::open(&context.sandboxes(), name)?;
            match sandbox.state() {
                State::Running(_) => Ok((sandbox.conninfo(), Some(sandbox))),
                State::HalfMade => Err(SandboxError::HalfMade(name.to_owned()).into()),
                State::Stopped | State::Crashed | State::Unmounted => Err(Usage(format!(
                    "the sandbox \"{name}\" is not running; `pgdyno sandbox start {name}` starts it"
                ))
                .into()),
            }
        }
        None => Ok((found(text)?, None)),
    }
}

/// The server that a connection string means; what is to be known of the way there is said.
fn found(text: &str) -> Result<Conninfo> {
    // It may come from a file.
    hide(text);
    let found = Found::find(text, &variable)?;
    for remark in &found.remarks {
        err!("{remark}");
    }
    Ok(found.conninfo)
}

/// The target of an experiment: `named` on the command line, else the file's.
pub(crate) fn of_experiment(
    context: &Context,
    file: &ExperimentFile,
    named: Option<&str>,
    allows_restart: bool,
    command: &str,
) -> Result<Held> {
    let Some(text) = text_of(&file.target, named) else {
        return Err(Usage(NO_TARGET.into()).into());
    };
    hide(&text);
    if let Some(name) = text.strip_prefix(SANDBOX_PREFIX) {
        if let Some(create) = &file.target.create {
            match Sandbox::open(&context.sandboxes(), name) {
                Err(_) => make(context, name, create)?,
                // What the file follows from is another one's size; one that is named beside the
                // file is meant as it is.
                Ok(there) if named.is_none() => is_as_wanted(&there, create)?,
                Ok(_) => {}
            }
        }
        return of_sandbox(context, name, command);
    }
    let held = with_manager(of_server(
        context,
        &text,
        Restarts::of_file(file, allows_restart),
    )?)?;
    held.show_manager();
    Ok(held)
}

const NO_TARGET: &str = "neither the file's [target] nor --target names a server";
const RESTART_COMMAND: &str = "restart_command = \"...\" (in the file's [target], the command that restarts this server; stop_command and \
     start_command, where that is two)";

/// How a server that pgdyno did not create may be restarted.
pub(crate) enum Restarts {
    /// It may not.
    Forbidden,
    /// By what runs it, which is to be found.
    ByWhatIsFound,
    /// By this.
    By(Manager),
}

impl Restarts {
    /// As its owner has agreed: by the owner's commands where there are any.
    pub(crate) fn agreed(allows: bool, given: Option<Manager>) -> Restarts {
        match (allows, given) {
            (false, _) => Restarts::Forbidden,
            (true, None) => Restarts::ByWhatIsFound,
            (true, Some(given)) => Restarts::By(given),
        }
    }

    fn of_file(file: &ExperimentFile, allows: bool) -> Restarts {
        let target = &file.target;
        let commands = [
            &target.restart_command,
            &target.stop_command,
            &target.start_command,
        ];
        let [restart, stop, start] = commands.map(Option::as_deref);
        // A file with others is not read.
        let given = Manager::given(restart, stop, start).unwrap_or_default();
        Restarts::agreed(allows || target.allow_restart, given)
    }
}

/// Refuses a file's consent to restarts for another host than the one that it is run on.
pub(crate) fn check_consent(
    part: &TargetPart,
    named: Option<&str>,
    allows_restart: bool,
    on: &HostArgs,
) -> Result<()> {
    let is_sandbox = text_of(part, named).is_some_and(|text| sandbox_named(&text).is_some());
    let (agreed, here) = (part.host.as_deref(), on.host.as_ref().map(ToString::to_string));
    if allows_restart || !part.allow_restart || is_sandbox || agreed == here.as_deref() {
        return Ok(());
    }
    let this = here.as_deref().unwrap_or("this host");
    let error = Refused(format!(
        "allow_restart = true in the file's [target] is consent for {}, not for {this}",
        agreed.unwrap_or("the own host")
    ));
    let in_file = here
        .as_ref()
        .map(|here| format!("; so does host = \"{here}\" beside allow_restart"));
    let hint = format!("--allow-restart agrees for {this}{}", in_file.unwrap_or_default());
    Err(Failure::from(error).with_hint(hint))
}

/// How a sandbox is named as a target.
pub(crate) fn of_sandbox_named(name: &str) -> String {
    format!("{SANDBOX_PREFIX}{name}")
}

/// The name of a sandbox as a target, if it is one.
pub(crate) fn sandbox_named(target: &str) -> Option<&str> {
    target.strip_prefix(SANDBOX_PREFIX)
}

/// How a sandbox is shown and stored as a target.
pub(crate) fn shown_sandbox(name: &str) -> String {
    format!("sandbox {name}")
}

/// The target of an experiment as it is named: on the command line, else in the file.
pub(crate) fn text_of(part: &TargetPart, named: Option<&str>) -> Option<String> {
    let of_file = || match (&part.sandbox, &part.connection) {
        (Some(name), _) => Some(of_sandbox_named(name)),
        (None, connection) => connection.clone(),
    };
    named.map(str::to_owned).or_else(of_file)
}

/// The target of an experiment before anything is done to it.
pub(crate) enum Ahead {
    /// It runs; consent that it lacks.
    There {
        target: Box<Target>,
        findings: Vec<Finding>,
    },
    /// It is a sandbox that the run makes or starts: why it cannot be asked, its major version, and
    /// where its data is or will be.
    NotYet {
        why: String,
        version: Option<u32>,
        data: PathBuf,
    },
    /// A run would have no target.
    Nowhere(Finding),
}

/// Checks the target of an experiment. Nothing is locked, made or started.
pub(crate) fn ahead(
    context: &Context,
    file: &ExperimentFile,
    named: Option<&str>,
    allows_restart: bool,
) -> Result<Ahead> {
    let finding = |kind, what: String, mend: String| Finding {
        kind,
        treatments: Vec::new(),
        what,
        mends: vec![mend],
    };
    let Some(text) = text_of(&file.target, named) else {
        let mend = "--target sandbox:NAME (or a connection string)".to_owned();
        return Ok(Ahead::Nowhere(finding(
            FindingKind::Value,
            NO_TARGET.into(),
            mend,
        )));
    };
    let Some(name) = text.strip_prefix(SANDBOX_PREFIX) else {
        let mut findings = Vec::new();
        let (held, unmanaged) = of_server(context, &text, Restarts::of_file(file, allows_restart))?;
        if let Some(why) = unmanaged {
            findings.push(finding(
                FindingKind::Consent,
                no_manager(&why),
                RESTART_COMMAND.to_owned(),
            ));
        }
        return Ok(Ahead::There {
            target: Box::new(held.target),
            findings,
        });
    };
    Ok(match Sandbox::open(&context.sandboxes(), name) {
        Ok(sandbox) => match sandbox.state() {
            State::Running(_) => Ahead::There {
                target: Box::new(target_of(context, sandbox, true)),
                findings: Vec::new(),
            },
            State::HalfMade => Ahead::Nowhere(finding(
                FindingKind::Other,
                SandboxError::HalfMade(name.to_owned()).to_string(),
                format!("`pgdyno sandbox destroy {name}`"),
            )),
            State::Stopped | State::Crashed | State::Unmounted => Ahead::NotYet {
                why: format!(
                    "the sandbox \"{name}\" does not run, and its server cannot be asked; `pgdyno sandbox start {name}` first"
                ),
                version: sandbox.record().major(),
                data: sandbox.record().data.clone(),
            },
        },
        Err(_) if let Some(create) = &file.target.create => Ahead::NotYet {
            why: format!(
                "the sandbox \"{name}\" is made when it runs, and there is no server to be asked yet"
            ),
            version: create.version.or((!create.installed).then_some(DEFAULT_MAJOR)),
            data: context.sandboxes().join(name).join("data"),
        },
        Err(error) => Ahead::Nowhere(finding(
            FindingKind::Other,
            error.to_string(),
            format!("`pgdyno sandbox create {name}`"),
        )),
    })
}

/// Refuses a sandbox that was made with other limits than the file asks for, by a run at another
/// size perhaps.
fn is_as_wanted(there: &Sandbox, create: &CreatePart) -> Result<()> {
    let record = there.record();
    let wanted_bytes = create.memory.as_deref().map(pgdyno_host::size_bytes).transpose();
    let wanted_bytes = wanted_bytes.map_err(Failure::new)?;
    let has_other = [
        wanted_bytes.is_some() && wanted_bytes != record.limits.memory_bytes,
        create.cpus.is_some() && create.cpus != record.limits.cpus,
        create.version.is_some() && create.version != record.major(),
    ];
    if !has_other.contains(&true) {
        return Ok(());
    }
    let name = &record.name;
    let error = Usage(format!(
        "the sandbox \"{name}\" was made with other memory, CPUs or another version than the file asks for"
    ));
    Err(Failure::from(error).with_hint(format!(
        "`pgdyno sandbox destroy {name}` lets the run make it again; with --target sandbox:{name} it is taken as it is"
    )))
}

/// Makes the sandbox that a file asks for.
fn make(context: &Context, name: &str, create: &CreatePart) -> Result<()> {
    let size = |text: &Option<String>| {
        text.as_deref()
            .map(pgdyno_host::size_bytes)
            .transpose()
            .map_err(Failure::new)
    };
    err!("making the sandbox \"{name}\"");
    sandboxes::create(
        context,
        &CreateArgs {
            pg_bin: create
                .installed
                .then(|| installed(context, create.version))
                .transpose()?,
            cpus: create.cpus,
            memory: size(&create.memory)?,
            iops: create.iops,
            bandwidth: size(&create.bandwidth)?,
            listen: create
                .listen
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(Usage)?,
            standbys: create.standbys,
            sync: create.sync,
            ..CreateArgs::plain(name, create.version.unwrap_or(DEFAULT_MAJOR))
        },
    )?;
    Ok(())
}

/// Where the installed server of a major version is, or the newest that pgdyno knows.
fn installed(context: &Context, major: Option<u32>) -> Result<PathBuf> {
    let found = context.binaries().newest_installed(major);
    let found = found.map(|binaries| binaries.directory);
    found.ok_or_else(|| {
        let (oldest, newest) = MAJORS.into_inner();
        let (versions, deb, rpm) = match major {
            Some(major) => (
                major.to_string(),
                format!("postgresql-{major}"),
                format!("postgresql{major}-server"),
            ),
            None => (
                format!("{oldest} to {newest}"),
                "postgresql".to_owned(),
                "postgresql-server".to_owned(),
            ),
        };
        Failure::new(format!(
            "no PostgreSQL of version {versions} is installed here, and the file's [target] needs one (create.installed); \
             install the package {deb} ({rpm} where packages are rpms)"
        ))
    })
}

/// The target that a command line names.
pub(crate) fn named(context: &Context, text: &str, restarts: Restarts, command: &str) -> Result<Held> {
    match text.strip_prefix(SANDBOX_PREFIX) {
        Some(name) => of_sandbox(context, name, command),
        None => with_manager(of_server(context, text, restarts)?),
    }
}

/// A target whose knobs are read and not set: nothing is locked, and a sandbox must be running.
pub(crate) fn read_only(context: &Context, text: &str) -> Result<Target> {
    match text.strip_prefix(SANDBOX_PREFIX) {
        Some(name) => {
            conninfo(context, text)?;
            let sandbox = Sandbox::open(&context.sandboxes(), name)?;
            Ok(target_of(context, sandbox, true))
        }
        None => Ok(of_server(context, text, Restarts::Forbidden)?.0.target),
    }
}

/// A sandbox, locked, and started if it is not running.
pub(crate) fn of_sandbox(context: &Context, name: &str, command: &str) -> Result<Held> {
    let guard = sandboxes::lock_sandbox(context, name, command)?;
    let sandbox = Sandbox::open(&context.sandboxes(), name)?;
    let was_running = !matches!(sandbox.state(), State::Stopped | State::Unmounted);
    if !matches!(sandbox.state(), State::Running(_)) {
        sandbox.start().context("starting the sandbox")?;
    }
    Ok(Held {
        target: target_of(context, sandbox, was_running),
        name: shown_sandbox(name),
        text: of_sandbox_named(name),
        guard: Some(guard),
    })
}

pub(crate) fn target_of(context: &Context, sandbox: Sandbox, was_running: bool) -> Target {
    let data = sandbox.record().data.clone();
    Target {
        conninfo: sandbox.conninfo(),
        reference: ServerRef::Sandbox {
            root: context.sandboxes(),
            name: sandbox.record().name.clone(),
        },
        was_running,
        disk: block::disk_of(&context.host, &data.to_string_lossy()).ok(),
        data: Some(data),
        control: Control::Sandbox(Box::new(sandbox)),
    }
}

fn no_manager(why: &str) -> String {
    format!("--allow-restart: what restarts this server is unknown: {why}")
}

/// A server whose restart is agreed to has to be one that can be restarted.
fn with_manager((held, unmanaged): (Held, Option<String>)) -> Result<Held> {
    match unmanaged {
        None => Ok(held),
        Some(why) => Err(Failure::from(Refused(no_manager(&why))).with_hint(RESTART_COMMAND)),
    }
}

/// A server that is not a sandbox, and why what restarts it was not found where that was asked for.
fn of_server(context: &Context, text: &str, restarts: Restarts) -> Result<(Held, Option<String>)> {
    let conninfo = found(text)?;
    let mut server = Server::connect(&conninfo)?;
    let port = server
        .value("asking for the port", "SHOW port")?
        .unwrap_or_default();
    let first = first_here(&context.host, &Sought::ask(&mut server), &port);
    let manager = match (restarts, &first) {
        (Restarts::Forbidden, _) => Ok(None),
        (Restarts::By(manager), _) => Ok(Some(manager)),
        (Restarts::ByWhatIsFound, Some((data, pid))) => Manager::find(&context.host, *pid, data).map(Some),
        (Restarts::ByWhatIsFound, None) => {
            Err("its first process and files are not within reach on this host".to_owned())
        }
    };
    let (manager, unmanaged) = match manager {
        Ok(manager) => (manager, None),
        Err(why) => (None, Some(why)),
    };
    let data = first.map(|(data, _)| data);
    let held = Held {
        name: conninfo.to_string(),
        text: text.to_owned(),
        target: Target {
            reference: ServerRef::Address {
                conninfo: conninfo.without_password(),
                manager: manager.clone(),
                data: data.clone(),
            },
            was_running: true,
            disk: data
                .as_ref()
                .and_then(|data| block::disk_of(&context.host, &data.to_string_lossy()).ok()),
            control: match manager {
                Some(manager) => {
                    Control::Managed(Box::new(Managed::new(manager, conninfo.clone(), data.clone())))
                }
                None => Control::None,
            },
            data,
            conninfo,
        },
        guard: None,
    };
    Ok((held, unmanaged))
}

/// The data directory of a server and its first process, where it runs on this host and its files
/// can be written, and its postmaster.pid names the same port.
fn first_here(host: &dyn HostAccess, sought: &Sought, port: &str) -> Option<(PathBuf, u32)> {
    let pid = sought.proven(host)?;
    let data = sought.data_here(host, pid).ok()?;
    let found = Postmaster::of_data(host, &data).ok()?;
    let is_it = found.pid == pid && found.port.is_some_and(|own| own.to_string() == port);
    let auto_conf = data.join("postgresql.auto.conf");
    let is_within_reach = is_it && host.writable(&auto_conf.to_string_lossy()).is_ok();
    is_within_reach.then_some((data, pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_of_a_file_is_for_the_host_that_it_names() {
        let check = |connection: Option<&str>, agreed: Option<&str>, flag: bool, on: Option<&str>| {
            let part = TargetPart {
                connection: connection.map(str::to_owned),
                sandbox: connection.is_none().then(|| "main".to_owned()),
                allow_restart: true,
                host: agreed.map(str::to_owned),
                ..TargetPart::default()
            };
            let on = HostArgs {
                host: on.map(|host| host.parse().unwrap()),
                sudo: false,
            };
            check_consent(&part, None, flag, &on)
        };
        let (server, db1, db2) = (Some("host=/run"), Some("ssh:db1"), Some("ssh:db2"));
        for (connection, agreed, flag, on) in [
            (server, None, false, None),
            (server, db1, false, db1),
            (server, None, true, db1),
            (None, None, false, db1),
        ] {
            check(connection, agreed, flag, on).unwrap();
        }
        for (agreed, on, hint) in [
            (None, db1, "host = \"ssh:db1\""),
            (db2, db1, "--allow-restart agrees for ssh:db1"),
            (db1, None, "--allow-restart agrees for this host"),
        ] {
            let error = check(server, agreed, false, on).unwrap_err();
            assert_eq!(error.class(), pgdyno_record::ErrorClass::Refused);
            assert!(
                error.hint().is_some_and(|found| found.contains(hint)),
                "{error:?}"
            );
        }
    }
}
