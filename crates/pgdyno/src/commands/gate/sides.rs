//! The two sides of a gate: builds of PostgreSQL, files of settings, or schema scripts.

use crate::failure::{InContext as _, Result, Usage};
use crate::paths::absolute;
use pgdyno_host::given_text;
use pgdyno_knobs::Catalogue;
use pgdyno_server::{autoconf, may_hold_password};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a side is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Directory of initdb, pg_ctl and postgres.
    Build(PathBuf),
    /// Name and value of each parameter.
    Settings(BTreeMap<String, String>),
    /// SQL.
    Schema(String),
}

/// A side of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    /// The path as it was given.
    pub(super) shown: String,
    pub(super) kind: Kind,
}

/// Both sides, which are of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) base: Side,
    pub(super) head: Side,
}

/// Where a server is and who reaches it: every private server has its own.
const PLACES: [&str; 9] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
];

impl Sides {
    pub(super) fn read(base: &Path, head: &Path, catalogue: &Catalogue) -> Result<Sides> {
        let mut sides = Sides {
            base: side(base)?,
            head: side(head)?,
        };
        let kinds = [&sides.base.kind, &sides.head.kind].map(Kind::name);
        if kinds[0] != kinds[1] {
            let message = format!(
                "BASE is {} and HEAD is {}; expected two of one kind",
                kinds[0], kinds[1]
            );
            return Err(Usage(message).into());
        }
        if let (Kind::Settings(base), Kind::Settings(head)) = (&mut sides.base.kind, &mut sides.head.kind) {
            // Those that both have alike and nobody tries, such as names of months, make no
            // difference.
            let alike = base
                .iter()
                .filter(|(name, value)| head.get(*name) == Some(*value));
            let unknown = alike.filter(|(name, _)| catalogue.find(name).is_none());
            let passed_over: Vec<String> = unknown.map(|(name, _)| name.clone()).collect();
            for settings in [base, head] {
                settings.retain(|name, _| !passed_over.contains(name) && !PLACES.contains(&name.as_str()));
            }
        }
        Ok(sides)
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Build(_) => "a build of PostgreSQL",
            Kind::Settings(_) => "a file of settings",
            Kind::Schema(_) => "a schema script",
        }
    }
}

fn side(path: &Path) -> Result<Side> {
    let shown = path.display().to_string();
    let extension = path.extension().and_then(|extension| extension.to_str());
    let text = || given_text(path).with_context(|| format!("{shown} could not be read"));
    let kind = match extension {
        _ if path.is_dir() => Kind::Build(build(path)?),
        Some("conf") => Kind::Settings(settings(&text()?, &shown)?),
        Some("sql") => Kind::Schema(text()?),
        _ => {
            let message = format!(
                "{shown}: expected a directory of PostgreSQL's programs, a file of settings (*.conf) or a schema script (*.sql)"
            );
            return Err(Usage(message).into());
        }
    };
    Ok(Side { shown, kind })
}

/// The directory of the programs: the one that was named, or its `bin`.
fn build(path: &Path) -> Result<PathBuf> {
    let places = [path.to_owned(), path.join("bin")];
    let found = places.iter().find(|place| place.join("postgres").is_file());
    let found = found.ok_or_else(|| {
        let shown = path.display();
        Usage(format!("there is no program postgres in {shown} or {shown}/bin"))
    })?;
    Ok(absolute(found))
}

/// The settings of a file as postgresql.conf is.
fn settings(text: &str, shown: &str) -> Result<BTreeMap<String, String>> {
    let wrong = |number: usize, message: &str| Usage(format!("{shown}, line {}: {message}", number + 1));
    let mut settings = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let is_blank = line.trim().is_empty() || line.trim_start().starts_with('#');
        if is_blank {
            continue;
        }
        let (name, value) = autoconf::setting_of(line)
            .ok_or_else(|| wrong(number, "expected NAME = VALUE, as in postgresql.conf"))?;
        let name = name.to_ascii_lowercase();
        if name.starts_with("include") {
            return Err(wrong(
                number,
                "files that are included are not read; name the settings themselves",
            )
            .into());
        }
        if may_hold_password(&value) {
            let message =
                format!("{name} seems to hold a password, and settings are stored with the results");
            return Err(wrong(number, &message).into());
        }
        settings.insert(name, value);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_what_is_none_is_named_with_its_line() {
        let found = settings("# tuned\nWork_Mem = 64MB # more\n\njit off\n", "a.conf").unwrap();
        let expected = [("jit", "off"), ("work_mem", "64MB")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
        for (text, expected) in [
            ("jit = off\nwork_mem\n", "a.conf, line 2: expected NAME = VALUE"),
            ("include_dir = 'conf.d'\n", "line 1: files that are included"),
            ("INCLUDE 'tuned.conf'\n", "line 1: files that are included"),
            (
                "primary_conninfo = 'host=a password=secret'\n",
                "line 1: primary_conninfo seems to hold a password",
            ),
        ] {
            let error = settings(text, "a.conf").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn sides_are_of_one_kind_and_a_build_is_found_by_its_programs() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        std::fs::write(place("a.conf"), "jit = off\n").unwrap();
        std::fs::write(place("a.sql"), "CREATE INDEX ON pgbench_accounts (bid);\n").unwrap();
        std::fs::write(place("a.txt"), "").unwrap();
        std::fs::create_dir_all(place("build/bin")).unwrap();
        let catalogue = Catalogue::shipped().unwrap();
        let read = |base: &str, head: &str| Sides::read(&place(base), &place(head), &catalogue);
        let error = |base: &str, head: &str| read(base, head).unwrap_err().to_string();
        assert!(error("a.conf", "a.sql").contains("BASE is a file of settings and HEAD is a schema script"));
        assert!(error("a.txt", "a.sql").contains("expected a directory"));
        assert!(error("no.conf", "a.conf").contains("no.conf could not be read"));
        assert!(error("build", "a.conf").contains("there is no program postgres"));
        std::fs::write(place("build/bin/postgres"), "").unwrap();
        let sides = read("build", "build/bin").unwrap();
        assert_eq!(sides.base.kind, sides.head.kind);
        let own = "port = 5433\nlc_messages = 'C'\nno_such = 1\n";
        std::fs::write(place("b.conf"), format!("{own}work_mem = 8MB\n")).unwrap();
        std::fs::write(place("h.conf"), format!("{own}no_such = 2\nwork_mem = 9MB\n")).unwrap();
        let sides = read("b.conf", "h.conf").unwrap();
        let Kind::Settings(head) = sides.head.kind else {
            panic!("no settings");
        };
        let names: Vec<&str> = head.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["no_such", "work_mem"],
            "what differs and is not known is an error of the file's"
        );
    }
}
