//! `pgdyno apply`: settings that stay, by whom, and for how long.

mod status;
mod verify;
mod wanted;

pub(crate) use status::{changed, confirm, status};
pub(crate) use verify::verify;

use crate::cli::ApplyArgs;
use crate::commands::{restore, revert};
use crate::context::{Context, now_unix_ms, stop_flag, variable};
use crate::exit;
use crate::failure::{Refused, Result, Usage};
use crate::show;
use crate::target::{self, Held, Restarts};
use pgdyno_host::HostAccess;
use pgdyno_knobs::{
    Applied, Changer, ConsentError, Keep, Kind, OfHost, Patience, Reader, Restart, RestoreOptions, Restored,
    Restorer, SYSCTL_FILE, Setting, TMPFILES_FILE, Target,
};
use pgdyno_sandbox::Manager;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wanted::{Trouble, Wanted, possible, refused, wanted};

/// How long another command that turns knobs is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) fn apply(context: &Context, args: &ApplyArgs) -> Result<u8> {
    let stop = stop_flag()?;
    if args.revert_after.is_some() {
        revert::check(&context.host)?;
    }
    if !args.dry_run {
        restore::before(context, None)?;
    }
    let held = held(context, args)?;
    let target = held.as_ref().map(|held| &held.target);
    let server = (!args.host_only).then_some(args.target.as_str());
    let wanted = wanted(context, &args.words(), server)?;
    let name = held
        .as_ref()
        .map_or_else(|| "this host".to_owned(), |held| held.name.clone());
    let reader = reader(context, target);
    let asked = || wanted.iter().filter(|wanted| !wanted.is_now);
    let (settings, mut troubles) = possible(&reader, asked());
    let applied = asked().filter(|wanted| !wanted.of_profile || settings.contains(&wanted.setting));
    troubles.extend(consent(context, args, applied)?);
    refused(troubles)?;
    if settings.is_empty() {
        err!("nothing to do: all of it is so already, or cannot be applied here");
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
    let mut on_wait = |holder: &str| err!("waiting for {holder}");
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
    let kinds = settings
        .iter()
        .map(|setting| context.catalogue.get(&setting.knob));
    let of_host = match args.persist || kinds.flatten().any(|knob| knob.kind.is_of_host()) {
        true => OfHost::Yes,
        false => OfHost::No,
    };
    let mut changer = Changer::begin(
        &context.host,
        &context.catalogue,
        target,
        context.journals(),
        &purpose,
        (Some(user()), of_host),
        &mut patience,
    )?;
    let applied = match change(&mut changer, context, &settings, args) {
        Ok(applied) => applied,
        Err(error) => {
            let back = restore(context, changer)?;
            return Err(match restore::check(&back) {
                Ok(()) => error.context("everything was restored"),
                Err(left) => error.context(left.to_string()),
            });
        }
    };
    if stop.load(Ordering::Relaxed) {
        let back = restore(context, changer)?;
        err_page!("{}", show::restored(&back));
        restore::check(&back)?;
        fail!("stopped before the end; everything was restored");
    }
    let took = applied.iter().all(|line| line.took);
    let code = if took { exit::FINE } else { exit::NOT_HELD };
    if args.until_exit {
        print(&applied, &name, args.json, None)?;
        err!("in force until this ends (Ctrl-C)");
        wait(&stop);
        let back = restore(context, changer)?;
        err_page!("{}", show::restored(&back));
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
        let left = restore::left_behind(context, RestoreOptions::default(), None, |path, _| {
            path == journal
        })?;
        restore::check(&left.lines)?;
        return Err(error.context(
            "the process for --revert-after could not be started; everything was restored at once",
        ));
    }
    print(&applied, &name, args.json, until)?;
    err!(
        "\n{}",
        match args.revert_after {
            Some(after) => format!(
                "will be restored in {} s, unless you run `pgdyno confirm` before",
                after.as_secs()
            ),
            None => "`pgdyno status` shows its state, `pgdyno restore` restores it".to_owned(),
        }
    );
    Ok(code)
}

fn change(
    changer: &mut Changer<'_>,
    context: &Context,
    settings: &[Setting],
    args: &ApplyArgs,
) -> Result<Vec<Applied>> {
    let agreed = settings.iter();
    let agreed = agreed.map(|setting| context.catalogue.agree(setting, &args.accept_durability_risk));
    let agreed = agreed.collect::<Result<Vec<_>, _>>()?;
    let applied = changer.apply(&agreed, Restart::WhenNeeded)?;
    if args.persist {
        let persisted = changer.persisted(settings)?;
        let present = |path: &str| context.host.read(path).unwrap_or_default();
        for (path, content) in [
            (SYSCTL_FILE, persisted.sysctl_file(&present(SYSCTL_FILE))),
            (TMPFILES_FILE, persisted.tmpfiles_file(&present(TMPFILES_FILE))),
        ] {
            if let Some(content) = content {
                changer.write_own_file(path, &content)?;
                err!("survives a reboot by {path}");
            }
        }
        for (knob, how) in &persisted.not {
            err!("{knob} does not survive a reboot; for that: {how}");
        }
    }
    Ok(applied)
}

fn restore(context: &Context, changer: Changer<'_>) -> Result<Vec<Restored>> {
    Ok(changer.restore(&Restorer {
        host: &context.host,
        catalogue: &context.catalogue,
        environment: &variable,
        options: RestoreOptions::default(),
        conninfo: None,
    })?)
}

fn wait(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        pgdyno_server::pause(LOOK_AGAIN);
    }
}

fn held(context: &Context, args: &ApplyArgs) -> Result<Option<Held>> {
    if args.host_only {
        return Ok(None);
    }
    let commands = [&args.restart_command, &args.stop_command, &args.start_command];
    let [restart, stop, start] = commands.map(Option::as_deref);
    let given = Manager::given(restart, stop, start).map_err(|expected| Usage(expected.to_owned()))?;
    if given.is_some() && !args.allow_restart {
        let which = if restart.is_some() {
            "--restart-command restarts"
        } else {
            "--stop-command stops"
        };
        return Err(Refused(format!(
            "{which} a server that pgdyno did not create; --allow-restart agrees"
        ))
        .into());
    }
    let mut commands = given.iter().flat_map(Manager::commands);
    if commands.any(pgdyno_server::command_may_hold_password) {
        let message = "a command seems to hold a password, and is kept in the journal; let the command read it from a file, or put it \
                     into PGPASSWORD of the environment";
        return Err(Usage(message.to_owned()).into());
    }
    let restarts = Restarts::agreed(args.allow_restart, given);
    let held = target::named(context, &args.target, restarts, "apply")?;
    held.show_manager();
    Ok(Some(held))
}

fn reader<'a>(context: &'a Context, target: Option<&'a Target>) -> Reader<'a> {
    Reader {
        host: &context.host,
        catalogue: &context.catalogue,
        target,
        journals: Some(context.journals()),
    }
}

/// What is not agreed to, or not done so.
fn consent<'w>(
    context: &Context,
    args: &ApplyArgs,
    wanted: impl Iterator<Item = &'w Wanted>,
) -> Result<Vec<Trouble>> {
    let mut troubles = Vec::new();
    for Wanted { setting, .. } in wanted {
        let knob = context.catalogue.get(&setting.knob)?;
        if knob.kind == Kind::HeldFile && !args.until_exit {
            let message = format!(
                "{} is in effect only while its file is open: it needs --until-exit",
                setting.knob
            );
            troubles.push(Trouble::new(Usage(message).into()).with(vec!["--until-exit".to_owned()]));
        }
        if let Err(ConsentError::Durability { .. }) =
            context.catalogue.agree(setting, &args.accept_durability_risk)
        {
            let flag = format!("--accept-durability-risk {}", knob.id);
            let message = format!(
                "{} = {} can lose committed data in a crash; {flag} agrees to it this once",
                setting.knob, setting.value
            );
            troubles.push(Trouble::new(Refused(message).into()).with(vec![flag]));
        }
    }
    Ok(troubles)
}

fn dry_run(reader: &Reader<'_>, settings: &[Setting], as_json: bool) -> Result<u8> {
    let mut rows = Vec::new();
    for setting in settings {
        let knob = reader.catalogue.get(&setting.knob)?;
        let now = reader.current(&setting.knob)?;
        // What is so already costs nothing, whatever the knob.
        let cost = match reader.would_change(setting)? {
            true => reader.cost(&setting.knob)?.name(),
            false => "nothing",
        };
        rows.push((setting, now, cost, knob.risk_of(&setting.value).name()));
    }
    if as_json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(setting, now, cost, risk)| {
                json!({ "knob": setting.knob, "now": now, "value": setting.value, "cost": cost, "risk": risk })
            })
            .collect();
        put_page!("{}", serde_json::to_string_pretty(&rows)?);
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
    put_page!(
        "{}",
        show::table(&["knob", "now", "would be", "costs", "risk"], &[], rows)
    );
    err!("\nnothing was changed");
    Ok(exit::FINE)
}

fn print(applied: &[Applied], target: &str, as_json: bool, until_unix_ms: Option<u64>) -> Result<()> {
    if as_json {
        let lines: Vec<Value> = applied.iter().map(applied_json).collect();
        let all = json!({ "target": target, "settings": lines, "reverted_at_unix_ms": until_unix_ms });
        put_page!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        put_page!("{}", applied_table(applied));
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
            let mut result = if line.took {
                "took effect"
            } else {
                "DID NOT TAKE EFFECT"
            }
            .to_owned();
            if let Some(remark) = &line.remark {
                result += &format!("; {remark}");
            }
            vec![
                line.setting.knob.clone(),
                line.setting.value.clone(),
                line.effective.clone(),
                result,
            ]
        })
        .collect();
    show::table(&["knob", "asked", "is", ""], &[], rows)
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
