//! `pgdyno apply`, `verify`, `status` and `confirm`: settings that stay, by whom, and for how long.

use crate::cli::{ApplyArgs, ConfirmArgs, StatusArgs, VerifyArgs};
use crate::commands::profile::{self, Looked};
use crate::commands::{restore, revert};
use crate::context::{Context, now_unix_ms, stop_flag, variable};
use crate::exit::{self, Refused, Usage};
use crate::show;
use crate::target::{self, Held};
use pgdyno_host::HostAccess;
use pgdyno_knobs::{
    Applied, Changer, Journal, Keep, Kind, Patience, PutBack, Reader, Restart, Restorer, Risk, SYSCTL_FILE,
    Setting, Standing, TMPFILES_FILE, Target, stale_journals,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long another command that turns knobs is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) fn apply(context: &Context, args: &ApplyArgs) -> anyhow::Result<u8> {
    let stop = stop_flag()?;
    restore::before(context, None)?;
    let held = held(context, args)?;
    let target = held.as_ref().map(|held| &held.target);
    let server = (!args.host_only).then_some(args.target.as_str());
    let wanted = wanted(context, &args.words(), server)?;
    let name = held
        .as_ref()
        .map_or_else(|| "this host".to_owned(), |held| held.name.clone());
    let reader = reader(context, target);
    let settings = possible(&reader, wanted.iter().filter(|wanted| !wanted.is_now))?;
    consent(context, args, &settings)?;
    if settings.is_empty() {
        tell!("nothing to do: all of it is so already, or cannot be applied here");
        return Ok(exit::FINE);
    }
    if args.dry_run {
        return dry_run(&reader, &settings, args.json);
    }
    restore::before(context, held.as_ref().and_then(Held::sandbox))?;
    let password = target.and_then(password_of);
    let (target, _guard) = held.map_or((None, None), |held| {
        let (target, guard) = held.parts();
        (Some(target), guard)
    });
    let mut on_wait = |holder: &str| tell!("waiting for {holder}, which is turning knobs on this machine");
    let mut patience = Patience {
        limit: PATIENCE,
        on_wait: Some(&mut on_wait),
    };
    let profiles: Vec<String> = args
        .words()
        .into_iter()
        .filter(|word| !word.contains('='))
        .collect();
    let purpose = match settings.as_slice() {
        settings if !profiles.is_empty() => {
            format!(
                "apply {} ({} settings) on {name}",
                profiles.join(" "),
                settings.len()
            )
        }
        [one] => format!("apply {}={} on {name}", one.knob, one.value),
        settings => format!("apply {} settings on {name}", settings.len()),
    };
    let mut changer = Changer::begin(
        &context.host,
        &context.catalogue,
        target,
        &context.journals(),
        &purpose,
        Some(user()),
        &mut patience,
    )?;
    let applied = match change(&mut changer, context, &settings, args.persist) {
        Ok(applied) => applied,
        Err(error) => {
            let back = put_back(context, changer)?;
            restore::check(&back)?;
            return Err(error.context("everything was put back"));
        }
    };
    if stop.load(Ordering::Relaxed) {
        let back = put_back(context, changer)?;
        tell!("{}", show::put_back(&back));
        restore::check(&back)?;
        anyhow::bail!("stopped before the end; everything was put back");
    }
    let took = applied.iter().all(|line| line.took);
    let code = if took { exit::FINE } else { exit::NOT_HELD };
    if args.until_exit {
        print(&applied, &name, args.json, None)?;
        tell!("in force until this ends (Ctrl-C)");
        wait(&stop);
        let back = put_back(context, changer)?;
        tell!("{}", show::put_back(&back));
        restore::check(&back)?;
        return Ok(code);
    }
    let until = args
        .revert_after
        .map(|after| now_unix_ms() + u64::try_from(after.as_millis()).unwrap_or(u64::MAX / 2));
    let keep = until.map_or(Keep::UntilRestored, |until_unix_ms| Keep::UnlessConfirmed {
        until_unix_ms,
    });
    let journal = changer.keep(keep)?;
    if let Some(until) = until
        && let Err(error) = revert::spawn(&journal, until, password.as_deref())
    {
        let left = restore::left_behind(context, false, None, |path, _| path == journal)?;
        restore::check(&left.lines)?;
        return Err(error.context("nobody would put it back in time, so it was put back at once"));
    }
    print(&applied, &name, args.json, until)?;
    tell!(
        "\n{}",
        match args.revert_after {
            Some(after) => format!(
                "put back in {} s, unless `pgdyno confirm` says before that it may stay",
                after.as_secs()
            ),
            None => "`pgdyno status` tells how it stands, `pgdyno restore` puts it back".to_owned(),
        }
    );
    Ok(code)
}

fn change(
    changer: &mut Changer<'_>,
    context: &Context,
    settings: &[Setting],
    persist: bool,
) -> anyhow::Result<Vec<Applied>> {
    let applied = changer.apply(settings, Restart::WhenNeeded)?;
    if persist {
        let persisted = changer.persisted(settings)?;
        let present = |path: &str| context.host.read(path).unwrap_or_default();
        for (path, content) in [
            (SYSCTL_FILE, persisted.sysctl_file(&present(SYSCTL_FILE))),
            (TMPFILES_FILE, persisted.tmpfiles_file(&present(TMPFILES_FILE))),
        ] {
            if let Some(content) = content {
                changer.write_own_file(path, &content)?;
                tell!("survives a reboot by {path}");
            }
        }
        for (knob, how) in &persisted.not {
            tell!("{knob} does not survive a reboot; for that: {how}");
        }
    }
    Ok(applied)
}

fn put_back(context: &Context, changer: Changer<'_>) -> anyhow::Result<Vec<PutBack>> {
    Ok(changer.put_back(&Restorer {
        host: &context.host,
        environment: &variable,
        force: false,
        conninfo: None,
    })?)
}

fn wait(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        pgdyno_server::pause(LOOK_AGAIN);
    }
}

fn held(context: &Context, args: &ApplyArgs) -> anyhow::Result<Option<Held>> {
    if args.host_only {
        return Ok(None);
    }
    if args.restart_command.is_some() && !args.allow_restart {
        return Err(Refused(
            "--restart-command restarts a server that pgdyno did not create; --allow-restart agrees".into(),
        )
        .into());
    }
    target::named(context, &args.target, args.restart_command.clone(), "apply").map(Some)
}

fn reader<'a>(context: &'a Context, target: Option<&'a Target>) -> Reader<'a> {
    Reader {
        host: &context.host,
        catalogue: &context.catalogue,
        target,
    }
}

/// A setting that is asked for.
struct Wanted {
    setting: Setting,
    /// Of a profile, what cannot be applied here is left out, by name.
    of_profile: bool,
    is_now: bool,
}

/// KNOB=VALUE and names of profiles, in order; a later value of a knob takes the place of an earlier one.
fn wanted(context: &Context, words: &[String], server: Option<&str>) -> anyhow::Result<Vec<Wanted>> {
    let mut all: Vec<Wanted> = Vec::new();
    let mut looked = None;
    for word in words {
        let new = match word.split_once('=') {
            Some((knob, value)) => {
                let setting = Setting {
                    knob: knob.trim().to_owned(),
                    value: value.trim().to_owned(),
                };
                context.catalogue.check(&setting)?;
                vec![Wanted {
                    setting,
                    of_profile: false,
                    is_now: false,
                }]
            }
            None if context.catalogue.get(word).is_ok() => {
                let words = format!("\"{word}\" is a knob: expected KNOB=VALUE, or the name of a profile");
                return Err(Usage(words).into());
            }
            None => {
                if looked.is_none() {
                    looked = Some(profile::look(context, server)?);
                }
                match &looked {
                    Some(looked) => of_profile(context, looked, word)?,
                    None => Vec::new(),
                }
            }
        };
        for wanted in new {
            all.retain(|other| other.setting.knob != wanted.setting.knob);
            all.push(wanted);
        }
    }
    if all.is_empty() {
        return Err(Usage("nothing to apply: name a profile or KNOB=VALUE".into()).into());
    }
    let settings: Vec<Setting> = all.iter().map(|wanted| wanted.setting.clone()).collect();
    if let Some((one, other)) = context.catalogue.conflict(&settings) {
        let words = format!(
            "{} and {} exclude each other: name one of them",
            one.knob, other.knob
        );
        return Err(Usage(words).into());
    }
    Ok(all)
}

fn of_profile(context: &Context, looked: &Looked, name: &str) -> anyhow::Result<Vec<Wanted>> {
    let resolved = profile::resolve(context, looked, name)?;
    for left in &resolved.left_out {
        tell!("{name}: {} is left out: {}", left.knob, left.because);
    }
    let settings = resolved.to_apply().into_iter().zip(&resolved.settings);
    Ok(settings
        .map(|(setting, line)| Wanted {
            setting,
            of_profile: true,
            is_now: line.is_now,
        })
        .collect())
}

/// What can be applied here. Nothing is changed where a part of what was named could not be; of a profile that part is left
/// out.
fn possible<'w>(
    reader: &Reader<'_>,
    wanted: impl Iterator<Item = &'w Wanted>,
) -> anyhow::Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for Wanted {
        setting, of_profile, ..
    } in wanted
    {
        match reader.check(setting) {
            Ok(()) => settings.push(setting.clone()),
            Err(error) if *of_profile => {
                tell!("{} = {} is not applied: {error}", setting.knob, setting.value);
            }
            Err(error) => {
                let what = format!("nothing was changed: {} = {}", setting.knob, setting.value);
                return Err(anyhow::Error::new(error).context(what));
            }
        }
    }
    Ok(settings)
}

fn consent(context: &Context, args: &ApplyArgs, settings: &[Setting]) -> anyhow::Result<()> {
    for setting in settings {
        let knob = context.catalogue.get(&setting.knob)?;
        if knob.kind == Kind::HeldFile && !args.until_exit && !args.dry_run {
            let words = format!(
                "{} counts as long as its file is open: it wants --until-exit",
                setting.knob
            );
            return Err(Usage(words).into());
        }
        let agreed = args.accept_durability_risk.contains(&knob.id);
        if knob.risk_of(&setting.value) == Risk::Durability && !agreed {
            let words = format!(
                "{} = {} can lose committed data in a crash; --accept-durability-risk {} agrees to it this once",
                setting.knob, setting.value, knob.id
            );
            return Err(Refused(words).into());
        }
    }
    Ok(())
}

fn dry_run(reader: &Reader<'_>, settings: &[Setting], as_json: bool) -> anyhow::Result<u8> {
    let mut rows = Vec::new();
    for setting in settings {
        let knob = reader.catalogue.get(&setting.knob)?;
        let now = reader.current(&setting.knob)?;
        rows.push((
            setting,
            now,
            knob.cost.name(),
            knob.risk_of(&setting.value).name(),
        ));
    }
    if as_json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(setting, now, cost, risk)| {
                json!({ "knob": setting.knob, "now": now, "value": setting.value, "cost": cost, "risk": risk })
            })
            .collect();
        put!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(exit::FINE);
    }
    let rows = rows
        .into_iter()
        .map(|(setting, now, cost, risk)| {
            vec![
                setting.knob.clone(),
                now,
                setting.value.clone(),
                cost.to_owned(),
                risk.to_owned(),
            ]
        })
        .collect();
    put!(
        "{}",
        show::table(&["knob", "now", "would be", "costs", "risk"], &[], rows)
    );
    tell!("\nnothing was changed");
    Ok(exit::FINE)
}

fn print(applied: &[Applied], target: &str, as_json: bool, until_unix_ms: Option<u64>) -> anyhow::Result<()> {
    if as_json {
        let lines: Vec<Value> = applied.iter().map(applied_json).collect();
        let all = json!({ "target": target, "settings": lines, "reverted_at_unix_ms": until_unix_ms });
        put!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        put!("{}", applied_table(applied));
    }
    Ok(())
}

fn applied_json(line: &Applied) -> Value {
    json!({
        "knob": line.setting.knob,
        "asked": line.setting.value,
        "effective": line.effective,
        "took": line.took,
        "remark": line.remark,
    })
}

fn applied_table(applied: &[Applied]) -> String {
    let rows = applied
        .iter()
        .map(|line| {
            let mut words = if line.took {
                "took effect"
            } else {
                "DID NOT TAKE EFFECT"
            }
            .to_owned();
            if let Some(remark) = &line.remark {
                words += &format!("; {remark}");
            }
            vec![
                line.setting.knob.clone(),
                line.setting.value.clone(),
                line.effective.clone(),
                words,
            ]
        })
        .collect();
    show::table(&["knob", "asked", "is", ""], &[], rows)
}

pub(crate) fn verify(context: &Context, args: &VerifyArgs) -> anyhow::Result<u8> {
    let words = args.words();
    if args.target.is_none() && words.is_empty() {
        return verify_kept(context, args.json);
    }
    let held = match &args.target {
        Some(target) if !args.host_only => Some(target::looked_at(context, target)?),
        _ => None,
    };
    let server = args.target.as_deref().filter(|_| !args.host_only);
    let wanted = wanted(context, &words, server)?;
    let reader = reader(context, held.as_ref());
    let mut lines = Vec::new();
    for Wanted {
        setting, of_profile, ..
    } in &wanted
    {
        match reader.verify_one(setting) {
            Ok(line) => lines.push(line),
            // As it is not applied, it is not missed.
            Err(error) if *of_profile && reader.check(setting).is_err() => {
                tell!("{} is not looked at: {error}", setting.knob);
            }
            Err(error) => {
                let what = format!("{} = {}", setting.knob, setting.value);
                return Err(anyhow::Error::new(error).context(what));
            }
        }
    }
    print(
        &lines,
        args.target.as_deref().unwrap_or("this host"),
        args.json,
        None,
    )?;
    let holds = lines.iter().all(|line| line.took);
    Ok(if holds { exit::FINE } else { exit::NOT_HELD })
}

/// Whether all that was applied and kept is still in force.
fn verify_kept(context: &Context, as_json: bool) -> anyhow::Result<u8> {
    let all = journals(context)?;
    if all.iter().all(|journal| journal.lines.is_empty()) {
        return Err(Usage(
            "nothing is applied; name a target, and a profile or KNOB=VALUE to look at".into(),
        )
        .into());
    }
    show_journals(&all, as_json)?;
    let holds = all
        .iter()
        .flat_map(|journal| &journal.lines)
        .all(|line| line.standing == Standing::InForce);
    Ok(if holds { exit::FINE } else { exit::NOT_HELD })
}

/// A journal, and how its changes stand.
struct Shown {
    number: usize,
    path: PathBuf,
    content: pgdyno_knobs::Content,
    lives: bool,
    lines: Vec<pgdyno_knobs::StatusLine>,
}

fn journals(context: &Context) -> anyhow::Result<Vec<Shown>> {
    let restorer = Restorer {
        host: &context.host,
        environment: &variable,
        force: false,
        conninfo: None,
    };
    let mut all = Vec::new();
    for (at, path) in stale_journals(&context.journals())?.into_iter().enumerate() {
        if let Some((content, lives)) = Journal::look(&path)? {
            all.push(Shown {
                number: at + 1,
                lines: restorer.status(&content),
                path,
                content,
                lives,
            });
        }
    }
    Ok(all)
}

pub(crate) fn status(context: &Context, args: &StatusArgs) -> anyhow::Result<u8> {
    let all = journals(context)?;
    if all.is_empty() && !args.json {
        tell!("nothing is changed");
        return Ok(exit::FINE);
    }
    show_journals(&all, args.json)?;
    Ok(exit::FINE)
}

fn show_journals(all: &[Shown], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let list: Vec<Value> = all.iter().map(journal_json).collect::<Result<_, _>>()?;
        put!("{}", serde_json::to_string_pretty(&list)?);
        return Ok(());
    }
    for (at, journal) in all.iter().enumerate() {
        if at > 0 {
            put!("");
        }
        put!("{}", heading(journal));
        let rows = journal
            .lines
            .iter()
            .map(|line| {
                let mut standing = match line.standing {
                    Standing::InForce => "in force".to_owned(),
                    Standing::AsBefore => "as before again".to_owned(),
                    Standing::Rebooted => "undone by a reboot".to_owned(),
                    Standing::Foreign => "changed by someone else since".to_owned(),
                    Standing::Unknown => "not known".to_owned(),
                };
                if line.standing == Standing::InForce && line.until_reboot {
                    standing += ", until a reboot";
                }
                vec![
                    line.knob.clone(),
                    line.was.clone(),
                    line.set_to.clone(),
                    line.now.clone(),
                    standing,
                ]
            })
            .collect();
        put!(
            "{}",
            show::table(&["knob", "before", "set to", "is", ""], &[], rows)
        );
    }
    Ok(())
}

fn heading(journal: &Shown) -> String {
    let purpose = &journal.content.purpose;
    let when = show::instant(purpose.started_unix_ms);
    let by = purpose
        .by
        .as_ref()
        .map(|by| format!(" by {by}"))
        .unwrap_or_default();
    let how = match (journal.content.kept(), journal.lives) {
        (_, true) => format!("; process {} is at it", purpose.pid),
        (None, false) => "; its process was killed: `pgdyno restore` puts it back".to_owned(),
        (Some(Keep::UntilRestored), false) => String::new(),
        (Some(Keep::UnlessConfirmed { until_unix_ms }), false) => {
            format!(
                "; put back at {} unless `pgdyno confirm`",
                show::instant(until_unix_ms)
            )
        }
    };
    format!("{}  {}, since {when}{by}{how}", journal.number, purpose.purpose)
}

fn journal_json(journal: &Shown) -> Result<Value, serde_json::Error> {
    let purpose = &journal.content.purpose;
    Ok(json!({
        "number": journal.number,
        "journal": journal.path,
        "purpose": purpose.purpose,
        "by": purpose.by,
        "pid": purpose.pid,
        "since_unix_ms": purpose.started_unix_ms,
        "alive": journal.lives,
        "kept": serde_json::to_value(journal.content.kept())?,
        "changes": serde_json::to_value(&journal.lines)?,
    }))
}

pub(crate) fn confirm(context: &Context, args: &ConfirmArgs) -> anyhow::Result<u8> {
    let mut confirmed = 0;
    for journal in journals(context)? {
        let wanted = args.numbers.is_empty() || args.numbers.contains(&journal.number);
        let waits = matches!(journal.content.kept(), Some(Keep::UnlessConfirmed { .. }));
        if !wanted || !waits {
            continue;
        }
        if let Some((open, _)) = Journal::reopen(&journal.path)? {
            open.confirm()?;
            confirmed += 1;
            tell!("{} stays until `pgdyno restore`", journal.content.purpose.purpose);
        }
    }
    if confirmed == 0 {
        return Err(
            Usage("nothing waits to be confirmed (`pgdyno status` tells what is changed)".into()).into(),
        );
    }
    Ok(exit::FINE)
}

/// Who it is, for those who find it later.
fn user() -> String {
    let uid = || format!("user {}", rustix::process::getuid().as_raw());
    match (
        variable("SUDO_USER"),
        variable("USER").or_else(|| variable("LOGNAME")),
    ) {
        (Some(who), _) => format!("{who} (sudo)"),
        (None, Some(who)) => who,
        (None, None) => uid(),
    }
}

fn password_of(target: &Target) -> Option<Vec<u8>> {
    target.conninfo.config().get_password().map(<[u8]>::to_vec)
}
