//! What a treatment asks for that a target, or this machine, does not have.

use crate::file::{Place, PoolerWord, Prewarm, Reset};
use crate::foreign::{ProgramData, is_in_minutes};
use crate::plan::{Treatment, measure_s, plan_of_load};
use crate::pooled::OWN_THROUGH_POOLER;
use pgdyno_host::{LocalHost, online_cpus};
use pgdyno_knobs::{Catalogue, Gives, Setting};
use pgdyno_sandbox::{PoolMode, PoolerKind};
use pgdyno_server::SessionLimits;

/// What may be done to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Everything: it is pgdyno's own.
    OfSandbox,
    /// A server of others, which may be restarted.
    Restart,
    /// A server of others, which runs on.
    NoRestart,
}

/// What a treatment asks for that sandboxes alone have.
pub(super) fn for_sandboxes(treatment: &Treatment, kills: bool) -> Vec<String> {
    let (data, load) = (&treatment.data, &treatment.load);
    let wants = [
        (
            !treatment.variant().is_target(),
            "server.version, a storage location or server.network",
        ),
        (treatment.servers() > 1, "server.count above 1"),
        (data.reset == Some(Reset::Recreate), "data.reset = \"recreate\""),
        (data.reset == Some(Reset::Copy), "data.reset = \"copy\""),
        (load.crash == Some(true) || kills, "a crash"),
        (treatment.has_pooler(), "a pooler"),
    ];
    let wanted = wants.iter().filter(|(wanted, _)| *wanted);
    wanted
        .map(|(_, what)| format!("{what} is available on sandboxes only"))
        .collect()
}

/// What else a treatment asks for that this target or this host does not have, or that does nothing
/// there.
pub(super) fn unmet(treatment: &Treatment, allowed: Allowed) -> Vec<String> {
    let (data, load) = (&treatment.data, &treatment.load);
    let mut reasons = Vec::new();
    if data.prewarm == Some(Prewarm::Cold) && allowed == Allowed::NoRestart {
        reasons.push("prewarm = \"cold\" restarts the server and needs --allow-restart".to_owned());
    }
    reasons.extend(too_small(treatment));
    reasons.extend(needs_one_server(treatment));
    let times = [measure_s(load), load.warmup_s.unwrap_or(0.0)];
    if is_in_minutes(load) && times.iter().any(|s| s % 60.0 != 0.0) {
        let program = load.program.as_deref().unwrap_or_default();
        reasons.push(format!(
            "{program} runs for whole minutes: expected measure_s and warmup_s in multiples of 60"
        ));
    }
    reasons.extend(unused_of_program(treatment, allowed == Allowed::OfSandbox));
    if let Ok(Some(plan)) = plan_of_load(load) {
        reasons.extend(plan.check().err());
    }
    reasons.extend(too_few_pooled(treatment));
    if treatment.variant().temp_on.is_some() && data.reset == Some(Reset::Copy) {
        reasons.push("reset = \"copy\" does not work with temp_on".to_owned());
    }
    if let Some(cpus) = &load.cpus {
        let online = online_cpus(&LocalHost::new());
        let beyond = cpus
            .iter()
            .filter(|cpu| online.as_ref().is_some_and(|online| !online.contains(*cpu)));
        reasons.extend(beyond.map(|cpu| format!("this host has no CPU {cpu}")));
    }
    reasons
}

/// In session mode each client keeps a session of the pooler's, and so do who asks and who records.
fn too_few_pooled(treatment: &Treatment) -> Option<String> {
    let server = &treatment.server;
    let is_bouncer = server.pooler.and_then(PoolerWord::kind) == Some(PoolerKind::PgBouncer);
    let is_kept = server
        .pool_mode
        .is_none_or(|mode| PoolMode::from(mode) == PoolMode::Session);
    let least = treatment.load.clients.unwrap_or(1) + OWN_THROUGH_POOLER;
    // A session that is left after each transaction is the next client's.
    let leaves = treatment.load.connect == Some(true);
    let size = server
        .pool_size
        .filter(|size| is_bouncer && is_kept && !leaves && *size < least)?;
    Some(format!(
        "pool_size = {size}: in session mode each client keeps a session, and pgdyno keeps {OWN_THROUGH_POOLER}: expected {least} or more"
    ))
}

/// Keys of the data that do nothing for a load that reads no data set of pgdyno's.
fn unused_of_program(treatment: &Treatment, is_sandbox: bool) -> Vec<String> {
    let data = &treatment.data;
    if treatment.load.program.is_none() || data.of_load(&treatment.load).is_some() {
        return Vec::new();
    }
    let makes = is_sandbox && ProgramData::of(treatment).is_some();
    let resets = data.reset.is_some_and(|reset| reset != Reset::None);
    let keys = [
        ("data.fillfactor", data.fillfactor.is_some()),
        ("data.partitions", data.partitions.is_some()),
        ("data.sql", data.sql.is_some()),
        ("data.reset", resets && !makes),
        ("data.reset = \"copy\"", makes && data.reset == Some(Reset::Copy)),
    ];
    let unused = keys.into_iter().filter(|(_, is_named)| *is_named);
    unused
        .map(|(key, _)| format!("{key} applies to pgdyno's data sets only; this program uses its own data"))
        .collect()
}

/// What a treatment asks for that goes with standbys alone, or with none.
pub(super) fn of_standbys(treatment: &Treatment, standbys: u64) -> Vec<&'static str> {
    let copies = treatment.data.reset == Some(Reset::Copy);
    let wants = [
        (
            copies && standbys > 0,
            "reset = \"copy\" needs a server without standbys: they cannot follow it to an older state",
        ),
        (
            treatment.variant().temp_on.is_some() && standbys > 0,
            "temp_on needs a server without standbys",
        ),
        (
            treatment.is_on_standbys() && standbys == 0,
            "the load is on standbys, and the server has none; `pgdyno sandbox create --standbys 1` makes one that has",
        ),
        (
            treatment.is_on_standbys() && treatment.data.prewarm == Some(Prewarm::Cold),
            "prewarm = \"cold\" restarts the primary, and the load is on its standbys",
        ),
        (
            treatment.is_on_standbys() && !treatment.settings.is_empty(),
            "settings apply to the primary, and the load is on its standbys, which keep their own",
        ),
    ];
    let unmet = wants.into_iter().filter(|(wanted, _)| *wanted);
    unmet.map(|(_, what)| what).collect()
}

/// What a treatment asks for that is of one server, though its load goes to several at once, or to
/// standbys.
fn needs_one_server(treatment: &Treatment) -> Vec<String> {
    let load = &treatment.load;
    let wants = [
        (load.program.is_some(), "the load of another program"),
        (load.checkpoint_cycles.is_some(), "a load of checkpoint cycles"),
        (load.crash == Some(true), "a crash"),
        (treatment.has_pooler(), "a pooler"),
    ];
    let load_is = match (treatment.servers(), treatment.is_on_standbys()) {
        (1, false) => return Vec::new(),
        (1, true) => "its load is on standbys".to_owned(),
        (servers, false) => format!("this has {servers} at once"),
        (_, true) => return vec!["its load is on standbys, and it has several servers at once".to_owned()],
    };
    let unmet = wants.iter().filter(|(wanted, _)| *wanted);
    unmet
        .map(|(_, what)| format!("{what} needs a single server, and {load_is}"))
        .collect()
}

/// Why the file system that is made for a treatment's data does not hold it, if so.
fn too_small(treatment: &Treatment) -> Option<String> {
    let place = treatment.server.data_on.as_deref()?;
    let Ok(Place::Made(plan)) = Place::named(place) else {
        return None;
    };
    let once = treatment.data_bytes()?;
    let needed = match treatment.data.reset {
        Some(Reset::Template) => once * 2,
        _ => once,
    };
    (needed > plan.size_bytes).then(|| {
        format!(
            "the data needs about {} MB, more than {place} holds",
            needed >> 20
        )
    })
}

/// Sessions that pgdyno itself has: one that asks, one that records, and one in reserve.
pub(super) const OWN_SESSIONS: u32 = 3;

/// Why a treatment has more clients than its server has room for, if so, and for how many it has.
pub(super) fn too_many_clients(
    treatment: &Treatment,
    limits: &SessionLimits,
    catalogue: &Catalogue,
) -> Option<(String, u32)> {
    let clients = treatment.load.clients?;
    if treatment.has_pooler() {
        return None;
    }
    let gives_sessions = |setting: &&Setting| {
        let knob = catalogue.find(&setting.knob);
        knob.is_some_and(|knob| knob.gives == Some(Gives::Sessions))
    };
    let set = treatment.settings.iter().find(gives_sessions);
    let most = set
        .and_then(|setting| setting.value.parse().ok())
        .unwrap_or(limits.most);
    let room = most.saturating_sub(limits.kept + limits.held + OWN_SESSIONS);
    let message = || {
        format!(
            "{clients} clients do not fit: max_connections = {most} leaves {room}, after {} reserved sessions \
             (superuser_reserved_connections, reserved_connections) and {} that others use now",
            limits.kept, limits.held
        )
    };
    (clients > room).then(|| (message(), room))
}
