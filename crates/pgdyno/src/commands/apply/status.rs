//! `pgdyno status` and `confirm`: what is changed now, by whom, and for how long.

use crate::cli::{ConfirmArgs, StatusArgs};
use crate::context::{Context, variable};
use crate::exit;
use crate::failure::{Failure, Result, Usage};
use crate::show;
use crate::target::shown_sandbox;
use pgdyno_knobs::{
    ChangeState, ChangedByOther, Content, Journal, JournalError, Keep, Listed, RestoreOptions, Restorer,
    ServerRef, StatusLine, UndoUnitError,
};
use pgdyno_serve::Changed;
use pgdyno_serve::document::ChangedBy;
use pgdyno_server::Conninfo;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) fn status(context: &Context, args: &StatusArgs) -> Result<u8> {
    let (all, unreadable) = journals(context, true)?;
    let (others, unread) = context.journals().of_others();
    if !all.is_empty() || args.json {
        show_journals(&all, args.json)?;
    } else if unreadable.is_empty() && others.is_empty() {
        err!("nothing is changed");
    }
    show_others(&others, &unread);
    for aside in context.journals().damaged()? {
        err!(
            "{} is a damaged journal that was kept; remove it when you no longer need it",
            aside.display()
        );
    }
    check(&all, unreadable)?;
    Ok(exit::FINE)
}

/// Whether all journals are whole.
fn check(all: &[Shown], unreadable: Vec<JournalError>) -> Result<()> {
    let mut wrong: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    for journal in all.iter().filter(|journal| !journal.content.damage.is_empty()) {
        let damage = journal.content.damage.join("; ");
        wrong.push(format!(
            "the journal {} is damaged: {damage}",
            journal.path.display()
        ));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(wrong.join("; "))
            .with_hint("`pgdyno restore` restores what is proven and keeps the damaged file")),
    }
}

/// Whether all that was applied and kept is still in force.
pub(super) fn verify_kept(context: &Context, as_json: bool) -> Result<u8> {
    let (all, unreadable) = journals(context, true)?;
    if all.iter().all(|journal| journal.lines.is_empty()) {
        return Err(
            Usage("nothing is applied; name a target, and a profile or KNOB=VALUE to verify".into()).into(),
        );
    }
    show_journals(&all, as_json)?;
    check(&all, unreadable)?;
    let holds = all
        .iter()
        .flat_map(|journal| &journal.lines)
        .all(|line| line.state == ChangeState::InForce);
    Ok(if holds { exit::FINE } else { exit::NOT_HELD })
}

pub(crate) fn confirm(context: &Context, args: &ConfirmArgs) -> Result<u8> {
    let mut confirmed = 0;
    for journal in journals(context, true)?.0 {
        // What another home has changed is confirmed by its number alone.
        let is_all = args.numbers.is_empty() && journal.home.is_none();
        let wanted = is_all || args.numbers.contains(&journal.number);
        let waits = matches!(journal.content.kept(), Some(Keep::UnlessConfirmed { .. }));
        if !wanted || !waits {
            continue;
        }
        if let Some((open, _)) = Journal::reopen(context.journals(), &journal.path)? {
            open.confirm()?;
            confirmed += 1;
            err!("{} stays until `pgdyno restore`", journal.content.purpose.purpose);
        }
    }
    if confirmed == 0 {
        return Err(
            Usage("nothing waits to be confirmed (`pgdyno status` shows what is changed)".into()).into(),
        );
    }
    Ok(exit::FINE)
}

/// A journal, and the state of its changes.
struct Shown {
    number: usize,
    path: PathBuf,
    /// Another home, where it is of one.
    home: Option<String>,
    content: Content,
    lives: bool,
    lines: Vec<StatusLine>,
}

/// Why a server's own setting is not checked.
const NOT_ASKED: &str = "servers are not asked while an experiment runs";

/// What is changed on this machine now, and on its servers. Where those may not be asked, their own
/// settings are there too, each with that reason.
pub(crate) fn changed(context: &Context, servers_too: bool) -> Result<Vec<Changed>> {
    let (all, unreadable) = journals(context, servers_too)?;
    check(&all, unreadable)?;
    let changed = all.iter().map(|journal| Changed {
        server: journal.content.purpose.server.clone(),
        journal: changed_by(journal),
    });
    Ok(changed.collect())
}

/// All journals that can be read, and why others cannot.
fn journals(context: &Context, servers_too: bool) -> Result<(Vec<Shown>, Vec<JournalError>)> {
    let restorer = Restorer {
        host: &context.host,
        catalogue: &context.catalogue,
        environment: &variable,
        options: RestoreOptions::default(),
        conninfo: None,
    };
    let (mut all, mut unreadable) = (Vec::new(), Vec::new());
    let journals = context.journals();
    for (at, Listed { path, home }) in journals.listed()?.into_iter().enumerate() {
        match journals.look(&path) {
            Ok(Some((content, lives))) => all.push(Shown {
                number: at + 1,
                lines: match servers_too {
                    true => restorer.status(&content),
                    false => unasked(&restorer, &content),
                },
                path,
                home,
                content,
                lives,
            }),
            Ok(None) => {}
            Err(error) => unreadable.push(error),
        }
    }
    Ok((all, unreadable))
}

/// The state of the changes as far as the host alone shows it: without a server in a journal
/// nothing is asked.
fn unasked(restorer: &Restorer<'_>, content: &Content) -> Vec<StatusLine> {
    let mut alone = content.clone();
    alone.purpose.server = None;
    let mut lines = restorer.status(&alone);
    let no_server = UndoUnitError::NoServer.to_string();
    for line in &mut lines {
        if line.why.as_ref() == Some(&no_server) {
            line.why = Some(NOT_ASKED.to_owned());
        }
    }
    lines
}

fn show_journals(all: &[Shown], as_json: bool) -> Result<()> {
    if as_json {
        let list: Vec<ChangedBy> = all.iter().map(changed_by).collect();
        put_page!("{:#}", serde_json::to_value(list)?);
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
                let mut state = match line.state {
                    ChangeState::InForce => "in force".to_owned(),
                    ChangeState::AsBefore => "as before again".to_owned(),
                    ChangeState::Rebooted => "reset by a reboot".to_owned(),
                    ChangeState::Foreign => "changed by someone else since".to_owned(),
                    ChangeState::Unknown => "not known".to_owned(),
                };
                if line.state == ChangeState::InForce && line.until_reboot {
                    state += ", until a reboot";
                }
                vec![
                    line.knob.clone(),
                    line.was.clone(),
                    line.set_to.clone(),
                    line.now.clone(),
                    state,
                ]
            })
            .collect();
        put_page!(
            "{}",
            show::table(&["knob", "before", "set to", "is", ""], &[], rows)
        );
        let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in &journal.lines {
            if let Some(why) = &line.why {
                unknown.entry(why).or_default().push(&line.knob);
            }
        }
        for (why, knobs) in unknown {
            put!("{}: {why}", knobs.join(", "));
        }
    }
    Ok(())
}

/// What other users of this host have changed, by their word.
fn show_others(others: &[ChangedByOther], unread: &[String]) {
    for other in others {
        let since = show::instant(other.since_unix_ms);
        let knobs: Vec<&str> = other
            .host
            .iter()
            .chain(&other.server)
            .map(String::as_str)
            .collect();
        err!(
            "changed by {}'s pgdyno (process {}) since {since}: {}; `pgdyno restore` as that user restores it",
            other.user,
            other.pid,
            knobs.join(", ")
        );
    }
    for reason in unread {
        err!("not known: {reason}");
    }
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
        (_, true) => format!("; process {} is still running", purpose.pid),
        (None, false) => "; its process was killed: `pgdyno restore` restores it".to_owned(),
        (Some(Keep::UntilRestored), false) => String::new(),
        (Some(Keep::UnlessConfirmed { until_unix_ms }), false) => {
            format!(
                "; restored at {} unless `pgdyno confirm`",
                show::instant(until_unix_ms)
            )
        }
    };
    let home = journal
        .home
        .as_ref()
        .map(|home| format!("; of another home, {home}"))
        .unwrap_or_default();
    format!(
        "{}  {}, since {when}{by}{how}{home}",
        journal.number, purpose.purpose
    )
}

/// What results call a server.
fn server_of(server: &ServerRef) -> Option<String> {
    match server {
        ServerRef::Sandbox { name, .. } => Some(shown_sandbox(name)),
        ServerRef::Address { conninfo, .. } => Conninfo::shown(conninfo, &|_| None).ok(),
    }
}

fn changed_by(journal: &Shown) -> ChangedBy {
    let purpose = &journal.content.purpose;
    ChangedBy {
        number: journal.number,
        journal: journal.path.clone(),
        home: journal.home.clone(),
        damage: journal.content.damage.clone(),
        purpose: purpose.purpose.clone(),
        server: purpose.server.as_ref().and_then(server_of),
        by: purpose.by.clone(),
        pid: purpose.pid,
        since_unix_ms: purpose.started_unix_ms,
        alive: journal.lives,
        kept: journal.content.kept(),
        changes: journal.lines.clone(),
    }
}
