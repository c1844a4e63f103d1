//! The only way to standard output and standard error: what servers, stores, files and arguments
//! hold is cleaned here of what a terminal obeys, bounded in length, and freed of passwords.
//! `clippy.toml` and `tests/all/absences.rs` forbid every other way.

mod styled;

pub(crate) use styled::{Style, Styled};

use crate::context::variable;
use crate::on_host::on_host;
use clap::error::{ContextKind, ErrorKind};
use indicatif::ProgressBar;
use pgdyno_server::{may_hold_password, one_line, without_secret};
use ratatui::buffer::Buffer;
use rustix::termios::tcgetwinsize;
use serde::de::IgnoredAny;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use styled::is_mark;

/// Characters of a line of data: the longest of a report's tables have about 2,000.
const LINE_MAX: usize = 16_384;
/// Characters of a line for people: a screen full.
const REMARK_LINE_MAX: usize = 4_096;
/// Characters of one message for people.
const REMARK_MAX: usize = 32_768;
/// Characters of a cell of a table, which makes all cells of its column as wide.
pub(crate) const CELL_MAX: usize = 400;

#[expect(clippy::disallowed_methods, reason = "this is the one way out")]
fn standard_output() -> io::Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "this is the one way out")]
fn standard_error() -> io::Stderr {
    io::stderr()
}

/// Whether data go to a terminal.
pub(crate) fn data_is_seen() -> bool {
    standard_output().is_terminal()
}

/// Whether messages go to a terminal.
pub(crate) fn remarks_are_seen() -> bool {
    standard_error().is_terminal()
}

/// Columns of the terminal that data go to; `None` where they go elsewhere.
pub(crate) fn columns() -> Option<usize> {
    let out = standard_output();
    let size = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// A line of data, to standard output. That nobody reads it any more must not end a program that
/// has to restore things.
pub(crate) fn put(text: fmt::Arguments<'_>) {
    put_text(&line_of(&text.to_string()));
}

/// Lines of data that are laid out here.
pub(crate) fn put_page(text: fmt::Arguments<'_>) {
    put_text(&text.to_string());
}

fn put_text(text: &str) {
    let _ = writeln!(standard_output(), "{}", data_line(&for_host(text), &secrets()));
}

/// Lines of data that are styled in part, without the styles where they are not wanted.
pub(crate) fn put_styled(text: &Styled, is_plain: bool) {
    let text = text.map(|text| clean_styled(&bounded(&for_host(text), &secrets())));
    let has_colours = !is_plain && has_colours(data_is_seen());
    let _ = writeln!(standard_output(), "{}", text.shown(has_colours));
}

/// A line for people, to standard error; the same holds.
pub(crate) fn err(text: fmt::Arguments<'_>) {
    err_text(&line_of(&text.to_string()));
}

/// Lines for people that are laid out here.
pub(crate) fn err_page(text: fmt::Arguments<'_>) {
    err_text(&text.to_string());
}

fn err_text(text: &str) {
    let _ = writeln!(standard_error(), "{}", remark(&for_host(text), &secrets()));
}

/// Lines for people that are styled in part.
pub(crate) fn err_styled(text: &Styled) {
    let text = text.map(|text| clean_styled(&bounded_remark(&for_host(text), &secrets())));
    let _ = writeln!(
        standard_error(),
        "{}",
        text.shown(has_colours(remarks_are_seen()))
    );
}

/// Options of the host that the command is for, from a space on.
static HOST: OnceLock<String> = OnceLock::new();

/// Has commands in what is printed from now on name the host of these options.
pub(crate) fn name_host(options: String) {
    let _ = HOST.set(options);
}

fn for_host(text: &str) -> Cow<'_, str> {
    let Some(options) = HOST.get() else {
        return Cow::Borrowed(text);
    };
    match text.starts_with(['{', '[']) {
        // JSON writes it twice.
        true => on_host(text, &options.replace('\\', "\\\\")),
        false => on_host(text, options),
    }
}

/// One line: a new line inside it would be a foreign value's, which could pass for a line of ours.
/// Those at its ends are blank lines.
fn line_of(text: &str) -> String {
    let rest = text.trim_start_matches('\n');
    let inner = rest.trim_end_matches('\n');
    let (before, after) = (text.len() - rest.len(), rest.len() - inner.len());
    format!("{}{}{}", "\n".repeat(before), one_line(inner), "\n".repeat(after))
}

fn data_line(text: &str, secrets: &Secrets) -> String {
    clean(&bounded(text, secrets)).into_owned()
}

fn bounded(text: &str, secrets: &Secrets) -> String {
    bounded_lines(&secrets.hidden(text), LINE_MAX).into_owned()
}

fn remark(text: &str, secrets: &Secrets) -> String {
    clean(&bounded_remark(text, secrets)).into_owned()
}

fn bounded_remark(text: &str, secrets: &Secrets) -> String {
    // So that a message without end takes no time without end; a password that this cuts in two is
    // not printed.
    let text = secrets.hidden(&cut(text, 2 * REMARK_MAX)).into_owned();
    let lines: Vec<String> = text.split('\n').map(without_user_info).collect();
    cut(&bounded_lines(&lines.join("\n"), REMARK_LINE_MAX), REMARK_MAX).into_owned()
}

/// What a terminal obeys as `\u001b`, the notation of JSON, so that a JSON text stays the same
/// value. New lines and tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    without(text, is_obeyed)
}

/// The same of a text whose marks are ours.
fn clean_styled(text: &str) -> String {
    without(text, |c| is_obeyed(c) && !is_mark(c)).into_owned()
}

fn without(text: &str, is_obeyed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 64);
    let mut units = [0; 2];
    for c in text.chars() {
        match is_obeyed(c) {
            true => {
                for unit in c.encode_utf16(&mut units) {
                    cleaned += &format!("\\u{unit:04x}");
                }
            }
            false => cleaned.push(c),
        }
    }
    Cow::Owned(cleaned)
}

/// Control characters (C0 but for new line and tab, DEL, C1), what turns the direction of writing,
/// breaks lines unseen, or is not seen at all, and the marks of our own styling, which foreign text
/// has no right to.
fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// A text of at most so many characters; of a longer one the beginning, with the number of those
/// that are missing.
pub(crate) fn cut(text: &str, characters_max: usize) -> Cow<'_, str> {
    let Some((at, _)) = text.char_indices().nth(characters_max) else {
        return Cow::Borrowed(text);
    };
    let missing = text[at..].chars().count();
    Cow::Owned(format!("{}\u{2026} ({missing} more characters)", &text[..at]))
}

/// Long lines are cut. A JSON document is one value, however long its lines are.
fn bounded_lines(text: &str, line_max: usize) -> Cow<'_, str> {
    // A character has a byte at least.
    let is_short = text.split('\n').all(|line| line.len() <= line_max);
    if is_short || serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(|line| cut(line, line_max)).collect();
    Cow::Owned(lines.join("\n"))
}

/// A cell of a table.
pub(crate) fn cell(text: &str) -> String {
    clean(&one_line(&cut(text, CELL_MAX))).into_owned()
}

/// Whether what goes to such a place is shown in colours, and nobody has switched them off.
fn has_colours(is_terminal: bool) -> bool {
    is_terminal && variable("NO_COLOR").is_none() && variable("TERM").is_some_and(|term| term != "dumb")
}

/// Texts of a command line, its environment and its files that may hold a password, each with what
/// is shown in its place.
#[derive(Debug, Default)]
struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// Adds a text, and what follows an equals sign in it, if it may hold a password.
    fn add(&mut self, text: &str) {
        let value = text.split_once('=').map(|(_, value)| value);
        for text in [Some(text), value].into_iter().flatten() {
            let text = text.trim();
            if !may_hold_password(text) {
                continue;
            }
            // As it is, and as Rust's and JSON's quotation writes it.
            let quoted = format!("{text:?}");
            let quoted = quoted.trim_matches('"');
            // What names a place behind an `@` is split there before it is shown.
            let user = text.rsplit_once('@').map(|(user, _)| user);
            let user = user.filter(|user| may_hold_password(&format!("{user}@")));
            for form in [Some(text), Some(quoted), user].into_iter().flatten() {
                if self.0.iter().all(|(known, _)| known != form) {
                    self.0.push((form.to_owned(), without_secret(text)));
                }
            }
        }
    }

    /// The text without any of them.
    fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        for (secret, instead) in &self.0 {
            if shown.contains(secret.as_str()) {
                shown = Cow::Owned(shown.replace(secret.as_str(), instead));
            }
        }
        shown
    }
}

/// Those of this process.
static SECRETS: Mutex<Secrets> = Mutex::new(Secrets(Vec::new()));

fn secrets() -> MutexGuard<'static, Secrets> {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ensures that a text is never printed as it is, if it may hold a password.
pub(crate) fn hide(text: &str) {
    secrets().add(text);
}

/// What was given on the command line and in the environment.
pub(crate) fn hide_arguments() {
    for argument in std::env::args_os().skip(1) {
        hide(&argument.to_string_lossy());
    }
    if let Some(store) = variable("PGDYNO_STORE") {
        hide(&store);
    }
}

/// A line for people without the passwords of `user:password@host` and `password=...` in it,
/// wherever they come from.
fn without_user_info(line: &str) -> String {
    line.split_inclusive(char::is_whitespace)
        .map(|word| match may_hold_password(word) {
            true => in_word(word),
            false => Cow::Borrowed(word),
        })
        .collect()
}

fn in_word(word: &str) -> Cow<'_, str> {
    if let Some((before, after)) = word.rsplit_once('@') {
        let start = before.find("//").map_or(0, |at| at + 2);
        return match before[start..].find([':', '/']) {
            Some(at) => Cow::Owned(format!("{}:\u{2026}@{after}", &before[..start + at])),
            None => Cow::Borrowed(word),
        };
    }
    // `//user:password`: no port is shown either.
    if let Some(start) = word.find("//").map(|at| at + 2)
        && let Some(at) = word[start..].find(':')
    {
        let end = word.trim_end().len();
        return Cow::Owned(format!("{}:\u{2026}{}", &word[..start + at], &word[end..]));
    }
    let lower = word.to_ascii_lowercase();
    let keys = ["password=", "passwd=", "pwd="];
    match keys.iter().find_map(|key| Some(lower.find(key)? + key.len())) {
        Some(at) if word.is_char_boundary(at) && !word[at..].trim().is_empty() => Cow::Owned(format!(
            "{}\u{2026}{}",
            &word[..at],
            &word[word.trim_end().len()..]
        )),
        _ => Cow::Borrowed(word),
    }
}

/// Says what is wrong with a command line, or prints the help that it asks for.
#[expect(
    clippy::disallowed_methods,
    reason = "help is our own text, in the colours of the parser"
)]
pub(crate) fn command_line(error: &clap::Error) {
    if !error.use_stderr() {
        let _ = error.print();
        return;
    }
    let is_plain = secrets().0.is_empty();
    err_page!(
        "{}",
        if is_plain {
            error.render().to_string().trim_end().to_owned()
        } else {
            in_general(error)
        }
    );
}

/// What is wrong with a command line without quoting any of it: pieces of a password could be
/// anywhere.
fn in_general(error: &clap::Error) -> String {
    let what = error.kind().as_str().unwrap_or("the command line cannot be read");
    let is_users = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    );
    let place = error.get(ContextKind::InvalidArg).filter(|_| !is_users);
    let place = place.map_or_else(String::new, |place| format!(": {place}"));
    let usage = error.get(ContextKind::Usage);
    let usage = usage.map_or_else(String::new, |usage| format!("\n\n{usage}"));
    format!(
        "error: {what}{place} (arguments are not shown: one of them may hold a password){usage}\n\nFor more information, try '--help'."
    )
}

/// Prints the message of a panic, which may quote anything, as everything else is printed.
pub(crate) fn take_panics() {
    std::panic::set_hook(Box::new(|info| {
        err_page!("{info}");
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            err_page!("{trace}");
        }
    }));
}

/// The message beside a bar of progress.
#[expect(clippy::disallowed_methods, reason = "this is the one way out")]
pub(crate) fn show_beside(bar: &ProgressBar, text: &str) {
    let text = cell(&secrets().hidden(text)).replace('\t', " ");
    bar.set_message(text);
}

/// Cleans a screen that is about to be drawn.
pub(crate) fn clean_screen(screen: &mut Buffer) {
    for cell in &mut screen.content {
        if cell.symbol().contains(|c| is_obeyed(c) || c.is_control()) {
            cell.set_symbol("\u{fffd}");
        }
    }
}

/// Standard output for formats that programs read: bytes as they are, but for a terminal, which
/// gets them cleaned.
pub(crate) struct Data {
    out: io::Stdout,
    is_cleaned: bool,
    /// Bytes of a character that is not whole yet.
    rest: Vec<u8>,
}

/// Standard output for a format that programs read.
pub(crate) fn data() -> Data {
    Data {
        out: standard_output(),
        is_cleaned: data_is_seen(),
        rest: Vec::new(),
    }
}

/// Standard output for JSON, which stays the same value when it is cleaned.
pub(crate) fn json_data() -> Data {
    Data {
        is_cleaned: true,
        ..data()
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_cleaned {
            return self.out.write(bytes);
        }
        self.rest.extend_from_slice(bytes);
        self.out.write_all(seen(&mut self.rest).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Takes whole characters out of `bytes`, cleaned; what is not UTF-8 becomes U+FFFD. A carriage
/// return before a new line is CSV's.
fn seen(bytes: &mut Vec<u8>) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Its new line may still come.
        _ => bytes.len() - usize::from(bytes.last() == Some(&b'\r')),
    };
    let taken: Vec<u8> = bytes.drain(..whole).collect();
    clean(&String::from_utf8_lossy(&taken).replace("\r\n", "\n")).into_owned()
}

/// A file for its owner alone, for what may hold the statements and settings of a server. One that
/// is there keeps its mode.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    pgdyno_host::given_output(path, 0o600)
}

#[cfg(test)]
mod tests;
