//! `pgdyno restore`: restores what `apply` has set, and what a killed command has left.

use crate::cli::RestoreArgs;
use crate::context::{Context, now_unix_ms, variable, waiting_agents};
use crate::failure::{Failure, Refused, Result, Usage};
use crate::sandboxes::lock_sandbox_in;
use crate::{exit, show};
use pgdyno_knobs::{
    Content, DAMAGED_JOURNAL, Journal, JournalError, LEFT_OBJECTS, Listed, Outcome, Patience, RestoreOptions,
    Restored, Restorer, ServerRef,
};
use pgdyno_remote::end_waiting;
use pgdyno_sandbox::{Sandbox, State};
use pgdyno_server::one_line;
use std::path::Path;
use std::time::Duration;

/// The variable with the sandboxes of an agent, with commas: what killed commands have left on them
/// is restored before a command measures, and nothing else.
pub(crate) const RESTORES: &str = "PGDYNO_RESTORES";

/// How long another command that turns knobs is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an agent that waits for another connection has to restore what its run has changed.
const AGENT_MAX: Duration = Duration::from_secs(120);

/// Ends runs of other hosts that wait for another connection; they restore what they have changed.
/// Those that have one go on. `of_store` is what the tokens of a store's runs begin with; empty for
/// those of all stores.
pub(crate) fn end_waiting_agents(of_store: &str) -> Result<()> {
    let Some(directory) = waiting_agents() else {
        return Ok(());
    };
    let found = end_waiting(&directory, of_store, AGENT_MAX);
    if found.ended > 0 {
        err!(
            "runs that had lost their coordinator and are ended now: {}",
            found.ended
        );
    }
    match found.lasting {
        0 => Ok(()),
        lasting => fail!(
            "{lasting} of the runs that have lost their coordinator do not end within {} s; try again",
            AGENT_MAX.as_secs()
        ),
    }
}

pub(crate) fn run(context: &Context, args: &RestoreArgs) -> Result<u8> {
    let is_for_all = args.numbers.is_empty() && args.sandbox.is_empty();
    if is_for_all {
        end_waiting_agents("")?;
    }
    let listed = context.journals().listed()?;
    if let Some(number) = args
        .numbers
        .iter()
        .find(|&&number| number == 0 || number > listed.len())
    {
        return Err(Usage(format!(
            "there is no change {number}; `pgdyno status` numbers them"
        ))
        .into());
    }
    let chosen: Vec<&Path> = args
        .numbers
        .iter()
        .map(|number| listed[number - 1].path.as_path())
        .collect();
    // Changes of another home are its own to restore, unless they are named.
    let others: Vec<&Path> = listed
        .iter()
        .filter(|listed| listed.home.is_some())
        .map(|listed| listed.path.as_path())
        .collect();
    let now = now_unix_ms();
    let stays = args.interrupted || args.at_boot;
    let root = context.sandboxes();
    let there = pgdyno_sandbox::list_names(&root)?;
    let sandboxes: Vec<&str> = args
        .sandbox
        .iter()
        .map(|text| text.strip_prefix("sandbox:").unwrap_or(text))
        .collect();
    if let Some(name) = sandboxes
        .iter()
        .find(|name| !there.iter().any(|known| known == *name))
    {
        return Err(Usage(format!(
            "there is no sandbox {name}; there are: {}",
            there.join(", ")
        ))
        .into());
    }
    let is_meant = |content: &Content| {
        let is_named = args.sandbox.is_empty() || is_of_sandbox(content, &root, &sandboxes);
        is_named && !(stays && content.stays_at(now))
    };
    let options = RestoreOptions {
        overwrites: args.force,
        at_boot: args.at_boot,
    };
    let mut left = left_behind(context, options, None, |path, content| match chosen.is_empty() {
        true => !others.contains(&path) && is_meant(content),
        false => chosen.contains(&path),
    })?;
    if args.json {
        put_page!("{}", serde_json::to_string_pretty(&left.lines)?);
    } else if !left.lines.is_empty() {
        put_page!("{}", show::restored(&left.lines));
    } else if left.held.is_empty() && left.covered.is_empty() && left.unreadable.is_empty() {
        err!("nothing to restore");
    }
    if is_for_all {
        show_others(&listed);
    }
    check_all(&mut left)?;
    check_objects(&left.lines)?;
    if let Some(error) = left.held.pop() {
        return Err(Failure::from(error).context("not restored; end that command with Ctrl-C"));
    }
    Ok(exit::FINE)
}

/// Whether changes are of one of these sandboxes in `root`.
fn is_of_sandbox(content: &Content, root: &Path, sandboxes: &[&str]) -> bool {
    match &content.purpose.server {
        Some(ServerRef::Sandbox { root: of, name }) => of == root && sandboxes.contains(&name.as_str()),
        _ => false,
    }
}

/// Names what other homes have changed, which is not restored.
fn show_others(listed: &[Listed]) {
    for (at, other) in listed.iter().enumerate() {
        if let Some(home) = &other.home {
            err!(
                "not restored: change {} belongs to another home, {home}: `pgdyno restore {}` restores it too",
                at + 1,
                at + 1
            );
        }
    }
}

/// Results of restoring the journals of earlier commands.
pub(crate) struct Left {
    /// Knobs with the outcome of each.
    pub(crate) lines: Vec<Restored>,
    /// Journals of commands that are alive.
    pub(crate) held: Vec<JournalError>,
    /// Journals that cannot be read.
    pub(crate) unreadable: Vec<JournalError>,
    /// What was not restored, as a later change that stays has been made over it.
    pub(crate) covered: Vec<String>,
}

/// Restores the journals that are `wanted`, of commands that have ended; `mine` is the sandbox that
/// the caller has locked already.
pub(crate) fn left_behind(
    context: &Context,
    options: RestoreOptions,
    mine: Option<&str>,
    wanted: impl Fn(&Path, &Content) -> bool,
) -> Result<Left> {
    let restorer = Restorer {
        host: &context.host,
        catalogue: &context.catalogue,
        environment: &variable,
        options,
        conninfo: None,
    };
    let mut left = Left {
        lines: Vec::new(),
        held: Vec::new(),
        unreadable: Vec::new(),
        covered: Vec::new(),
    };
    let journals = context.journals();
    let mut later: Vec<Content> = Vec::new();
    // The newest first: what was changed last is undone first.
    for Listed { path, home } in journals.listed()?.into_iter().rev() {
        let scope = match journals.look(&path) {
            Ok(Some((content, true))) if wanted(&path, &content) => {
                left.held.push(JournalError::Held {
                    path: path.clone(),
                    purpose: Some(Box::new(content.purpose.clone())),
                });
                later.push(content);
                continue;
            }
            Ok(Some((content, false))) if wanted(&path, &content) => {
                let over = later.iter().find_map(|later| {
                    let knob = content.covered_by(later)?;
                    Some((knob, &later.purpose.purpose))
                });
                if let Some((knob, over)) = over {
                    let purpose = &content.purpose.purpose;
                    left.covered
                        .push(format!("\"{purpose}\": \"{over}\" has set {knob} since"));
                    later.push(content);
                    continue;
                }
                content.scope()
            }
            Ok(Some((content, _))) => {
                later.push(content);
                continue;
            }
            // Closed meanwhile, or never used.
            Ok(None) => {
                if let Err(error) = Journal::reopen(journals, &path) {
                    left.unreadable.push(error);
                }
                continue;
            }
            // No journal at all, or none that can be trusted: what others hold is restored all the
            // same.
            Err(error) => {
                left.unreadable.push(error);
                continue;
            }
        };
        let mut on_wait = |holder: &str| err!("waiting for {holder}");
        let mut patience = Patience {
            limit: PATIENCE,
            on_wait: Some(&mut on_wait),
        };
        let _lock = match journals.lock(&scope, "restore", &mut patience) {
            Ok(lock) => lock,
            Err(error) => {
                left.held.push(error);
                break;
            }
        };
        let (journal, content) = match Journal::reopen(journals, &path) {
            Ok(Some(reopened)) => reopened,
            Ok(None) => continue,
            // What is below it would be taken for somebody else's.
            Err(error @ JournalError::Held { .. }) => {
                left.held.push(error);
                break;
            }
            Err(error) => {
                left.unreadable.push(error);
                break;
            }
        };
        let server = content.purpose.server.as_ref();
        if !wanted(&path, &content) {
            continue;
        }
        let _guard = match server {
            // Of a sandbox that was removed, nothing is left to lock.
            Some(ServerRef::Sandbox { root, name })
                if !(mine == Some(name) && *root == context.sandboxes()) && root.join(name).exists() =>
            {
                Some(lock_sandbox_in(root, name, "restore")?)
            }
            _ => None,
        };
        if let Some(ServerRef::Sandbox { root, name }) = server {
            mount(root, name);
        }
        if let Some(home) = &home {
            err!("restoring what another home has changed ({home})");
        }
        let lines = restorer.restore(journal)?;
        if lines.iter().any(|line| line.outcome == Outcome::Failed) {
            later.push(content);
        }
        left.lines.extend(lines);
    }
    Ok(left)
}

/// What is to be restored may be in an image that a restart of the machine has unmounted.
fn mount(root: &Path, name: &str) {
    let Ok(sandbox) = Sandbox::open(root, name) else {
        return;
    };
    if sandbox.state() == State::Unmounted
        && let Err(error) = sandbox.mount()
    {
        err!("{error}");
    }
}

/// Restores what killed commands have changed, and says so. A reference measured over what they
/// left would be none, and a server may not even start with it. `mine` is the sandbox that the
/// caller has locked. For an agent only what was changed on its sandboxes is restored; where there
/// is more, it is refused.
pub(crate) fn before(context: &Context, mine: Option<&str>) -> Result<()> {
    let (named, root) = (variable(RESTORES), context.sandboxes());
    let named: Option<Vec<&str>> = named.as_deref().map(|named| named.split(',').collect());
    let is_of_agent = |content: &Content| {
        named
            .as_ref()
            .is_none_or(|sandboxes| is_of_sandbox(content, &root, sandboxes))
    };
    if named.is_some() {
        check_others(context, is_of_agent)?;
    }
    // What somebody has applied to stay is part of what is measured.
    let usual = RestoreOptions::default();
    let mut left = left_behind(context, usual, mine, |_, content| {
        is_of_agent(content) && !content.stays_at(now_unix_ms())
    })?;
    show_left(&left.lines);
    check_all(&mut left)?;
    // What a living command holds is another experiment's, unless it is about the very sandbox that
    // the caller has.
    let about_mine = |error: &JournalError| match error {
        JournalError::Held {
            purpose: Some(purpose),
            ..
        } => matches!(&purpose.server, Some(ServerRef::Sandbox { name, .. }) if mine == Some(name)),
        // Something was to be restored, and could not be.
        JournalError::Busy { .. } => true,
        _ => false,
    };
    match left.held.into_iter().find(about_mine) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Refuses to measure over what killed commands have left and may not be restored.
fn check_others(context: &Context, may_be_restored: impl Fn(&Content) -> bool) -> Result<()> {
    let journals = context.journals();
    for Listed { path, .. } in journals.listed()? {
        if let Ok(Some((content, false))) = journals.look(&path)
            && !may_be_restored(&content)
            && !content.stays_at(now_unix_ms())
        {
            let what = &content.purpose.purpose;
            let message = format!(
                "\"{what}\" was killed, and what it has changed is not on an agent's sandbox: a person must run `pgdyno restore`"
            );
            return Err(Refused(message).into());
        }
    }
    Ok(())
}

/// Restores what a killed experiment on a sandbox has left, before the sandbox goes: the kernel's
/// knobs would have no journal to go by afterwards. That its server cannot be restored is no reason
/// to keep it.
pub(crate) fn before_destroying(context: &Context, name: &str) -> Result<()> {
    let left = left_behind(
        context,
        RestoreOptions::default(),
        Some(name),
        |_, content| matches!(&content.purpose.server, Some(ServerRef::Sandbox { name: of, .. }) if of == name),
    )?;
    show_left(&left.lines);
    for error in &left.unreadable {
        err!("not restored: {error}");
    }
    let kernel: Vec<Restored> = left
        .lines
        .into_iter()
        .filter(|line| {
            ["/proc/", "/sys/"]
                .iter()
                .any(|root| line.place.starts_with(root))
        })
        .collect();
    check(&kernel)
}

/// Whether nothing waits for a later change to be restored first.
pub(crate) fn check_covered(left: &Left) -> Result<()> {
    if left.covered.is_empty() {
        return Ok(());
    }
    fail!(
        "not restored: {}; restore the later one first, or both at once",
        left.covered.join("; ")
    )
}

/// Whether everything could be restored: prints what is wrong, and returns the last of it.
fn check_all(left: &mut Left) -> Result<()> {
    let all = [check_covered(left), check_unreadable(left), check(&left.lines)];
    let mut errors: Vec<Failure> = all.into_iter().filter_map(Result::err).collect();
    let Some(last) = errors.pop() else {
        return Ok(());
    };
    errors.iter().for_each(exit::print);
    Err(last)
}

/// Whether there was nothing that is not a journal, or none that can be trusted.
pub(crate) fn check_unreadable(left: &mut Left) -> Result<()> {
    if left.unreadable.is_empty() {
        return Ok(());
    }
    let mut errors = std::mem::take(&mut left.unreadable);
    let last = errors.remove(0);
    for error in errors {
        err!("error: {error}");
    }
    let hint = match &last {
        JournalError::NotTrusted { path, .. } => {
            let path = path.display().to_string();
            format!(
                "find out who created {}, then remove it or restore its owner and mode",
                one_line(&path)
            )
        }
        _ => "use the version of pgdyno that wrote it".to_owned(),
    };
    Err(Failure::from(last).context("not restored").with_hint(hint))
}

/// Whether every journal was whole.
fn check_damaged(lines: &[Restored]) -> Result<()> {
    let damaged: Vec<String> = lines
        .iter()
        .filter(|line| line.knob == DAMAGED_JOURNAL)
        .map(|line| format!("{}: {}", line.place, line.detail.as_deref().unwrap_or_default()))
        .collect();
    if damaged.is_empty() {
        return Ok(());
    }
    fail!(
        "a journal is damaged; what it proves is restored, and no more is known of the rest: {}",
        damaged.join("; ")
    )
}

fn show_left(lines: &[Restored]) {
    if !lines.is_empty() {
        err!("an earlier command was killed, or its time is over; first what it had changed is restored:");
        err_page!("{}", show::restored(lines));
    }
}

/// Whether commands of experiments have left nothing on servers that pgdyno did not create.
pub(crate) fn check_objects(lines: &[Restored]) -> Result<()> {
    let left = lines
        .iter()
        .filter(|line| line.knob == LEFT_OBJECTS && line.outcome == Outcome::Left);
    let left: Vec<String> = left
        .map(|line| format!("{}: {}", line.place, line.detail.as_deref().unwrap_or_default()))
        .collect();
    if !left.is_empty() {
        fail!("{}", left.join("; "));
    }
    Ok(())
}

/// Whether everything could be restored.
pub(crate) fn check(lines: &[Restored]) -> Result<()> {
    let failed: Vec<&str> = lines
        .iter()
        .filter(|line| line.outcome == Outcome::Failed)
        .map(|line| line.knob.as_str())
        .collect();
    if failed.is_empty() {
        return check_damaged(lines);
    }
    fail!(
        "{} could not be restored; the journal is kept, mend the cause and run `pgdyno restore` again",
        failed.join(", ")
    )
}
