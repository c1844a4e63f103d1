//! `ip` of iproute2: what of it a sandbox's network needs, and what it prints.

use super::Block;
use crate::programs;
use crate::sandbox::{SandboxError, process};
use serde::Deserialize;

/// Name of the program that makes links and namespaces.
pub(in crate::sandbox) const PROGRAM: &str = "ip";
pub(super) const PACKAGE: &str = "iproute2";

/// A link, as `ip -json link` prints it; its other fields are skipped.
#[derive(Debug, Deserialize)]
pub(super) struct Link {
    #[serde(rename = "ifname")]
    pub(super) name: String,
    #[serde(rename = "ifalias")]
    pub(super) alias: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
}

impl Link {
    /// It was set up, whatever the other end is.
    pub(super) fn is_up(&self) -> bool {
        self.flags.iter().any(|flag| flag == "UP")
    }
}

/// A route, as `ip -json route` prints it.
#[derive(Debug, Deserialize)]
pub(super) struct Route {
    #[serde(rename = "dst")]
    to: String,
    #[serde(rename = "dev")]
    pub(super) device: Option<String>,
}

impl Route {
    /// Where it leads; `None` for the default route, which leads everywhere else.
    pub(super) fn block(&self) -> Option<Block> {
        Block::parse(&self.to).filter(|block| block.length > 0)
    }
}

/// The links of this process's namespace.
pub(super) fn links() -> Result<Vec<Link>, SandboxError> {
    listed(&["-json", "link", "show"])
}

/// The routes of IPv4 in all tables.
pub(super) fn routes() -> Result<Vec<Route>, SandboxError> {
    listed(&["-json", "-4", "route", "show", "table", "all"])
}

fn listed<T: for<'de> Deserialize<'de>>(arguments: &[&str]) -> Result<Vec<T>, SandboxError> {
    let text = ip(arguments)?;
    parsed(&text).map_err(|reason| SandboxError::Network {
        what: command_line(arguments),
        reason,
    })
}

/// Empty output is an empty list, as where there are no routes.
pub(super) fn parsed<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<T>, String> {
    match text.trim() {
        "" => Ok(Vec::new()),
        text => serde_json::from_str(text).map_err(|e| format!("expected a list in JSON: {e}")),
    }
}

/// Checks that the program is installed.
pub(super) fn check_program() -> Result<(), SandboxError> {
    if programs::is_there(PROGRAM, "-V") {
        return Ok(());
    }
    Err(SandboxError::NoProgram {
        program: PROGRAM,
        package: PACKAGE,
    })
}

/// Runs it; what it prints.
pub(super) fn ip(arguments: &[&str]) -> Result<String, SandboxError> {
    let path = programs::find(PROGRAM);
    if path.is_relative() {
        check_program()?;
    }
    let mut command = process::command(&path, None, &[]).map_err(SandboxError::io(&path, "run"))?;
    command.args(arguments);
    match process::run(PROGRAM, command) {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(SandboxError::Program { reason, .. }) => Err(SandboxError::NetworkCommand {
            command: command_line(arguments),
            reason,
        }),
        Err(error) => Err(error),
    }
}

fn command_line(arguments: &[&str]) -> String {
    format!("{PROGRAM} {}", arguments.join(" "))
}
