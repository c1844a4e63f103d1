//! A command on all hosts of an inventory: at the same time, with what differs between them.

use crate::cli::{Command, HostArgs, HostsArgs};
use crate::commands::experiment::options_of;
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Result, with_hint};
use crate::on_host::on_host;
use crate::remote::{arguments, request, without_options};
use crate::show;
use crate::ssh_way::{hand_on_stop, hosts_of, program_and_host, run_on, way_of_several};
use pgdyno_knobs::{Catalogue, split};
use pgdyno_remote::{InventoryHost, Listener, Output, SENT_WITHIN};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Hosts that are asked at the same time, those that take long not counted.
const AT_ONCE: usize = 16;
/// A host that has not answered by then may be stuck: another one is asked beside it.
const LONG: Duration = Duration::from_secs(5);
/// How often it is looked whether one takes long.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What is kept of what a command prints.
const PRINTED_MAX: usize = 64 << 20;
/// Characters of a value in the table.
const VALUE_MAX: usize = 60;
/// In place of a value that a host does not have.
const ABSENT: &str = "-";
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
    let stop = stop_flag()?;
    let seen: Mutex<Vec<Seen>> = Mutex::default();
    let mut begun = 0;
    thread::scope(|scope| {
        let (end, ended) = channel();
        let mut asked: BTreeMap<usize, Instant> = BTreeMap::new();
        for (number, host) in hosts.iter().enumerate() {
            while !stop.load(Ordering::Relaxed) && !has_room(asked.values().map(Instant::elapsed)) {
                if let Ok(number) = ended.recv_timeout(LOOK_EVERY) {
                    asked.remove(&number);
                }
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            begun = number + 1;
            asked.insert(number, Instant::now());
            let (end, seen, stop, arguments) = (end.clone(), &seen, &stop, &arguments);
            scope.spawn(move || {
                let found = ask(context, host, (&arguments[..], args.host_timeout), stop);
                // At once: others may take long.
                if let Some(error) = found.error.as_ref().filter(|_| !as_json) {
                    err!("{}: {error}", found.name);
                }
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                let _ = end.send(number);
            });
        }
    });
    let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    seen.extend(
        hosts[begun..]
            .iter()
            .map(|host| failed(host, "not asked: stopped".to_owned())),
    );
    // As the inventory has them.
    seen.sort_by_key(|found| hosts.iter().position(|host| host.name == found.name));
    match as_json {
        true => put_page!("{:#}", document(&seen)),
        false => print(&context.catalogue, command, &seen),
    }
    Ok(seen.iter().map(|found| found.code).max().unwrap_or(exit::FINE))
}

/// Whether one more may be asked beside those that were asked so long ago.
fn has_room(asked: impl Iterator<Item = Duration>) -> bool {
    asked.filter(|ago| *ago < LONG).count() < AT_ONCE
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
    (arguments, limit): (&[String], Duration),
    stop: &AtomicBool,
) -> Seen {
    let failed = |why: String| failed(host, why);
    let (program, ssh) = match program_and_host(host) {
        Ok(way) => way,
        Err(error) => return failed(error.to_string()),
    };
    // Commands that it prints name it.
    let on = HostArgs {
        host: host.ssh.clone(),
        sudo: host.sudo && host.ssh.is_some(),
    };
    let request = request(
        arguments.iter().cloned().chain(on.arguments()).collect(),
        Vec::new(),
    );
    let sends_program = AtomicBool::new(false);
    let mut said = Said {
        data: Vec::new(),
        remarks: Vec::new(),
        sends_program: &sends_program,
    };
    let begun = Instant::now();
    let within = || match sends_program.load(Ordering::Relaxed) {
        true => limit.saturating_add(SENT_WITHIN),
        false => limit,
    };
    let is_late = || begun.elapsed() > within();
    let is_over = AtomicBool::new(false);
    let own_stop = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            let is_asked = || stop.load(Ordering::Relaxed) || is_late();
            hand_on_stop(&is_asked, std::iter::once(&own_stop), &is_over);
        });
        let way = way_of_several(&program, &ssh, host.sudo);
        let ended = run_on(context, way, &request, &mut said, &own_stop);
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    match ended {
        Err(_) if is_late() => failed(format!("it has not ended within {:?}", within())),
        Err(error) => failed(on_host(&with_hint(error), &options_of(&on)).into_owned()),
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
struct Said<'a> {
    data: Vec<u8>,
    remarks: Vec<u8>,
    /// Whether the agent's program is sent first.
    sends_program: &'a AtomicBool,
}

impl Listener for Said<'_> {
    fn sends_program(&mut self) {
        self.sends_program.store(true, Ordering::Relaxed);
    }

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

/// Values by name.
type Values = BTreeMap<String, BTreeSet<String>>;

/// What of a command's result is compared: names, each with its values. What one rule advises for
/// several devices, and what one knob is of several servers, has a name each.
fn values(catalogue: &Catalogue, command: &Command, result: &Value) -> Values {
    fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
        value[name].as_array().into_iter().flatten()
    }
    let (name, value) = compared(command);
    let mut values = Values::new();
    let mut add = |element: &Value, of: Option<&str>| {
        let Some(name) = element[name].as_str() else {
            return;
        };
        let value = match &element[value] {
            Value::String(text) => text.clone(),
            Value::Null => ABSENT.to_owned(),
            other => other.to_string(),
        };
        let name = of.map_or_else(|| name.to_owned(), |of| format!("{name} ({of})"));
        values.entry(name).or_default().insert(value);
    };
    match command {
        Command::Facts(_) => list(result, "facts").for_each(|fact| add(fact, None)),
        Command::Check(_) => list(result, "measurements").for_each(|measured| add(measured, None)),
        Command::Advise(_) => list(result, "advice").for_each(|advice| {
            let knob = advice["setting"]["knob"].as_str();
            add(advice, knob.and_then(|knob| split(knob).1));
        }),
        _ => {
            for journal in result.as_array().into_iter().flatten() {
                let server = journal["server"].as_str();
                for change in list(journal, "changes") {
                    let knob = change["knob"].as_str().and_then(|knob| catalogue.find(knob));
                    let is_of_host = knob.is_some_and(|knob| knob.kind.is_of_host());
                    let place = change["place"].as_str();
                    add(change, if is_of_host { place } else { server.or(place) });
                }
            }
        }
    }
    values
}

/// What differs between hosts, by name and value; and how much is the same on all.
fn differences(answered: &[(&str, Values)]) -> (Vec<Vec<String>>, usize) {
    let mut rows = Vec::new();
    let mut same = 0;
    let names: BTreeSet<&String> = answered.iter().flat_map(|(_, values)| values.keys()).collect();
    for what in names {
        let mut hosts_by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (host, values) in answered {
            let all = |values: &BTreeSet<String>| Vec::from_iter(values.iter().cloned()).join(", ");
            let value = values.get(what).map_or_else(|| ABSENT.to_owned(), all);
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
    (rows, same)
}

fn print(catalogue: &Catalogue, command: &Command, seen: &[Seen]) {
    let answered: Vec<(&str, Values)> = seen
        .iter()
        .filter_map(|found| Some((&*found.name, values(catalogue, command, found.result.as_ref()?))))
        .collect();
    let (name, value) = compared(command);
    let (rows, same) = differences(&answered);
    if !rows.is_empty() {
        put_page!("{}", show::table(&[name, value, "hosts"], &[], rows));
    }
    put!(
        "{} of {} hosts answered; the same on all of them: {same}",
        answered.len(),
        seen.len()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    /// What differs between two hosts with these results of a command.
    fn differing(command: &str, results: [Value; 2]) -> (Vec<String>, usize) {
        let catalogue = Catalogue::shipped().unwrap();
        let command = Cli::try_parse_from(["pgdyno", command]).unwrap().command;
        let answered = ["one", "two"].into_iter().zip(&results);
        let answered: Vec<_> = answered
            .map(|(host, result)| (host, values(&catalogue, &command, result)))
            .collect();
        let (rows, same) = differences(&answered);
        (rows.into_iter().map(|row| row.join(" | ")).collect(), same)
    }

    #[test]
    fn changes_of_several_servers_are_compared_each_with_its_own() {
        let host = |a: &str, b: &str| {
            let journal = |server: &str, now: &str| {
                json!({ "server": server, "changes": [
                    { "knob": "work_mem", "place": "ALTER SYSTEM work_mem", "now": now },
                    { "knob": "vm.swappiness", "place": "/proc/sys/vm/swappiness", "now": "1" },
                ] })
            };
            json!([journal("sandbox a", a), journal("sandbox b", b)])
        };
        let (rows, same) = differing("status", [host("7MB", "9MB"), host("8MB", "9MB")]);
        let expected = [
            "work_mem (sandbox a) | 7MB | one",
            "work_mem (sandbox a) | 8MB | two",
        ];
        assert_eq!((&rows[..], same), (&expected.map(str::to_owned)[..], 2));
    }

    #[test]
    fn advice_of_a_rule_for_several_devices_is_compared_device_by_device() {
        let host = |of_sda: &str, more: &str| {
            let advice = |knob: &str, recommended: &str| json!({ "rule": "r", "recommended": recommended, "setting": { "knob": knob } });
            let other = json!({ "rule": "s", "recommended": "look", "setting": null });
            let more = json!({ "rule": "s", "recommended": more, "setting": null });
            json!({ "advice": [
                advice("block.read_ahead_kb@sda", of_sda), advice("block.read_ahead_kb@sdb", "128"), other, more,
            ] })
        };
        let (rows, same) = differing("advise", [host("64", "look"), host("128", "listen")]);
        let expected = [
            "r (sda) | 128 | two",
            "r (sda) | 64 | one",
            "s | listen, look | two",
            "s | look | one",
        ];
        assert_eq!((&rows[..], same), (&expected.map(str::to_owned)[..], 1));
    }

    #[test]
    fn hosts_that_take_long_keep_no_other_from_being_asked() {
        let many = |ago: Duration| std::iter::repeat_n(ago, AT_ONCE);
        assert!(has_room(many(Duration::ZERO).skip(1)));
        assert!(!has_room(many(Duration::ZERO)));
        assert!(has_room(many(LONG).chain(many(Duration::ZERO).skip(1))));
    }
}
