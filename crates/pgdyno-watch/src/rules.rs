//! Known conditions: a table of rules, each with a text that it holds, what to do, and where it is
//! known from.

use super::format::{bytes, percent, span};
use super::model::Model;
use super::names;
use std::time::Duration;

/// A condition that somebody has met before.
struct Rule {
    /// A text with the figures where it holds; `None` where it does not.
    holds: fn(&Model) -> Option<String>,
    /// What to do about it, in a sentence.
    advice: Advice,
    /// Where it is known from: docs/how-to/watch.md has the list.
    source: &'static str,
}

/// The advice for a condition.
enum Advice {
    Own(&'static str),
    /// That of the rule of `pgdyno advise` for the same condition: nobody gets two different
    /// answers.
    OfRule(&'static str),
}

impl Advice {
    fn text(&self) -> &'static str {
        match self {
            Advice::Own(text) => text,
            Advice::OfRule(rule) => pgdyno_advice::recommended_by(rule).unwrap_or_default(),
        }
    }
}

/// A condition that holds now, with its advice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    pub(crate) advice: &'static str,
    pub(crate) source: &'static str,
}

const RULES: [Rule; 9] = [
    Rule {
        holds: xid_age,
        advice: Advice::OfRule("xid-old"),
        source: "senzing",
    },
    Rule {
        holds: wal_volume,
        advice: Advice::Own(
            "find what keeps the WAL (slots, archiving, a checkpoint that lags) before the volume is full and the server stops",
        ),
        source: "senzing",
    },
    Rule {
        holds: page_tables,
        advice: Advice::Own("huge pages for shared_buffers, or fewer connections"),
        source: "percona-hugepages",
    },
    Rule {
        holds: swap_growing,
        advice: Advice::Own(
            "use less memory (connections, work_mem, shared_buffers) before the machine stalls",
        ),
        source: "percona-hugepages",
    },
    Rule {
        holds: buffer_mapping,
        advice: Advice::Own("fewer connections (a pooler): more of them only wait for one another"),
        source: "senzing",
    },
    Rule {
        holds: idle_in_transaction,
        advice: Advice::OfRule("idle-in-transaction"),
        source: "senzing",
    },
    Rule {
        holds: slot,
        advice: Advice::Own("bring the consumer back, drop the slot, or set max_slot_wal_keep_size"),
        source: "postgresql",
    },
    Rule {
        holds: checkpoints,
        advice: Advice::Own("a larger max_wal_size, so that checkpoints come by time"),
        source: "ibm-z",
    },
    Rule {
        holds: dirty_bursts,
        advice: Advice::Own("vm.dirty_background_bytes of 64 MB and vm.dirty_bytes of 512 MB write steadily"),
        source: "ibm-z",
    },
];

/// All that holds, the most dangerous first.
pub(crate) fn warnings(model: &Model) -> Vec<Warning> {
    let warning = |rule: &Rule| {
        Some(Warning {
            text: (rule.holds)(model)?,
            advice: rule.advice.text(),
            source: rule.source,
        })
    };
    RULES.iter().filter_map(warning).collect()
}

/// Where [senzing] pauses the load; it leaves time to vacuum.
pub(crate) const XID_AGE_PAUSE: u64 = 1_200_000_000;

fn xid_age(model: &Model) -> Option<String> {
    let oldest = model.ages.as_ref().ok()?.iter().max_by_key(|row| row.xid_age)?;
    (oldest.xid_age > XID_AGE_PAUSE).then(|| {
        let millions = oldest.xid_age / 1_000_000;
        format!(
            "the transaction ids of {} are {millions} million old",
            oldest.database
        )
    })
}

/// A tenth is left: at a few hundred MB/s of WAL that is minutes on usual volumes.
const WAL_VOLUME_FREE_MIN: f64 = 0.10;

fn wal_volume(model: &Model) -> Option<String> {
    let all = model.value(names::WAL_VOLUME, "")?;
    let free = model.value(names::WAL_VOLUME_FREE, "")?;
    if all <= 0.0 || free / all >= WAL_VOLUME_FREE_MIN {
        return None;
    }
    let rate = model.value(names::WAL_BYTES, "").filter(|rate| *rate > 0.0);
    let lasts = rate.map_or_else(String::new, |rate| {
        format!(", {} at the present rate if none is removed", span(free / rate))
    });
    Some(format!(
        "the volume of the WAL has {} of {} left{lasts}",
        bytes(free),
        bytes(all)
    ))
}

/// Page tables are overhead: beyond a tenth of the memory they are the larger problem. So they are
/// beyond half of what they map, where that is much, compared with the memory.
const PAGE_TABLES_OF_MEMORY: f64 = 0.10;
const PAGE_TABLES_WORTH_MENTIONING: f64 = 0.02;
const PAGE_TABLES_OF_BUFFERS: f64 = 0.5;

fn page_tables(model: &Model) -> Option<String> {
    let tables = model.value(names::PAGE_TABLES, "")?;
    let total = model.value(names::MEMORY_TOTAL, "")?;
    let of_memory = (tables > total * PAGE_TABLES_OF_MEMORY)
        .then(|| format!("{} of the memory", percent(tables / total)));
    let of_buffers = model
        .about
        .shared_buffers_bytes
        .filter(|buffers| tables > buffers * PAGE_TABLES_OF_BUFFERS)
        .filter(|_| tables > total * PAGE_TABLES_WORTH_MENTIONING)
        .map(|buffers| format!("{} of shared_buffers", percent(tables / buffers)));
    let share = of_memory.or(of_buffers)?;
    Some(format!("page tables take {}, {share}", bytes(tables)))
}

fn within(minute: Duration) -> String {
    match minute.as_secs() {
        60 => "within a minute".into(),
        _ => format!("within {}", span(minute.as_secs_f64())),
    }
}

/// Less than this comes and goes without a shortage.
const SWAP_GROWTH_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

fn swap_growing(model: &Model) -> Option<String> {
    let used = model.value(names::SWAP_USED, "")?;
    let minute = model.minute();
    let before = model.ring(names::SWAP_USED, "")?.within(minute).next()?.value;
    (used - before > SWAP_GROWTH_BYTES).then(|| {
        let growth = bytes(used - before);
        let within = within(minute);
        format!("swap in use grew by {growth} {within} to {}", bytes(used))
    })
}

/// Share of all sampled sessions from which a wait dominates: beside it, the others do not explain
/// the throughput.
const DOMINATES: f64 = 0.25;
/// Seconds over which waits are averaged.
const WAIT_SECONDS: usize = 30;
/// Partitions of the buffer mapping (NUM_BUFFER_PARTITIONS in lwlock.h): where the CPUs are not
/// known, more sessions than these must meet.
const BUFFER_PARTITIONS: u32 = 128;

fn buffer_mapping(model: &Model) -> Option<String> {
    let means = model.waits.means(WAIT_SECONDS);
    let all: f64 = means.iter().map(|(_, mean)| mean).sum();
    let ((_, first), mean) = means.iter().find(|((kind, _), _)| kind != "CPU")?;
    let too_many = f64::from(model.about.cpus.unwrap_or(BUFFER_PARTITIONS));
    // Up to version 12 the event had other letters.
    let is_it = first.eq_ignore_ascii_case("BufferMapping") || first.eq_ignore_ascii_case("buffer_mapping");
    (is_it && *mean > all * DOMINATES && all > too_many).then(|| {
        format!(
            "{} of {all:.0} busy sessions wait for LWLock:BufferMapping",
            percent(mean / all)
        )
    })
}

/// Half of the 600 s after which [senzing] has such sessions ended.
const IDLE_IN_TRANSACTION_S: f64 = 300.0;

fn idle_in_transaction(model: &Model) -> Option<String> {
    let sessions = model.sessions.as_ref().ok()?;
    let age = |state: &str, xact: Option<f64>| xact.filter(|_| state.starts_with("idle in transaction"));
    let (pid, age) = sessions
        .iter()
        .filter_map(|row| Some((row.pid, age(row.state.as_deref()?, row.xact_age_s)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (age > IDLE_IN_TRANSACTION_S).then(|| {
        let age = span(age);
        format!("session {pid} has been idle in a transaction of {age}, and vacuum cannot pass it")
    })
}

/// max_wal_size where nobody has set it.
const MAX_WAL_SIZE_DEFAULT: f64 = 1024.0 * 1024.0 * 1024.0;

fn slot(model: &Model) -> Option<String> {
    let slots = model.values(names::SLOT_RETAINED);
    let (slot, retained) = slots.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let usual = model.about.max_wal_size_bytes.unwrap_or(MAX_WAL_SIZE_DEFAULT);
    (retained > usual).then(|| {
        format!(
            "the replication slot {slot} keeps {} of WAL, more than max_wal_size ({})",
            bytes(retained),
            bytes(usual)
        )
    })
}

/// So many make a habit, not a backup's or a DBA's single CHECKPOINT.
const REQUESTED_MIN: f64 = 2.5;
const REQUESTED_PER_TIMED: f64 = 2.0;
/// The WAL between two checkpoints that it brings, as a part of max_wal_size: 1 / (1 +
/// checkpoint_completion_target), which is 1 at most (PostgreSQL docs, WAL Configuration).
const WAL_OF_A_CHECKPOINT: f64 = 0.5;

fn checkpoints(model: &Model) -> Option<String> {
    let amount = |metric| Some(model.ring(metric, "")?.amount());
    let requested = amount(names::CHECKPOINTS_REQUESTED)?;
    let timed = amount(names::CHECKPOINTS_TIMED).unwrap_or(0.0);
    // The server counts those that somebody asked for, pgdyno among them, with those that the WAL
    // brings.
    let full = model.about.max_wal_size_bytes.unwrap_or(MAX_WAL_SIZE_DEFAULT) * WAL_OF_A_CHECKPOINT;
    let by_wal = requested.min(1.0 + amount(names::WAL_BYTES)? / full);
    (by_wal > REQUESTED_MIN && by_wal > timed * REQUESTED_PER_TIMED).then(|| {
        format!("about {by_wal:.0} checkpoints came because of the amount of WAL and {timed:.0} by time in the last minutes")
    })
}

/// vm.dirty_bytes of [ibm-z]: beyond it, writers were stopped there.
const DIRTY_BURST_BYTES: f64 = 512.0 * 1024.0 * 1024.0;
/// On a small machine, where a tenth of the memory is less than that.
const DIRTY_BURST_OF_MEMORY: f64 = 0.10;

fn dirty_bursts(model: &Model) -> Option<String> {
    let minute = model.minute();
    let (low, high) = model.ring(names::DIRTY, "")?.extremes(minute)?;
    let of_memory = model
        .value(names::MEMORY_TOTAL, "")
        .map_or(f64::INFINITY, |total| total * DIRTY_BURST_OF_MEMORY);
    (high - low > DIRTY_BURST_BYTES.min(of_memory)).then(|| {
        format!(
            "dirty pages went between {} and {} {}: written in bursts",
            bytes(low),
            bytes(high),
            within(minute)
        )
    })
}

#[cfg(test)]
mod tests;
