//! Profiles as pages for people, as wide as the terminal.

use crate::show;
use pgdyno_advice::{
    Profile, ProfileMeasured, ProfileSetting, ProfileValue, Resolved, ResolvedSetting, Unit,
};
use pgdyno_knobs::{Cost, Risk};
use std::fmt::Write;

/// Columns where no terminal says how many it has.
const WIDTH_ELSEWHERE: usize = 100;
const WIDTH_MIN: usize = 60;
const WIDTH_MAX: usize = 140;
/// Of conditions, which only a target decides.
const GIVEN: &str = "`pgdyno profile diff` shows which conditions hold on a target; there a fact that cannot be found out is set by \
     --given, e.g. --given storage.data_medium=ssd";
/// Widest column of knobs and of values; what is longer pushes the rest to the right.
const KNOB_MAX: usize = 38;
const VALUE_MAX: usize = 14;

fn width() -> usize {
    crate::output::columns().map_or(WIDTH_ELSEWHERE, |columns| columns.clamp(WIDTH_MIN, WIDTH_MAX))
}

pub(super) fn list(profiles: &[&Profile]) -> String {
    let longest = profiles
        .iter()
        .map(|profile| profile.name.len())
        .max()
        .unwrap_or(0);
    let mut page = String::new();
    for profile in profiles {
        let head = format!("{:longest$}  ", profile.name);
        page += &show::wrapped(&head, &format!("{}. {}", profile.title, profile.summary), width());
    }
    page.trim_end().to_owned()
}

/// A profile as it is written; one that is shipped with where it was measured.
pub(super) fn shown(profile: &Profile, settings: &[(&Profile, &ProfileSetting)], is_shipped: bool) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "{}: {}", profile.name, profile.title);
    page += &show::wrapped("", &profile.summary, width());
    if !profile.inherits.is_empty() {
        let _ = writeln!(page, "inherits {}", profile.inherits.join(", "));
    }
    if is_shipped && profile.measured.is_empty() {
        let _ = writeln!(page, "not measured on any machine of the project's");
    }
    for own in &profile.measured {
        let ProfileMeasured {
            machine,
            load,
            ratio,
            low,
            high,
            date,
        } = own;
        let line =
            format!("{machine}, {load}: {ratio:.2} ({low:.2} to {high:.2}) of the stock throughput, {date}");
        page += &show::wrapped("measured ", &line, width());
    }
    let mut of_last = "";
    for (of, setting) in settings {
        if of.name != of_last {
            let _ = writeln!(page, "\nof {}", of.name);
            of_last = &of.name;
        }
        let unit = match (&setting.value, setting.unit) {
            (ProfileValue::Text(_) | ProfileValue::Drop, _) | (_, None) => "",
            (_, Some(Unit::Bytes)) => " (bytes)",
            (_, Some(Unit::Seconds)) => " (seconds)",
        };
        let sign = match setting.value {
            ProfileValue::Expression(_) | ProfileValue::Drop => "",
            _ => "= ",
        };
        let head = format!("  {} ", setting.knob);
        page += &show::wrapped(&head, &format!("{sign}{}{unit}", setting.value.shown()), width());
        if let Some(when) = &setting.when {
            page += &show::wrapped("      when ", when.text(), width());
        }
        if let Some(only) = setting.only {
            let _ = writeln!(page, "      only to {} what is there", only.word());
        }
        page += &show::wrapped("      ", &because(&setting.reason, &setting.source), width());
    }
    if settings.iter().any(|(_, setting)| setting.when.is_some()) {
        page += "\n";
        page += &show::wrapped("", GIVEN, width());
    }
    page.trim_end().to_owned()
}

fn because(reason: &str, source: &str) -> String {
    format!("{reason} ({source})")
}

pub(super) fn difference(resolved: &Resolved, target: &str) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "{} ({}) on {target}", resolved.profile, resolved.title);
    let (same, other): (Vec<&ResolvedSetting>, Vec<&ResolvedSetting>) =
        resolved.settings.iter().partition(|setting| setting.is_now);
    changes(&mut page, &other);
    if !same.is_empty() {
        let all: Vec<String> = same
            .iter()
            .map(|setting| format!("{} = {}", setting.knob, setting.value))
            .collect();
        let _ = writeln!(page, "\nas the profile has it already");
        page += &show::wrapped("  ", &all.join(", "), width());
    }
    if !resolved.skipped.is_empty() {
        let _ = writeln!(page, "\nskipped");
        for left in &resolved.skipped {
            let head = format!("  {}  ", left.knob);
            page += &show::wrapped_at(&head, &left.shown(), 6, width());
        }
    }
    page.trim_end().to_owned()
}

fn changes(page: &mut String, settings: &[&ResolvedSetting]) {
    if settings.is_empty() {
        let _ = writeln!(page, "\nnothing would change");
        return;
    }
    let widest = |most: usize, of: &dyn Fn(&ResolvedSetting) -> usize, head: &str| {
        let widths = settings.iter().map(|setting| of(setting));
        widths.max().unwrap_or(0).min(most).max(head.len())
    };
    let now = |setting: &ResolvedSetting| setting.now.clone().unwrap_or_else(|| "unknown".to_owned());
    let knob_width = widest(KNOB_MAX, &|setting| setting.knob.len(), "knob");
    let now_width = widest(VALUE_MAX, &|setting| now(setting).len(), "now");
    let value_width = widest(VALUE_MAX, &|setting| setting.value.len(), "profile");
    let _ = writeln!(
        page,
        "\n  {:knob_width$}  {:>now_width$}  {:>value_width$}",
        "knob", "now", "profile"
    );
    for setting in settings {
        let mut notes = Vec::new();
        if setting.cost > Cost::Reload {
            notes.push(setting.cost.name());
        }
        if setting.risk == Risk::Durability {
            notes.push("TRADES DURABILITY");
        }
        let line = format!(
            "  {:knob_width$}  {:>now_width$}  {:>value_width$}  {}",
            setting.knob,
            now(setting),
            setting.value,
            notes.join(", ")
        );
        let _ = writeln!(page, "{}", line.trim_end());
        *page += &show::wrapped("      ", &because(&setting.reason, &setting.source), width());
    }
}
