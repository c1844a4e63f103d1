//! What of a server's counters is pgdyno's own: each load, and each making or checking of data, is
//! recorded in the state directory, by the server's system identifier, and excluded from what
//! advice goes by. docs/how-to/advise.md describes it.

use crate::context::{Context, now_unix_ms};
use crate::failure::{InContext as _, Result};
use crate::{show, target};
use pgdyno_host::{Directory, Fact, HostAccess, boot_id, is_alive, make_directory, started_ticks};
use pgdyno_lab::endpoint;
use pgdyno_server::{Conninfo, Server, Tallied, Tally, tally};
use pgdyno_workload::tables_of_data_sets;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

/// A file of a few kilobytes; more is none of ours.
const BYTES_MAX: u64 = 1 << 20;
/// Loads at a time; of more, the oldest are dropped.
const RUNNING_MAX: usize = 100;
/// Digits of a system identifier, which has 64 bits.
const DIGITS_MAX: usize = 20;
/// Rates that follow from a counter.
const RATES: [(&str, &str); 3] = [
    ("wal.bytes", "wal.bytes_per_s"),
    ("checkpoints.timed", "checkpoints.timed_per_hour"),
    ("checkpoints.requested", "checkpoints.requested_per_hour"),
];

/// All that pgdyno did on one server.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Ledger {
    /// Growth over all loads that have ended.
    own: Tallied,
    /// The counters when the last load ended: one that is lower now has lost what was before, by a
    /// crash of the server.
    #[serde(default)]
    seen: Tallied,
    /// Loads that have begun and have not ended, by a number.
    #[serde(default)]
    running: BTreeMap<u64, Running>,
    /// Of counters to which a load has added that was killed: when that was found, and since when
    /// the counter counts.
    #[serde(default)]
    killed: BTreeMap<String, (u64, String)>,
}

/// A load that has begun.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Running {
    process: Process,
    /// Counters of the server before the load.
    before: Tallied,
}

/// What identifies a process on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    pid: u32,
    started_ticks: u64,
    boot_id: String,
}

impl Process {
    /// The identity of this process.
    fn own(host: &dyn HostAccess) -> Process {
        let pid = std::process::id();
        Process {
            pid,
            started_ticks: started_ticks(host, pid).unwrap_or(0),
            boot_id: boot_id(host).unwrap_or_default(),
        }
    }

    fn lives(&self, host: &dyn HostAccess) -> bool {
        boot_id(host).is_ok_and(|boot_id| boot_id == self.boot_id)
            && is_alive(host, self.pid)
            && started_ticks(host, self.pid).is_ok_and(|ticks| ticks == self.started_ticks)
    }
}

impl Ledger {
    fn begin(&mut self, process: Process, before: Tallied) -> u64 {
        let number = self.running.keys().next_back().map_or(1, |last| last + 1);
        self.running.insert(number, Running { process, before });
        while self.running.len() > RUNNING_MAX {
            self.running.pop_first();
        }
        number
    }

    /// Ends the loads of dead processes. What they added is known to this instant at most: what
    /// others add later is not theirs.
    fn end_killed(&mut self, now: &Tallied, now_unix_ms: u64, lives: &dyn Fn(&Process) -> bool) {
        let is_dead = |(number, load): (&u64, &Running)| (!lives(&load.process)).then_some(*number);
        let dead: Vec<u64> = self.running.iter().filter_map(is_dead).collect();
        for number in dead {
            self.end(number, now);
            for (name, (_, since)) in now {
                self.killed.insert(name.clone(), (now_unix_ms, since.clone()));
            }
        }
    }

    fn end(&mut self, number: u64, after: &Tallied) {
        let Some(load) = self.running.remove(&number) else {
            return;
        };
        for (name, (grown, since)) in growth(&load.before, after) {
            let is_lost = is_lower(after, &self.seen, &name);
            let own = self.own.entry(name).or_default();
            // What was before a reset does not count any more.
            if own.1 != since || is_lost {
                *own = (0.0, since);
            }
            own.0 += grown;
        }
        self.seen.clone_from(after);
    }

    /// What of each counter is ours now.
    fn of(&self, now: &Tallied) -> BTreeMap<String, f64> {
        let running = self.running.values().map(|load| growth(&load.before, now));
        let mut all: BTreeMap<String, f64> = BTreeMap::new();
        let mut kept = self.own.clone();
        kept.retain(|name, _| !is_lower(now, &self.seen, name));
        for (name, (own, since)) in [kept].into_iter().chain(running).flatten() {
            let value = now.get(&name).filter(|(_, of)| *of == since);
            if let Some((value, _)) = value {
                let sum = all.entry(name).or_default();
                *sum = (*sum + own).min(*value);
            }
        }
        all
    }
}

/// Whether a counter that was not reset is lower than before.
fn is_lower(now: &Tallied, before: &Tallied, name: &str) -> bool {
    let pair = now.get(name).zip(before.get(name));
    pair.is_some_and(|((value, of), (from, since))| of == since && value < from)
}

/// When a load was found killed that has added to a counter; `None` where there was none since the
/// counter was reset.
fn found_killed(ledger: &Ledger, name: &str, now: &Tallied) -> Option<u64> {
    let (found_unix_ms, since) = ledger.killed.get(name)?;
    let (_, of) = now.get(name)?;
    (since == of).then_some(*found_unix_ms)
}

/// How far counters grew; of one that was reset meanwhile, to what.
fn growth(before: &Tallied, after: &Tallied) -> Tallied {
    let grown = after.iter().map(|(name, (value, since))| {
        let from = before.get(name).filter(|(from, of)| of == since && from <= value);
        let from = from.map_or(0.0, |(from, _)| *from);
        (name.clone(), (value - from, since.clone()))
    });
    grown.collect()
}

/// Does what adds to a server's counters, and records by how much. A server whose counters cannot
/// be read is driven all the same.
pub(crate) fn counted<T>(
    context: &Context,
    conninfo: &Conninfo,
    act: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let look = || {
        let mut server = Server::connect(conninfo).ok()?;
        tally(&mut server).ok().filter(|tally| !tally.system.is_empty())
    };
    let begun = match look() {
        // A load runs even where it cannot be recorded.
        Some(Tally { system, counters }) => match with_ledger(context, &system, |ledger| {
            ledger.end_killed(&counters, now_unix_ms(), &|process| process.lives(&context.host));
            ledger.begin(Process::own(&context.host), counters)
        }) {
            Ok(number) => Some((system, number)),
            Err(error) => {
                err!("advice counts this load as the server's own: {error}");
                None
            }
        },
        None => None,
    };
    let done = act();
    if let Some((system, number)) = begun
        && let Some(after) = look().filter(|after| after.system == system)
        && let Err(error) = with_ledger(context, &system, |ledger| ledger.end(number, &after.counters))
    {
        err!("advice counts this load as the server's own: {error}");
    }
    done
}

/// Takes what pgdyno did out of facts: its loads out of the counters, the data of its workloads out
/// of the lists of tables.
pub(crate) fn take_out(context: &Context, target: &str, facts: &mut [Fact]) -> Result<()> {
    let (conninfo, _) = target::conninfo(context, target)?;
    let tables = tables_of_data_sets(&endpoint(&conninfo));
    take_out_tables(&tables.unwrap_or_default(), facts);
    let now = Tally::of(|name| {
        let fact = facts.iter().find(|fact| fact.name == name);
        fact.and_then(|fact| fact.value.as_ref())
    });
    if now.system.is_empty() || !directory_of(context).join(name_of(&now.system)).exists() {
        return Ok(());
    }
    let (own, killed) = with_ledger(context, &now.system, |ledger| {
        ledger.end_killed(&now.counters, now_unix_ms(), &|process| {
            process.lives(&context.host)
        });
        let killed = |name: &String| Some((name.clone(), found_killed(ledger, name, &now.counters)?));
        let killed: BTreeMap<String, u64> = now.counters.keys().filter_map(killed).collect();
        (ledger.of(&now.counters), killed)
    })?;
    for (name, own) in own.into_iter().filter(|(_, own)| *own > 0.0) {
        let (all, _) = now.counters[&name];
        let left = (all - own) / all;
        let until = killed.get(&name).map_or_else(String::new, |found_unix_ms| {
            let found = show::instant(*found_unix_ms);
            format!("; of a load that was killed, all until {found}, when it was found dead")
        });
        let note = format!("without pgdyno's own load ({name}: {own:.0} of {all:.0}{until})");
        let rates = RATES.iter().filter(|(of, _)| *of == name).map(|(_, rate)| *rate);
        let changed: Vec<&str> = rates.chain([name.as_str()]).collect();
        for fact in facts
            .iter_mut()
            .filter(|fact| changed.contains(&fact.name.as_str()))
        {
            if let Some(value) = fact.value.as_ref().and_then(Value::as_f64) {
                fact.value = Some(pgdyno_advice::number((value * left * 1000.0).round() / 1000.0));
                fact.source = format!("{}, {note}", fact.source);
            }
        }
    }
    Ok(())
}

/// Facts about single tables, each a list with the field `table`.
const OF_TABLES: [&str; 8] = [
    "tables.largest",
    "tables.updated_without_hot",
    "tables.dead_rows",
    "tables.scanned",
    "tables.foreign_keys_without_index",
    "tables.unlogged",
    "indexes.never_used",
    "indexes.duplicate",
];

/// Takes the tables of workloads out of the lists among facts: what they look like is what loads
/// made of them.
fn take_out_tables(tables: &[String], facts: &mut [Fact]) {
    let is_ours = |row: &Value| {
        let name = row["table"].as_str().unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or_default();
        tables.iter().any(|table| table == name)
    };
    for fact in facts
        .iter_mut()
        .filter(|fact| OF_TABLES.contains(&fact.name.as_str()))
    {
        if let Some(rows) = fact.value.as_mut().and_then(Value::as_array_mut) {
            rows.retain(|row| !is_ours(row));
        }
    }
}

/// The name of a server's ledger: what a server says becomes a name of a file.
fn name_of(system: &str) -> String {
    let digits = system.chars().filter(char::is_ascii_digit);
    let name: String = digits.take(DIGITS_MAX).collect();
    format!("{name}.json")
}

fn directory_of(context: &Context) -> PathBuf {
    context.directories.state.join("own-load")
}

/// The ledger, a new one if there is none.
fn opened(directory: &Directory, name: &str) -> io::Result<File> {
    match directory.update(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match directory.create(name, 0o600) {
            // Somebody else was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => directory.update(name),
            made => made,
        },
        there => there,
    }
}

/// Changes a ledger that nobody else has meanwhile. One that cannot be read begins again.
fn with_ledger<T>(context: &Context, system: &str, act: impl FnOnce(&mut Ledger) -> T) -> Result<T> {
    let (directory, name) = (directory_of(context), name_of(system));
    let not_kept = || format!("{} cannot be read or written", directory.join(&name).display());
    let directory_held = make_directory(&directory, 0o700).with_context(not_kept)?;
    let mut file = opened(&directory_held, &name).with_context(not_kept)?;
    file.lock().with_context(not_kept)?;
    let mut text = String::new();
    let read = (&file).take(BYTES_MAX).read_to_string(&mut text);
    read.with_context(not_kept)?;
    let mut ledger: Ledger = serde_json::from_str(&text).unwrap_or_default();
    let done = act(&mut ledger);
    let changed = serde_json::to_string(&ledger)?;
    if changed != text {
        let begin = file.rewind().and_then(|()| file.set_len(0));
        begin
            .and_then(|()| file.write_all(changed.as_bytes()))
            .with_context(not_kept)?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(committed: f64, since: &str) -> Tallied {
        let value = (committed, since.to_owned());
        [("transactions.committed".to_owned(), value)].into()
    }

    #[track_caller]
    fn check(ledger: &Ledger, now: f64, since: &str, expected: Option<f64>) {
        let own = ledger.of(&counters(now, since));
        assert_eq!(own.get("transactions.committed").copied(), expected);
    }

    fn process(pid: u32) -> Process {
        Process {
            pid,
            started_ticks: 1,
            boot_id: "boot".to_owned(),
        }
    }

    #[test]
    fn loads_add_up_until_the_statistics_are_reset() {
        let mut ledger = Ledger::default();
        for (before, after) in [(10.0, 110.0), (150.0, 250.0)] {
            let number = ledger.begin(process(1), counters(before, "a"));
            ledger.end(number, &counters(after, "a"));
        }
        check(&ledger, 300.0, "a", Some(200.0));
        check(&ledger, 5.0, "b", None);
        let number = ledger.begin(process(1), counters(300.0, "a"));
        ledger.end(number, &counters(7.0, "b"));
        check(&ledger, 9.0, "b", Some(7.0));
    }

    #[test]
    fn load_that_was_killed_counts_until_it_is_found_dead_and_one_that_lives_to_the_present() {
        let mut ledger = Ledger::default();
        ledger.begin(process(1), counters(10.0, "a"));
        let live = |pid: u32| move |process: &Process| process.pid == pid;
        ledger.end_killed(&counters(40.0, "a"), 5, &live(1));
        check(&ledger, 70.0, "a", Some(60.0));
        assert_eq!(ledger.killed, BTreeMap::new());
        ledger.end_killed(&counters(70.0, "a"), 6, &live(2));
        check(&ledger, 1000.0, "a", Some(60.0));
        let name = "transactions.committed";
        assert_eq!(found_killed(&ledger, name, &counters(1000.0, "a")), Some(6));
        assert_eq!(
            found_killed(&ledger, name, &counters(1000.0, "b")),
            None,
            "reset since"
        );
        let text = serde_json::to_string(&ledger).expect("JSON");
        assert_eq!(serde_json::from_str::<Ledger>(&text).expect("a ledger"), ledger);
    }

    #[test]
    fn what_a_crash_of_the_server_took_is_not_ours_any_more() {
        let mut ledger = Ledger::default();
        let number = ledger.begin(process(1), counters(0.0, ""));
        ledger.end(number, &counters(500.0, ""));
        check(&ledger, 600.0, "", Some(500.0));
        check(&ledger, 20.0, "", None);
        let number = ledger.begin(process(1), counters(20.0, ""));
        ledger.end(number, &counters(50.0, ""));
        check(&ledger, 700.0, "", Some(30.0));
    }
}
