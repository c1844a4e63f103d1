//! A command on all hosts of an inventory: at the same time, with what differs between them.

use crate::cli::{Command, HostsArgs};
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Result, with_hint};
use crate::remote::{arguments, request, without_options};
use crate::show;
use crate::ssh_way::{hand_on_stop, hosts_of, run_on, ssh_to_several, way_of_several};
use pgdyno_remote::{InventoryHost, Listener, Output, Request};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Hosts that are asked at the same time.
const AT_ONCE: usize = 16;
/// What is kept of what a command prints.
const PRINTED_MAX: usize = 64 << 20;
/// Characters of a value in the table.
const VALUE_MAX: usize = 60;
/// Of the JSON that is printed.
const FORMAT: &str = "pgdyno-hosts/1";

/// What a host has said.
struct Seen {
    name: String,
    code: u8,
    result: Option<Value>,
    error: Option<String>,
}

/// Runs the command of this process's command line on the hosts of the inventory.
pub(crate) fn run(context: &Context, command: &Command, args: &HostsArgs, file: &Path) -> Result<u8> {
    let hosts = hosts_of(file, &args.target_group)?;
    let (arguments, as_json) = arguments_of_each(arguments()?);
    let request = request(arguments, Vec::new());
    let stop = stop_flag()?;
    let todo: Mutex<VecDeque<&InventoryHost>> = Mutex::new(hosts.iter().collect());
    let seen: Mutex<Vec<Seen>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(hosts.len()) {
            scope.spawn(|| {
                while let Some(host) = next(&todo, &stop) {
                    let found = ask(context, host, (&request, args.host_timeout), &stop);
                    // At once: others may take long.
                    if let Some(error) = found.error.as_ref().filter(|_| !as_json) {
                        err!("{}: {error}", found.name);
                    }
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                }
            });
        }
    });
    let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    let left = todo.into_inner().unwrap_or_else(PoisonError::into_inner);
    seen.extend(
        left.iter()
            .map(|host| failed(host, "not asked: stopped".to_owned())),
    );
    // As the inventory has them.
    seen.sort_by_key(|found| hosts.iter().position(|host| host.name == found.name));
    match as_json {
        true => put_page!("{:#}", document(&seen)),
        false => print(command, &seen),
    }
    Ok(seen.iter().map(|found| found.code).max().unwrap_or(exit::FINE))
}

/// The next host, until somebody asks to stop.
fn next<'h>(todo: &Mutex<VecDeque<&'h InventoryHost>>, stop: &AtomicBool) -> Option<&'h InventoryHost> {
    match stop.load(Ordering::Relaxed) {
        true => None,
        false => todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
    }
}

fn failed(host: &InventoryHost, why: String) -> Seen {
    Seen {
        name: host.name.clone(),
        code: exit::FAILED,
        result: None,
        error: Some(why),
    }
}

/// The command line for each host, which prints JSON; whether the user asks for that too.
fn arguments_of_each(all: Vec<String>) -> (Vec<String>, bool) {
    let mut each = without_options(all, &["--inventory", "--target-group", "--host-timeout"]);
    let as_json = each.iter().any(|argument| argument == "--json");
    if !as_json {
        each.push("--json".to_owned());
    }
    (each, as_json)
}

fn ask(
    context: &Context,
    host: &InventoryHost,
    (request, limit): (&Request, Duration),
    stop: &AtomicBool,
) -> Seen {
    let failed = |why: String| failed(host, why);
    let Some(ssh) = &host.ssh else {
        return failed("ansible_connection is local: run the command here without --inventory".to_owned());
    };
    let program = match ssh_to_several(&host.options) {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    let mut said = Said::default();
    let begun = Instant::now();
    let is_late = || begun.elapsed() > limit;
    let is_over = AtomicBool::new(false);
    let own_stop = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            let is_asked = || stop.load(Ordering::Relaxed) || is_late();
            hand_on_stop(&is_asked, std::iter::once(&own_stop), &is_over);
        });
        let way = way_of_several(&program, ssh, host.sudo);
        let ended = run_on(context, way, request, &mut said, &own_stop);
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    match ended {
        Err(_) if is_late() => failed(format!("it has not ended within {limit:?}")),
        Err(error) => failed(with_hint(error)),
        Ok(code) => {
            let remarks = String::from_utf8_lossy(&said.remarks).trim().to_owned();
            let (result, error) = match serde_json::from_slice(&said.data) {
                Ok(result) => (Some(result), None),
                Err(_) if code != exit::FINE && said.data.is_empty() => (None, Some(remarks)),
                Err(error) => (None, Some(format!("what it prints is not JSON: {error}"))),
            };
            Seen {
                name: host.name.clone(),
                code: if result.is_none() {
                    code.max(exit::FAILED)
                } else {
                    code
                },
                result,
                error,
            }
        }
    }
}

/// What a command prints.
#[derive(Default)]
struct Said {
    data: Vec<u8>,
    remarks: Vec<u8>,
}

impl Listener for Said {
    fn printed(&mut self, output: Output<'_>) {
        let (kept, bytes) = match output {
            Output::Data(bytes) => (&mut self.data, bytes),
            Output::Remark(bytes) => (&mut self.remarks, bytes),
        };
        // What is cut is not JSON, and said to be none.
        let room = PRINTED_MAX.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }
}

fn document(seen: &[Seen]) -> Value {
    let hosts = seen.iter().map(|found| {
        json!({
            "host": found.name, "exit_code": found.code, "result": found.result, "error": found.error,
        })
    });
    json!({ "format": FORMAT, "hosts": hosts.collect::<Vec<Value>>() })
}

/// What of an element of a command's result is compared: its name, and what of it counts.
fn compared(command: &Command) -> (&'static str, &'static str) {
    match command {
        Command::Facts(_) => ("name", "value"),
        Command::Check(_) => ("name", "verdict"),
        Command::Advise(_) => ("rule", "recommended"),
        _ => ("knob", "now"),
    }
}

/// The elements of a command's result that are compared.
fn elements<'r>(command: &Command, result: &'r Value) -> Vec<&'r Value> {
    let list = |value: &'r Value, name: &str| value[name].as_array().into_iter().flatten();
    match command {
        Command::Facts(_) => list(result, "facts").collect(),
        Command::Check(_) => list(result, "measurements").collect(),
        Command::Advise(_) => list(result, "advice").collect(),
        _ => {
            let journals = result.as_array().into_iter().flatten();
            journals.flat_map(|journal| list(journal, "changes")).collect()
        }
    }
}

/// Values by name.
fn values(command: &Command, result: &Value) -> BTreeMap<String, String> {
    let (name, value) = compared(command);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let elements = elements(command, result).into_iter();
    elements
        .filter_map(|element| Some((element[name].as_str()?.to_owned(), text(&element[value]))))
        .collect()
}

fn print(command: &Command, seen: &[Seen]) {
    let answered: Vec<(&str, BTreeMap<String, String>)> = seen
        .iter()
        .filter_map(|found| Some((&*found.name, values(command, found.result.as_ref()?))))
        .collect();
    let (name, value) = compared(command);
    let mut rows = Vec::new();
    let mut same = 0;
    let names: BTreeSet<&String> = answered.iter().flat_map(|(_, values)| values.keys()).collect();
    for what in names {
        let mut hosts_by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, values) in &answered {
            let value = values.get(what).map_or("-", String::as_str);
            hosts_by_value.entry(value).or_default().push(host);
        }
        if hosts_by_value.len() < 2 {
            same += 1;
            continue;
        }
        for (value, hosts) in hosts_by_value {
            let value: String = value.chars().take(VALUE_MAX).collect();
            rows.push(vec![what.clone(), value, hosts.join(", ")]);
        }
    }
    if !rows.is_empty() {
        put_page!("{}", show::table(&[name, value, "hosts"], &[], rows));
    }
    put!(
        "{} of {} hosts answered; the same on all of them: {same}",
        answered.len(),
        seen.len()
    );
}
