//! What a tune varies on its target, and where it begins.

use super::file::Start;
use crate::cli::{LoadKind, TuneArgs};
use crate::commands::profile;
use crate::context::Context;
use crate::failure::{Failure, Result, Usage};
use crate::target;
use pgdyno_advice::{Matters, Priors, SearchSpace, SpaceFor, SpaceKnob, session_sorts};
use pgdyno_knobs::Setting;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_workload::Workload;
use std::collections::BTreeMap;
use std::path::Path;

/// The kind of a workload; a script and another program may be anything.
pub(super) fn kind_of(args: &TuneArgs) -> LoadKind {
    if args.of_load.script.is_some() || args.program.is_some() {
        return LoadKind::Mixed;
    }
    match args.of_load.workload {
        Workload::Empty
        | Workload::Simple
        | Workload::Read
        | Workload::SelectOnly
        | Workload::PointSelect
        | Workload::RangeSelect
        | Workload::ReadOnly => LoadKind::Reads,
        _ => LoadKind::Writes,
    }
}

fn shares(kind: LoadKind) -> Matters {
    let (reads, writes, analytics) = match kind {
        LoadKind::Reads => (1.0, 0.0, 0.0),
        LoadKind::Writes => (0.3, 1.0, 0.0),
        LoadKind::Analytics => (0.3, 0.0, 1.0),
        LoadKind::Mixed => (0.7, 0.7, 0.7),
    };
    Matters {
        reads,
        writes,
        analytics,
    }
}

/// Names of the starting points that are shipped profiles: the one for the kind of load, and
/// pgtune's.
pub(super) const SHIPPED: [&str; 2] = ["advice", "pgtune"];

/// A profile's name among starting points, with what it sets here.
type ProfileStart = (String, Vec<Setting>);

/// What the profile for such a load, pgtune and the user's own profiles set here.
pub(super) fn profiles_of(
    context: &Context,
    looked: &profile::Looked,
    kind: LoadKind,
    own: &[String],
) -> Result<Vec<ProfileStart>> {
    let shipped = match kind {
        LoadKind::Reads | LoadKind::Writes => ["oltp", "pgtune-oltp"],
        LoadKind::Analytics => ["analytics", "pgtune-dw"],
        LoadKind::Mixed => ["mixed", "pgtune-mixed"],
    };
    let own = (1..).zip(own).map(|(number, of)| {
        let stem = Path::new(of).file_stem().unwrap_or_default().to_string_lossy();
        (format!("start {number}, {stem}"), of.as_str())
    });
    let names = SHIPPED.into_iter().zip(shipped);
    let names = names.map(|(name, of)| (name.to_owned(), of));
    let resolved = names.chain(own).map(|(name, of)| {
        let resolved = profile::resolve(context, looked, of)?;
        let settings = resolved
            .to_apply()
            .into_iter()
            .map(|Setting { knob, value }| Setting {
                value: context.catalogue.with_unit(&knob, &value),
                knob,
            });
        Ok((name, settings.collect()))
    });
    resolved.collect()
}

/// What the search varies.
pub(super) fn space(
    context: &Context,
    args: &TuneArgs,
    (priors, looked): (&Priors, &profile::Looked),
    kind: LoadKind,
    profiles: &[ProfileStart],
) -> Result<SearchSpace> {
    let known = priors.knobs();
    for knob in args.only.iter().chain(&args.without) {
        if !known.contains(&knob.as_str()) {
            return Err(Usage(format!(
                "a search does not vary {knob}; it varies {}",
                known.join(", ")
            ))
            .into());
        }
    }
    let starts: Vec<Vec<Setting>> = profiles.iter().map(|(_, settings)| settings.clone()).collect();
    let of = SpaceFor {
        known: &looked.known,
        catalogue: &context.catalogue,
        major: looked.known.major(),
        current: &|knob| looked.current(context, knob),
        load: shares(kind),
        trial_s: Some((args.warmup + args.duration).as_secs_f64()),
        starts: &starts,
    };
    let mut space = priors.space(&of);
    let is_wanted =
        |knob: &String| (args.only.is_empty() || args.only.contains(knob)) && !args.without.contains(knob);
    let is_fixed = |knob: &String| args.fix.iter().any(|(fixed, _)| fixed == knob);
    space
        .knobs
        .retain(|own| is_wanted(&own.knob) && !is_fixed(&own.knob));
    for (knob, values) in &args.space {
        let wrong = |why: &str| Usage(format!("--space {knob}={values}: {why}"));
        if is_fixed(knob) || args.without.contains(knob) {
            return Err(wrong("--fix or --without names it too").into());
        }
        if args.space.iter().filter(|(other, _)| other == knob).count() > 1 {
            return Err(wrong("it is named twice").into());
        }
        let own = values
            .split(',')
            .map(|value| context.catalogue.with_unit(knob, value.trim()));
        let own: Vec<String> = own.collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let own = priors
            .knob_with_values(&of, knob, &own)
            .map_err(|why| wrong(&why))?;
        for (value, _) in &own.values[1..] {
            let setting = Setting {
                knob: knob.clone(),
                value: value.clone(),
            };
            if let Some(why) = looked.objection(context, &setting, args.scope(), args.consent.allow_restart) {
                return Err(wrong(&why).into());
            }
        }
        space.skipped.retain(|(skipped, _)| skipped != knob);
        match space.knobs.iter_mut().find(|other| other.knob == *knob) {
            Some(other) => *other = own,
            None => space.knobs.push(own),
        }
    }
    // What could not be set would keep every trial with it from beginning.
    let objection = |knob: &str, value: &str| {
        let setting = Setting {
            knob: knob.to_owned(),
            value: value.to_owned(),
        };
        looked.objection(context, &setting, args.scope(), args.consent.allow_restart)
    };
    for mut own in std::mem::take(&mut space.knobs) {
        let others = own.values.split_off(1);
        let mut why = None;
        for (value, weight) in others {
            match objection(&own.knob, &value) {
                None => own.values.push((value, weight)),
                Some(objection) => why = Some(objection),
            }
        }
        match why.filter(|_| own.values.len() < 2) {
            Some(why) => space.skipped.push((own.knob, why)),
            None => space.knobs.push(own),
        }
    }
    if !args.only.is_empty() {
        space.skipped.retain(|(knob, _)| args.only.contains(knob));
    }
    if space.knobs.is_empty() {
        let why = space
            .skipped
            .iter()
            .map(|(knob, why)| format!("\n  {knob}: {why}"));
        let why: String = why.collect();
        let error = Failure::from(Usage(format!("there is no knob to vary on this target{why}")));
        return Err(match args.could_be_of_sessions() {
            true => error.with_hint("--session-scope varies what the load's own sessions can set"),
            false => error,
        });
    }
    Ok(space)
}

/// How many times what a knob gives to each sort may be taken at once: by the clients, and by the
/// workers of their queries where the load has long ones, each for several sorts and hashes.
pub(super) fn sorts(
    context: &Context,
    args: &TuneArgs,
    space: &SearchSpace,
    looked: &profile::Looked,
) -> f64 {
    let largest = |fact: &str| {
        let knob = fact.trim_start_matches("setting.");
        let fixed = args.fix.iter().filter(|(own, _)| own == knob);
        let fixed: Vec<&str> = fixed.map(|(_, value)| value.as_str()).collect();
        let varied = space
            .knobs
            .iter()
            .filter(|own| own.knob == knob && fixed.is_empty());
        let varied = varied.flat_map(|own| own.values.iter().map(|(value, _)| value.as_str()));
        let numbers = fixed.iter().copied().chain(varied);
        let numbers = numbers.filter_map(|value| context.catalogue.number_of(knob, value));
        let present = || looked.known.get(fact).ok()?.as_f64();
        numbers.max_by(f64::total_cmp).or_else(present)
    };
    let clients = f64::from(args.clients);
    let workers = match args.kind.unwrap_or_else(|| kind_of(args)) {
        LoadKind::Reads | LoadKind::Writes => 0.0,
        LoadKind::Analytics | LoadKind::Mixed => {
            let of_query = largest("setting.max_parallel_workers_per_gather").unwrap_or(0.0);
            (clients * of_query).min(largest("setting.max_parallel_workers").unwrap_or(f64::INFINITY))
        }
    };
    (clients + workers) * session_sorts(largest("setting.hash_mem_multiplier"))
}

/// A setting of a knob that is not its present one.
pub(super) fn another_value(own: &SpaceKnob) -> Option<Setting> {
    let other = own.values.get(1)?;
    Some(Setting {
        knob: own.knob.clone(),
        value: other.0.clone(),
    })
}

/// The starting points as levels of the space, without those that are the present state or one
/// another.
pub(super) fn starts(space: &SearchSpace, profiles: &[ProfileStart]) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    for (name, settings) in profiles {
        let levels = space.knobs.iter().filter_map(|own| {
            let setting = settings.iter().find(|setting| setting.knob == own.knob)?;
            let mut others = own.values.iter().skip(1);
            let level = others.find(|(value, _)| is_same(value, &setting.value))?;
            Some((own.knob.clone(), level.0.clone()))
        });
        let levels: BTreeMap<String, String> = levels.collect();
        if !levels.is_empty() && starts.iter().all(|(_, other)| *other != levels) {
            starts.push((name.clone(), levels));
        }
    }
    starts
}

/// What starting points set of the knobs that are varied to a value that is not among theirs, a
/// line each.
pub(super) fn not_levels(space: &SearchSpace, profiles: &[ProfileStart]) -> Vec<String> {
    let each = profiles
        .iter()
        .flat_map(|(name, settings)| settings.iter().map(move |setting| (name, setting)));
    let lines = each.filter_map(|(name, Setting { knob, value })| {
        let own = space.knobs.iter().find(|own| own.knob == *knob)?;
        let is_level = own.values.iter().any(|(level, _)| is_same(level, value));
        (!is_level).then(|| {
            format!("of {name}, {knob} = {value} is not among the values that are varied: not tried")
        })
    });
    lines.collect()
}

/// What the profile for such a load and pgtune set here as a whole, as far as the target and the
/// command line allow it; none on a server of the user's, where nothing is changed that is not
/// varied. With a line for each that has settings which are not allowed.
pub(super) fn whole(
    context: &Context,
    args: &TuneArgs,
    looked: &profile::Looked,
    profiles: &[ProfileStart],
) -> (Vec<ProfileStart>, Vec<String>) {
    let (mut whole, mut lines) = (Vec::new(), Vec::new());
    if target::sandbox_named(&args.target).is_none() {
        return (whole, lines);
    }
    let is_named = |list: &[(String, String)], knob: &str| list.iter().any(|(own, _)| own == knob);
    let is_wanted = |knob: &String| {
        let is_only = args.only.is_empty() || args.only.contains(knob) || is_named(&args.space, knob);
        is_only && !args.without.contains(knob) && !is_named(&args.fix, knob)
    };
    let shipped = profiles
        .iter()
        .filter(|(name, _)| SHIPPED.contains(&name.as_str()));
    for (name, settings) in shipped {
        let is_allowed = |setting: &Setting| {
            let objection = looked.objection(context, setting, args.scope(), args.consent.allow_restart);
            objection.is_none()
        };
        let wanted = settings.iter().filter(|setting| is_wanted(&setting.knob));
        let (allowed, others): (Vec<Setting>, Vec<Setting>) = wanted.cloned().partition(is_allowed);
        if !others.is_empty() {
            let knobs: Vec<&str> = others.iter().map(|setting| setting.knob.as_str()).collect();
            lines.push(format!(
                "of {name}, not allowed here and not compared: {}",
                knobs.join(", ")
            ));
        }
        whole.push((name.clone(), allowed));
    }
    (whole, lines)
}

/// Knobs that starting points set and the space does not vary.
pub(super) fn not_varied(space: &SearchSpace, profiles: &[ProfileStart]) -> BTreeMap<String, Vec<String>> {
    let is_varied = |setting: &&Setting| space.knobs.iter().any(|own| own.knob == setting.knob);
    let others = profiles.iter().map(|(name, settings)| {
        let others = settings.iter().filter(|setting| !is_varied(setting));
        (
            name.clone(),
            others
                .map(|setting| setting.knob.clone())
                .collect::<Vec<String>>(),
        )
    });
    others.filter(|(_, knobs)| !knobs.is_empty()).collect()
}

/// Whether two values mean the same: 1GB and 1024MB.
fn is_same(a: &str, b: &str) -> bool {
    a == b || quantity(a).is_some_and(|number| quantity(b) == Some(number))
}
