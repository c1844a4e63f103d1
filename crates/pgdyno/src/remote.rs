//! Commands on other hosts: the way there, and what is handed over.

use crate::cli::{Command, HostArgs, set_of_load_hosts};
use crate::commands::experiment::{Book, Sent, takeover};
use crate::commands::{profile, watch};
use crate::context::{Context, stop_flag, variable};
use crate::failure::{Failure, Result, Usage};
use crate::generators::names_of_group;
use crate::output;
use crate::ssh_way::{CARRIED, run_on, ssh_program, way};
use pgdyno_record::ProgressRecord;
use pgdyno_remote::{Answer, CarriedFile, Listener, Output, PROTOCOL, Question, Request, SshHost};
use std::io::Write;

/// Runs the command of this process's command line on the host that it names.
pub(crate) fn run(context: &Context, command: &Command, on: &HostArgs, host: &SshHost) -> Result<u8> {
    let all = arguments()?;
    // The results are kept here, and so are the words about them.
    let kept = ["--store", "--report", "--inventory", "--load-group"];
    let of_run = || {
        let mut arguments = without_options(all.clone(), &kept);
        if let (Command::Run(_), [_, ..]) = (command, &*context.load_group) {
            arguments.extend(["--set".to_owned(), set_of_load_hosts(&names_of_group(context))]);
        }
        arguments
    };
    let (request, book) = match command {
        Command::Run(args) => {
            let sent = Sent::of(context, args)?;
            let book = (!args.dry_run)
                .then(|| Book::of_run(context, args, &sent))
                .transpose()?;
            let takeover = book.as_ref().map(|_| takeover(&args.at)).transpose()?;
            let request = request(of_run(), sent.files);
            (Request { takeover, ..request }, book)
        }
        Command::Resume(args) => {
            let mut arguments = of_run();
            let book = Book::of_resume(context, args, &mut arguments)?;
            let takeover = Some(takeover(&args.at)?);
            let request = request(arguments, Vec::new());
            (Request { takeover, ..request }, Some(book))
        }
        _ => (request(all, carried(command)?), None),
    };
    let program = ssh_program()?;
    if let Command::Watch(args) = command
        && !args.once
    {
        return watch::elsewhere(context, args, way(&program, host, on.sudo), &request);
    }
    let stop = stop_flag()?;
    let mut shown = Shown {
        data: output::json_data(),
        remarks: Vec::new(),
        book,
    };
    let way = way(&program, host, on.sudo);
    let ended = run_on(context, way, &request, &mut shown, &stop).map_err(Failure::from);
    let _ = shown.data.flush();
    show_lines(&mut shown.remarks, true);
    match shown.book {
        Some(book) => book.finish(context, ended),
        None => ended,
    }
}

/// Shows what the command prints there as if it ran here, and keeps the results of a run.
struct Shown<W> {
    data: W,
    /// The beginning of a line that has not come as a whole.
    remarks: Vec<u8>,
    book: Option<Book>,
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
        match &mut self.book {
            Some(book) => book.answer(question),
            None => Answer::Failed("this command keeps no results".to_owned()),
        }
    }

    fn progress(&mut self, id: i64, progress: &ProgressRecord) {
        if let Some(book) = &self.book {
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
        let wrong = |_| Usage("an argument is no text, and cannot be sent to another host".into());
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

/// Files of this host that the command names.
fn carried(command: &Command) -> Result<Vec<CarriedFile>> {
    let mut files = Vec::new();
    for name in command.profiles() {
        files.extend(profile::files_of(&name)?);
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
