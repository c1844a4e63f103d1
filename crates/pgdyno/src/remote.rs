//! Commands on other hosts: the way there, and what is handed over.

use crate::cli::{Command, HostArgs};
use crate::commands::experiment::{self, Book};
use crate::commands::profile;
use crate::context::{Context, stop_flag, variable};
use crate::failure::{Failure, Result, Usage};
use crate::output;
use crate::ssh_way::{CARRIED, binary, ssh_program};
use pgdyno_record::ProgressRecord;
use pgdyno_remote::{Answer, CarriedFile, Host, On, Output, PROTOCOL, Question, Request, SshHost, SshWay};
use std::cell::RefCell;
use std::io::Write as _;

/// Runs the command of this process's command line on the host that it names.
pub(crate) fn run(context: &Context, command: &Command, on: &HostArgs, host: &SshHost) -> Result<u8> {
    let mut arguments = match command {
        Command::Run(_) | Command::Resume(_) => without_options(arguments()?, &["--store", "--report"]),
        _ => arguments()?,
    };
    let files = carried(context, command)?;
    let (mut book, takeover) = Book::of(context, command, &mut arguments)?.unzip();
    let request = Request {
        takeover,
        ..request(arguments, files)
    };
    let stop = stop_flag()?;
    let program = ssh_program()?;
    let host = Host {
        way: SshWay {
            program: &program,
            host,
            sudo: on.sudo,
            hidden: &CARRIED,
        },
        version: env!("CARGO_PKG_VERSION"),
        binary_for: &|machine: &str| binary(context, machine),
    };
    let (mut data, mut remarks) = (output::json_data(), Vec::new());
    let mut on_output = |output: Output<'_>| match output {
        // Nobody may read it any more; the command there goes on, as one here does.
        Output::Data(bytes) => drop(data.write_all(bytes)),
        Output::Remark(bytes) => {
            remarks.extend_from_slice(bytes);
            show_lines(&mut remarks, false);
        }
    };
    let book_of_run = RefCell::new(&mut book);
    let mut on_question = |question: Question| match &mut **book_of_run.borrow_mut() {
        Some(book) => book.answer(question),
        None => Answer::Failed("this command keeps no results".to_owned()),
    };
    let mut on_progress = |id: i64, progress: &ProgressRecord| {
        if let Some(book) = &**book_of_run.borrow() {
            book.note(id, progress);
        }
    };
    let on = On {
        said: &mut |line| err!("{line}"),
        output: &mut on_output,
        question: &mut on_question,
        progress: &mut on_progress,
    };
    let ended = host.run(&request, on, &stop);
    let _ = data.flush();
    show_lines(&mut remarks, true);
    let ended = ended.map_err(Failure::from);
    match book {
        Some(book) => book.finish(context, ended),
        None => ended,
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
fn carried(context: &Context, command: &Command) -> Result<Vec<CarriedFile>> {
    if let Command::Run(args) = command {
        return experiment::files_of(context, args);
    }
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
