//! Texts that people write or that other programs leave: experiments, profiles, scripts,
//! expressions, journals, output.

use super::input::{choice, halves, text};
use pgdyno_advice::{Expression, Files, Known, Now, Profiles, Template};
use pgdyno_engine::Protocol;
use pgdyno_host::Fact;
use pgdyno_knobs::{Catalogue, parse_journal};
use pgdyno_lab::compare::{Gate, Reference};
use pgdyno_lab::{ExperimentFile, sized};
use pgdyno_server::shown_statement;
use pgdyno_workload::{
    ForeignFormat, ForeignOutput, ForeignSecond, ForeignStream, Script, Scripts, command_words,
    foreign_formats, makes_objects,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().expect("the catalogue"));
static PROFILES: LazyLock<Profiles> = LazyLock::new(|| Profiles::shipped().expect("the profiles"));
static FORMATS: LazyLock<Vec<ForeignFormat>> = LazyLock::new(|| foreign_formats().expect("the formats"));

/// A reference and a gate of any text are one or an error, and what is written of one is read as
/// the same.
pub(super) fn comparison(bytes: &[u8]) {
    let text = text(bytes);
    match text.parse::<Gate>() {
        Ok(gate) => assert_eq!(gate.to_string().parse().as_ref(), Ok(&gate)),
        Err(error) => drop(error.to_string()),
    }
    match text.parse::<Reference>() {
        Ok(reference) => assert_eq!(reference.to_string().parse().as_ref(), Ok(&reference)),
        Err(error) => drop(error.to_string()),
    }
}

/// An answer of an optimizer is a choice or an error.
pub(super) fn optimizer_answer(bytes: &[u8]) {
    pgdyno_lab::fuzzed::chosen(&text(bytes));
}

/// An experiment file of any text is an experiment or an error with a line.
pub(super) fn experiment_file(bytes: &[u8]) {
    let (text, path) = (text(bytes), Path::new("x"));
    let keys = ["load.clients=2".to_owned(), text.chars().take(40).collect()];
    let with_size = sized(&text, path, Some("night"), &keys);
    for text in [Ok(text.to_string()), with_size] {
        if let Err(error) = text.and_then(|text| ExperimentFile::parse(&text, path, &CATALOGUE)) {
            assert!(error.to_string().starts_with("x, line "));
        }
    }
}

/// Expressions and sentences of any text give values or errors, and never a number that is none.
pub(super) fn expressions(bytes: &[u8]) {
    let text = text(bytes);
    let facts = [
        Fact::known("memory.total_bytes", "x", 17_179_869_184_u64),
        Fact::known("thp.enabled", "x", "madvise"),
        Fact::known("databases", "x", json!([{"name": "a", "bytes": 5}])),
        Fact::unknown("cpu.governor", "x", "none"),
    ];
    let known = Known::new(&facts, &[]);
    match Expression::parse(&text).and_then(|expression| expression.evaluate(&known)) {
        Ok(Value::Number(number)) => assert!(number.as_f64().is_some_and(f64::is_finite)),
        Ok(_) => {}
        Err(error) => drop(error.to_string()),
    }
    if let Ok(template) = Template::parse(&text) {
        let _ = template.render(&known);
    }
}

const FILE: &str = "profile.toml";

/// A file that inherits from itself, if from any.
struct Given<'a>(&'a [u8]);

impl Files for Given<'_> {
    fn full_name(&self, path: &Path) -> Option<PathBuf> {
        path.ends_with(FILE).then(|| PathBuf::from(FILE))
    }

    fn bytes(&self, path: &Path, _: u64) -> Result<Vec<u8>, String> {
        let found = self.full_name(path).map(|_| self.0.to_vec());
        found.ok_or_else(|| "it is not there".to_owned())
    }
}

/// A profile file of any content is a profile or an error, and what is worked out of it names knobs
/// of the catalogue.
pub(super) fn profile_file(bytes: &[u8]) {
    let mut profiles = PROFILES.clone();
    if let Err(error) = profiles.open(FILE, &Given(bytes)) {
        drop(error.to_string());
        return;
    }
    let known = Known::new(&[Fact::known("memory.total_bytes", "x", 1_u64 << 34)], &[]);
    let now = |_: &str| Now::Is("1GB".to_owned());
    match profiles.resolve(FILE, &known, &CATALOGUE, Some(18), &now) {
        Ok(resolved) => {
            let mut settings = resolved.to_apply().into_iter();
            assert!(settings.all(|setting| CATALOGUE.check(&setting).is_ok()));
        }
        Err(error) => drop(error.to_string()),
    }
}

/// pgbench's scripts: any text is a program or an error with its place.
pub(super) fn scripts(bytes: &[u8]) {
    let (prepared, rest) = choice(bytes);
    let text = text(rest).into_owned();
    let lines = text.lines().count().max(1);
    // Whether it makes objects is asked of any text too, for figures are SQL alone.
    makes_objects(&text);
    let scripts = Scripts {
        scripts: vec![Script {
            name: "a.sql".into(),
            text,
            weight: 1,
        }],
        variables: Vec::new(),
        allow_shell: true,
    };
    let protocol = match prepared % 2 {
        0 => Protocol::Simple,
        _ => Protocol::Prepared,
    };
    if let Err(error) = scripts.check(protocol) {
        // A newline at the end begins one more line.
        let is_there = (1..=lines + 1).contains(&error.line) && error.column >= 1;
        assert!(is_there, "{error}");
    }
}

/// Statements of any text can be shown: they are short, and what was in quotes is gone.
pub(super) fn statements(bytes: &[u8]) {
    /// Letters that are in no word of SQL.
    const SECRET: &str = "hunter2qzx";
    /// What is shown of a text, with the sign that it goes on.
    const CHARS_MAX: usize = 301;
    let (statement, secret) = halves(bytes);
    let (statement, secret) = (text(statement), text(secret));
    let shown = shown_statement(&statement);
    assert!(shown.chars().count() <= CHARS_MAX, "{statement}");
    // Quotes within are doubled, and a backslash would take away the end.
    let inner = secret.replace('\\', "").replace('\'', "''");
    let quoted = format!("{SECRET}{inner}{SECRET}");
    let shown = shown_statement(&format!("SELECT '{quoted}', E'{quoted}', 1"));
    assert_eq!(shown, "SELECT ?, E?, ?", "{secret}");
}

/// A journal of any bytes is read, cut off or refused, with a copy too; what is read once is read
/// again from its whole part.
pub(super) fn journal(bytes: &[u8]) {
    let path = Path::new("1-2.journal");
    if let Ok(content) = parse_journal(bytes, path)
        && content.damage.is_empty()
    {
        let whole = usize::try_from(content.whole_bytes).expect("its own length");
        let again = parse_journal(&bytes[..whole], path).expect("readable");
        assert_eq!(again.entries, content.entries);
    }
    let (journal, copy) = halves(bytes);
    for (journal, copy) in [
        (Some(journal), Some(copy)),
        (None, Some(bytes)),
        (Some(bytes), Some(bytes)),
    ] {
        pgdyno_knobs::fuzzed::journal_with_copy(journal, copy);
    }
}

/// Output of other programs and the formats that read it: any bytes, however they come, are figures
/// that can be.
pub(super) fn foreign_output(bytes: &[u8]) {
    let (which, rest) = choice(bytes);
    let (format, output) = halves(rest);
    let format = text(format);
    let _ = command_words(&format);
    let own = ForeignFormat::parse(&format, "fuzz").unwrap_or_default();
    let formats: Vec<&ForeignFormat> = own.iter().chain(FORMATS.iter()).collect();
    let format = formats[usize::from(which) % formats.len()];
    let mut read = ForeignOutput::new(format, 2.0, false, Some("sekret".into()));
    let mut end_s = 0.0;
    let mut on_second = |second: &ForeignSecond| {
        assert!(second.length_s > 0.0 && second.t_s > end_s && second.tps >= 0.0);
        end_s = second.t_s;
    };
    for (at, piece) in (0_u32..).zip(output.chunks(31)) {
        let stream = match at % 2 {
            0 => ForeignStream::Out,
            _ => ForeignStream::Err,
        };
        read.read(stream, piece, f64::from(at), &mut on_second);
    }
    let figures = read.finish(100.0, &mut on_second);
    assert!(figures.tps.is_none_or(|tps| tps.is_finite() && tps >= 0.0));
    assert!(figures.last_lines.len() <= 20);
    let mut lines = figures.last_lines.iter();
    assert!(lines.all(|line| !line.contains("sekret")));
}

/// The mark of a copy of a sandbox of any text.
pub(super) fn copy_mark(bytes: &[u8]) {
    pgdyno_sandbox::fuzzed::copy_mark(&text(bytes));
}

/// What is written down of a pooler, of any text.
pub(super) fn pooler_mark(bytes: &[u8]) {
    pgdyno_sandbox::fuzzed::pooler_mark(&text(bytes));
}

/// The first line of a journal's copy in the registry, and another user's notice, of any bytes.
pub(super) fn registry_header(bytes: &[u8]) {
    pgdyno_knobs::fuzzed::registry_header(bytes);
    pgdyno_knobs::fuzzed::notice(bytes);
}

/// An inventory of hosts, which a user names.
pub(super) fn inventory(bytes: &[u8]) {
    pgdyno_remote::fuzzed::inventory(bytes);
}
