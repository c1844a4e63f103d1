//! Commands on other hosts: the way there, and what is handed over.

use crate::cli::{Command, HostArgs};
use crate::commands::experiment::{Book, LoadHostsOfRun, Sent, takeover, takeover_of};
use crate::commands::{advise, profile, watch};
use crate::context::{Context, stop_flag, variable};
use crate::failure::{Failure, InContext as _, Result, Usage};
use crate::generators::names_of_group;
use crate::output;
use crate::ssh_way::{CARRIED, run_on, ssh_program, way};
use pgdyno_host::given_text;
use pgdyno_record::ProgressRecord;
use pgdyno_remote::{Answer, CarriedFile, Listener, Output, PROTOCOL, Question, Request, SshHost};
use std::io::Write;
use std::path::Path;

/// Runs the command of this process's command line on the host that it names.
pub(crate) fn run(context: &Context, command: &Command, on: &HostArgs, host: &SshHost) -> Result<u8> {
    let all = arguments()?;
    let (request, kept) = match command {
        Command::Run(args) => {
            let sent = Sent::of(context, args)?;
            let (kept, takeover) = match args.dry_run {
                true => (Kept::Nothing(Box::new(sent.load_hosts(context, on))), None),
                false => (
                    Kept::of(Book::of_run(context, args, &sent)?),
                    Some(takeover(context, &args.store, &args.at)?),
                ),
            };
            let request = request(sent_arguments(context, all, true), sent.files);
            (Request { takeover, ..request }, Some(kept))
        }
        Command::Resume(args) => {
            let mut arguments = sent_arguments(context, all, false);
            let book = Book::of_resume(context, args, &mut arguments)?;
            let takeover = Some(takeover(context, &args.store, &args.at)?);
            let request = request(arguments, Vec::new());
            (Request { takeover, ..request }, Some(Kept::of(book)))
        }
        Command::Tune(args) => {
            let files = carried(&command.profiles(), args.of_load.script.as_deref())?;
            let load_hosts = LoadHostsOfRun::of_command(context, on, &args.load_from, &args.target);
            let request = request(sent_arguments(context, all, true), files);
            (request, Some(Kept::Nothing(Box::new(load_hosts))))
        }
        Command::Advise(args) => {
            let evidence = advise::evidence_for(context, args.store.place(), host)?;
            (request(sent_arguments(context, all, false), vec![evidence]), None)
        }
        _ => (request(all, carried(&command.profiles(), None)?), None),
    };
    let request = match command {
        Command::Apply(args) if args.until_exit => Request {
            takeover: Some(takeover_of("apply", &args.at)?),
            ..request
        },
        _ => request,
    };
    if let Command::Watch(args) = command
        && !args.once
    {
        return watch::elsewhere(context, args, way(&ssh_program()?, host, on.sudo), &request);
    }
    let (ended, shown) = run_shown(context, (on, host), &request, output::json_data(), kept)?;
    match shown.kept {
        Some(Kept::Results(book)) => book.finish(context, ended),
        _ => ended,
    }
}

/// A command line without what is for this host: the results are kept here, and so are the words
/// about them. Hosts of an inventory's group are named one by one in its place, where the command
/// has them named.
pub(crate) fn sent_arguments(context: &Context, all: Vec<String>, names_hosts: bool) -> Vec<String> {
    let kept = ["--store", "--report", "--output", "--inventory", "--load-group"];
    let mut arguments = without_options(all, &kept);
    if names_hosts {
        let names = names_of_group(context).into_iter();
        arguments.extend(names.map(|name| format!("--load-host={name}")));
    }
    arguments
}

/// Runs a command there; its exit code. What it says is shown, and what it prints goes to `data`.
pub(crate) fn run_shown<W: Write>(
    context: &Context,
    (on, host): (&HostArgs, &SshHost),
    request: &Request,
    data: W,
    kept: Option<Kept>,
) -> Result<(Result<u8>, Shown<W>)> {
    let (program, stop) = (ssh_program()?, stop_flag()?);
    let mut shown = Shown {
        data,
        remarks: Vec::new(),
        kept,
    };
    let way = way(&program, host, on.sudo);
    let ended = run_on(context, way, request, &mut shown, &stop).map_err(Failure::from);
    let _ = shown.data.flush();
    show_lines(&mut shown.remarks, true);
    Ok((ended, shown))
}

/// What is kept of a command there.
pub(crate) enum Kept {
    /// The results of a run.
    Results(Box<Book>),
    /// Nothing, as of a dry run, for which load hosts are asked.
    Nothing(Box<LoadHostsOfRun>),
}

impl Kept {
    pub(crate) fn of(book: Book) -> Kept {
        Kept::Results(Box::new(book))
    }
}

/// Shows what a command says there as if it ran here, and keeps the results of a run.
pub(crate) struct Shown<W> {
    /// Where what it prints goes.
    pub(crate) data: W,
    /// The beginning of a line that has not come as a whole.
    remarks: Vec<u8>,
    pub(crate) kept: Option<Kept>,
}

impl<W: Write> Listener for Shown<W> {
    fn said(&mut self, line: &str) {
        err!("{line}");
    }

    fn printed(&mut self, output: Output<'_>) {
        match output {
            // Nobody may read it any more; the command there goes on, as one here does.
            Output::Data(bytes) => drop(self.data.write_all(bytes)),
            Output::Remark(bytes) => {
                self.remarks.extend_from_slice(bytes);
                show_lines(&mut self.remarks, false);
            }
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        let nothing = || Answer::Failed("this command keeps no results".to_owned());
        match &mut self.kept {
            Some(Kept::Results(book)) => book.answer(question),
            Some(Kept::Nothing(load_hosts)) => load_hosts.answer(question).unwrap_or_else(|_| nothing()),
            None => nothing(),
        }
    }

    fn progress(&mut self, id: i64, progress: &ProgressRecord) {
        if let Some(Kept::Results(book)) = &self.kept {
            book.note(id, progress);
        }
    }
}

/// A command line for an agent, with the variables that go with it.
pub(crate) fn request(arguments: Vec<String>, files: Vec<CarriedFile>) -> Request {
    let carried = CARRIED.iter();
    Request {
        protocol: PROTOCOL,
        arguments,
        variables: carried
            .filter_map(|name| Some(((*name).to_owned(), variable(name)?)))
            .collect(),
        files,
        takeover: None,
    }
}

/// This process's own arguments, which the agent reads as this process has.
pub(crate) fn arguments() -> Result<Vec<String>> {
    let all = std::env::args_os().skip(1).map(std::ffi::OsString::into_string);
    all.map(|argument| {
        let wrong = |_| Usage("an argument is not valid UTF-8, and cannot be sent to another host".into());
        argument.map_err(|other| wrong(other).into())
    })
    .collect()
}

/// A command line without these options and their values.
pub(crate) fn without_options(all: Vec<String>, names: &[&str]) -> Vec<String> {
    let (mut left, mut all) = (Vec::new(), all.into_iter());
    while let Some(argument) = all.next() {
        let has_value = |name: &&str| {
            let rest = argument.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('='))
        };
        if names.contains(&&*argument) {
            all.next();
        } else if !names.iter().any(has_value) {
            left.push(argument);
        }
    }
    left
}

/// Files of this host that a command names: profiles, where they are files, and a script.
pub(crate) fn carried(profiles: &[String], script: Option<&Path>) -> Result<Vec<CarriedFile>> {
    let mut files = Vec::new();
    for name in profiles {
        files.extend(profile::files_of(name)?);
    }
    if let Some(path) = script {
        let content = given_text(path).with_context(|| format!("{} could not be read", path.display()))?;
        let name = path.to_string_lossy().into_owned();
        files.push(CarriedFile {
            path: name.clone(),
            full_name: name,
            content: Some(content),
        });
    }
    Ok(files)
}

/// Prints the whole lines of what has come; at the end, what is left too.
fn show_lines(bytes: &mut Vec<u8>, is_end: bool) {
    let whole = match (is_end, bytes.iter().rposition(|byte| *byte == b'\n')) {
        (true, _) => bytes.len(),
        (false, Some(last)) => last + 1,
        (false, None) => return,
    };
    let taken: Vec<u8> = bytes.drain(..whole).collect();
    for line in String::from_utf8_lossy(&taken).lines() {
        err!("{line}");
    }
}
