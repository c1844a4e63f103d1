//! What the settings show: which are changed, hidden or waiting, and facts that are settings
//! themselves.

use super::ask::Signs;
use super::scrub::{HIDDEN, may_hold_a_secret};
use crate::lists::names_in;
use crate::settings::Guc;
use crate::version::Version;
use pgdyno_host::Fact;
use serde::Deserialize;
use serde_json::{Value, json};

const SOURCE: &str = "pg_settings";
/// Since when the server itself reports whether it has its huge pages.
const HUGE_PAGES_STATUS_SINCE: u32 = 17;

/// A row of pg_settings.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Setting {
    #[serde(flatten)]
    pub(super) guc: Guc,
    /// The file that it comes from; only some roles may know.
    file: Option<String>,
    line: Option<u32>,
    /// What an enum may be: it depends on how the server was built.
    choices: Option<Vec<String>>,
    /// Why the server's value is unknown, where this session's hides it.
    #[serde(skip)]
    unknown: Option<String>,
}

/// How a setting is written as a fact.
#[derive(Debug, Clone, Copy)]
enum As {
    Text,
    Number,
    Bytes,
    OnOff,
}

/// Facts that are settings: name, setting, since which version, and how.
const FACTS: &[(&str, &str, u32, As)] = &[
    ("server.data_directory", "data_directory", 0, As::Text),
    ("server.data_checksums", "data_checksums", 0, As::OnOff),
    ("server.block_bytes", "block_size", 0, As::Number),
    ("server.wal_segment_bytes", "wal_segment_size", 0, As::Bytes),
    ("server.io_method", "io_method", 18, As::Text),
    ("connections.max", "max_connections", 0, As::Number),
    (
        "connections.reserved_for_superusers",
        "superuser_reserved_connections",
        0,
        As::Number,
    ),
    ("connections.reserved", "reserved_connections", 16, As::Number),
    ("shared_memory.buffers_bytes", "shared_buffers", 0, As::Bytes),
    ("shared_memory.bytes", "shared_memory_size", 15, As::Bytes),
    ("shared_memory.type", "shared_memory_type", 0, As::Text),
    ("huge_pages.setting", "huge_pages", 0, As::Text),
    (
        "huge_pages.needed",
        "shared_memory_size_in_huge_pages",
        15,
        As::Number,
    ),
    ("jit.enabled", "jit", 0, As::OnOff),
    ("jit.above_cost", "jit_above_cost", 0, As::Number),
    ("wal.level", "wal_level", 0, As::Text),
    ("statements.max", "pg_stat_statements.max", 0, As::Number),
];

/// All settings as far as the role may see them, or why there are none.
pub(super) struct Settings<'a> {
    pub(super) all: &'a Result<Vec<Setting>, String>,
    pub(super) signs: &'a Signs,
    pub(super) version: Version,
}

impl Settings<'_> {
    pub(super) fn find(&self, name: &str) -> Option<&Setting> {
        self.known().find(|s| s.guc.name == name)
    }

    /// Those whose value is the server's, not this session's.
    fn known(&self) -> impl Iterator<Item = &Setting> {
        self.all.iter().flatten().filter(|s| s.unknown.is_none())
    }

    /// A value as the server holds it.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.find(name).map(|s| s.guc.setting.as_str())
    }

    /// Whether a setting may be this: `None` where the version has no such setting.
    pub(super) fn offers(&self, name: &str, choice: &str) -> Option<bool> {
        let choices = self.find(name)?.choices.as_ref()?;
        Some(choices.iter().any(|c| c == choice))
    }

    /// Why a setting is not among them.
    fn missing(&self, name: &str, since: u32) -> String {
        let major = self.version.major;
        let hidden = self.all.iter().flatten().find(|s| s.guc.name == name);
        if let Some(why) = hidden.and_then(|s| s.unknown.as_ref()) {
            return why.clone();
        }
        match self.all {
            Err(why) => why.clone(),
            Ok(_) if major < since => format!("PostgreSQL {major} does not report it; {since} and later do"),
            Ok(_) if name.contains('.') => format!("no library with the setting {name} is loaded"),
            Ok(_) if !self.signs.settings => format!(
                "the role {} may not read it; {} gives the right",
                self.signs.role,
                self.signs.grant("pg_monitor")
            ),
            Ok(_) => format!("the server does not show the setting {name}"),
        }
    }

    /// All facts that the settings give.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = FACTS.iter().map(|fact| self.fact(*fact)).collect();
        facts.push(self.huge_pages_status());
        facts.push(self.huge_page_bytes());
        facts.push(self.preloaded());
        facts.push(Fact::new("settings.unknown", SOURCE, self.unknown()));
        let rows = |chosen: &dyn Fn(&Setting) -> Value, which: &dyn Fn(&Setting) -> bool| {
            let all = self.all.as_ref().map_err(String::as_str)?;
            let rows: Vec<Value> = all.iter().filter(|s| which(s)).map(chosen).collect();
            Ok::<_, &str>(rows)
        };
        facts.push(Fact::new(
            "settings.changed",
            SOURCE,
            rows(&shown, &Setting::is_changed),
        ));
        facts.push(Fact::new(
            "settings.pending_restart",
            SOURCE,
            rows(&|s| json!(s.guc.name), &|s| s.guc.pending_restart),
        ));
        facts
    }

    fn fact(&self, (name, setting, since, how): (&str, &str, u32, As)) -> Fact {
        let value = match self.find(setting) {
            None => Err(self.missing(setting, since)),
            Some(found) => found.value_as(how),
        };
        Fact::new(name, SOURCE, value)
    }

    /// Names with the reason.
    fn unknown(&self) -> Result<Vec<Value>, &str> {
        let all = self.all.as_ref().map_err(String::as_str)?;
        let row = |setting: &Setting| {
            let why = setting.unknown.as_ref()?;
            Some(json!({ "name": setting.guc.name, "why": why }))
        };
        Ok(all.iter().filter_map(row).collect())
    }

    fn huge_pages_status(&self) -> Fact {
        let major = self.version.major;
        if major >= HUGE_PAGES_STATUS_SINCE || self.all.is_err() {
            let status = (
                "huge_pages.status",
                "huge_pages_status",
                HUGE_PAGES_STATUS_SINCE,
                As::Text,
            );
            return self.fact(status);
        }
        let setting = self.value("huge_pages").unwrap_or("unknown");
        let value = match setting {
            // With "on" the server does not start without them.
            "on" | "off" => Ok(setting.to_owned()),
            _ => Err(format!(
                "huge_pages is \"{setting}\", and PostgreSQL {major} does not report the outcome; \
                 {HUGE_PAGES_STATUS_SINCE} and later do, and so do the mappings of the postmaster on its host"
            )),
        };
        Fact::new("huge_pages.status", SOURCE, value)
    }

    fn huge_page_bytes(&self) -> Fact {
        let (name, setting, since) = ("huge_pages.page_bytes", "huge_page_size", 14);
        let fact = self.fact((name, setting, since, As::Bytes));
        if fact.value == Some(json!(0)) {
            let why = "huge_page_size is 0: the default size of the host's kernel is used";
            return Fact::unknown(name, SOURCE, why);
        }
        fact
    }

    fn preloaded(&self) -> Fact {
        let name = "shared_preload_libraries";
        let value = self.value(name).map(|text| {
            let names = names_in(name, text).into_iter();
            names.map(Value::String).collect::<Vec<_>>()
        });
        Fact::new(
            "extensions.preloaded",
            SOURCE,
            value.ok_or_else(|| self.missing(name, 0)),
        )
    }

    /// What other parts get: every setting, without secrets.
    pub(super) fn gucs(&self) -> Vec<Guc> {
        self.known()
            .map(|setting| {
                let mut guc = setting.guc.clone();
                if may_hold_a_secret(&guc.name) && !guc.setting.is_empty() {
                    HIDDEN.clone_into(&mut guc.shown);
                    HIDDEN.clone_into(&mut guc.setting);
                    guc.boot_value = None;
                }
                guc
            })
            .collect()
    }
}

/// What the files hold of [`AT_START`]: rows of name, value, file and line. The answer of a
/// statement, and no fact.
pub(super) const START_IN_FILES: &str = "settings.start_in_files";

/// What the driver sends every server at the start of a session, and where a session that sends
/// nothing has it from.
const AT_START: [(&str, Plainly); 2] = [
    ("application_name", Plainly::BootValue),
    ("client_encoding", Plainly::EncodingOfDatabase),
];

#[derive(Debug, Clone, Copy)]
enum Plainly {
    BootValue,
    EncodingOfDatabase,
}

/// The value that a role or database has for a setting, and its source as the server names it: of
/// several that of the role in the database, of the role, of the database, of all.
fn hidden_value<'h>(
    hidden: &'h Value,
    name: &str,
    user: &str,
    database: Option<&str>,
) -> Option<(&'h str, &'static str)> {
    let fits = |row: &&Value| {
        let same = |field: &str, ours: Option<&str>| row[field].is_null() || row[field].as_str() == ours;
        let named = row["name"]
            .as_str()
            .is_some_and(|known| known.eq_ignore_ascii_case(name));
        named && same("role", Some(user)) && same("database", database)
    };
    let rows = hidden.as_array()?.iter().filter(fits);
    let closest = rows.min_by_key(|row| (row["role"].is_null(), row["database"].is_null()))?;
    let source = match (closest["role"].is_null(), closest["database"].is_null()) {
        (false, false) => "database user",
        (false, true) => "user",
        (true, false) => "database",
        (true, true) => "global",
    };
    Some((closest["value"].as_str()?, source))
}

/// What a session has that sends neither a name, an encoding nor options at its start.
pub(super) struct WithoutStart<'a> {
    /// What roles and databases have set, and what the files hold of [`AT_START`], or why it is
    /// unknown.
    pub(super) hidden: Result<&'a Value, &'a str>,
    pub(super) files: Result<&'a Value, &'a str>,
    pub(super) user: &'a str,
    pub(super) database: Option<&'a str>,
    pub(super) encoding: Option<&'a str>,
}

/// A value below the start's.
struct Below {
    value: String,
    source: &'static str,
    file: Option<String>,
    line: Option<u32>,
}

impl WithoutStart<'_> {
    /// What this connection's start has set becomes what a session without it has, or unknown. The
    /// server's command line cannot be seen through the start's value, and is taken for nothing.
    pub(super) fn mend(&self, setting: &mut Setting) {
        if setting.guc.source != "client" {
            return;
        }
        let known = AT_START.iter().find(|(name, _)| *name == setting.guc.name);
        let found = match known {
            Some((_, plainly)) => self.below(&setting.guc, *plainly),
            None => Err(
                "the options of pgdyno's session (PGOPTIONS, or options= of the connection string) set it, which hides \
                 the server's value"
                    .to_owned(),
            ),
        };
        match found {
            Ok(below) => {
                setting.guc.shown.clone_from(&below.value);
                setting.guc.setting = below.value;
                below.source.clone_into(&mut setting.guc.source);
                (setting.file, setting.line) = (below.file, below.line);
            }
            Err(why) => setting.unknown = Some(why),
        }
    }

    fn below(&self, guc: &Guc, plainly: Plainly) -> Result<Below, String> {
        let hides = |why: &str| format!("pgdyno's own value hides it, and what is below is unknown: {why}");
        let hidden = self.hidden.map_err(hides)?;
        if let Some((value, source)) = hidden_value(hidden, &guc.name, self.user, self.database) {
            return Ok(Below {
                value: value.to_owned(),
                source,
                file: None,
                line: None,
            });
        }
        let files = self.files.map_err(hides)?;
        let rows = files.as_array().into_iter().flatten();
        if let Some(row) = rows.into_iter().find(|row| row["name"] == guc.name.as_str()) {
            return Ok(Below {
                value: row["value"].as_str().unwrap_or_default().to_owned(),
                source: "configuration file",
                file: row["file"].as_str().map(str::to_owned),
                line: row["line"].as_u64().and_then(|line| u32::try_from(line).ok()),
            });
        }
        let value = match plainly {
            Plainly::BootValue => guc.boot_value.as_deref(),
            Plainly::EncodingOfDatabase => self.encoding,
        };
        let value = value.ok_or_else(|| hides("the server does not show its default"))?;
        Ok(Below {
            value: value.to_owned(),
            source: "default",
            file: None,
            line: None,
        })
    }
}

impl Setting {
    /// Differs from what the server starts with when nothing is set, or waits for a restart. What
    /// this connection has set for itself is nobody's.
    fn is_changed(&self) -> bool {
        let guc = &self.guc;
        let ours = ["default", "override", "client", "session"].contains(&guc.source.as_str());
        (!ours && Some(&guc.setting) != guc.boot_value.as_ref()) || guc.pending_restart
    }

    fn value_as(&self, how: As) -> Result<Value, String> {
        let text = &self.guc.setting;
        let not_a_number = || format!("{} is \"{text}\", which is not a number", self.guc.name);
        match how {
            As::Text => Ok(json!(text)),
            As::OnOff => Ok(json!(text == "on")),
            As::Number => {
                let whole = text.parse::<i64>().map(|n| json!(n));
                whole
                    .or_else(|_| text.parse::<f64>().map(|n| json!(n)))
                    .map_err(|_| not_a_number())
            }
            As::Bytes => bytes(text, self.guc.unit.as_deref())
                .map(|n| json!(n))
                .ok_or_else(not_a_number),
        }
    }
}

/// "16384" of "8kB" in bytes.
fn bytes(setting: &str, unit: Option<&str>) -> Option<u64> {
    let unit = unit.unwrap_or("B");
    let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let times: u64 = match &unit[..digits] {
        "" => 1,
        number => number.parse().ok()?,
    };
    let scale: u64 = match &unit[digits..] {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    setting
        .parse::<u64>()
        .ok()?
        .checked_mul(times)?
        .checked_mul(scale)
}

fn shown(setting: &Setting) -> Value {
    let guc = &setting.guc;
    let hidden = may_hold_a_secret(&guc.name);
    let file = setting.file.as_ref().map(|file| match setting.line {
        Some(line) => format!("{file}:{line}"),
        None => file.clone(),
    });
    json!({
        "name": guc.name,
        "value": if hidden { HIDDEN } else { &guc.shown },
        "setting": if hidden { HIDDEN } else { &guc.setting },
        "unit": guc.unit,
        "boot_value": guc.boot_value.as_ref().filter(|_| !hidden),
        "source": guc.source,
        "context": guc.context,
        "pending_restart": guc.pending_restart,
        "file": file,
    })
}

/// Settings of roles and databases, those that may hold a secret without their value.
pub(super) fn without_secrets(rows: &mut Value) {
    for row in rows.as_array_mut().into_iter().flatten() {
        if row["name"].as_str().is_some_and(may_hold_a_secret) {
            row["value"] = json!(HIDDEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_become_bytes() {
        for (setting, unit, expected) in [
            ("16384", Some("8kB"), Some(134_217_728)),
            ("2", Some("MB"), Some(2_097_152)),
            ("512", None, Some(512)),
            ("16777216", Some("B"), Some(16_777_216)),
            ("3", Some("ms"), None),
            ("-1", Some("kB"), None),
            ("99999999999999999999", Some("kB"), None),
        ] {
            assert_eq!(bytes(setting, unit), expected, "{setting} {unit:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(setting in "\\PC{0,12}", unit in proptest::option::of("[0-9]{0,22}\\PC{0,3}")) {
            bytes(&setting, unit.as_deref());
        }
    }
}
