//! How far a server is behind PostgreSQL's releases, by the dated table of them
//! (catalog/releases.toml) and the server's own clock.

use super::time::utc_s;
use super::{Index, Outcome};
use serde::Deserialize;
use serde_json::json;
use std::sync::LazyLock;

/// A table that is older knows no newest release: there are four a year.
const AGE_MAX_S: f64 = 365.25 * 86_400.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    known_on: String,
    release: Vec<Release>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    major: u64,
    newest_minor: u64,
    support_ends: String,
}

static TABLE: LazyLock<Result<Table, String>> = LazyLock::new(|| {
    let text = include_str!("../../catalog/releases.toml");
    toml::from_str(text).map_err(|error| format!("catalog/releases.toml: {error}"))
});

/// The fact `server.release`: what it is, and whether it is supported.
pub(super) fn of(index: &Index) -> Outcome {
    let (table, looked) = (table()?, Looked::of(index)?);
    looked.support(table)
}

/// The fact `server.release.newest`.
pub(super) fn newest(index: &Index) -> Outcome {
    let (table, looked) = (table()?, Looked::of(index)?);
    let release = looked.newest(table)?;
    Ok(json!(format!("{}.{}", release.major, release.newest_minor)))
}

/// The fact `server.release.behind`: by how many minor releases.
pub(super) fn behind(index: &Index) -> Outcome {
    let (table, looked) = (table()?, Looked::of(index)?);
    let release = looked.newest(table)?;
    Ok(json!(release.newest_minor.saturating_sub(looked.minor)))
}

fn table() -> Result<&'static Table, String> {
    TABLE.as_ref().map_err(Clone::clone)
}

/// A server, and what time it is there.
struct Looked {
    major: u64,
    minor: u64,
    now_s: f64,
}

impl Looked {
    fn of(index: &Index) -> Result<Looked, String> {
        let version = index
            .get("setting.server_version_num")
            .or_else(|_| index.get("server.version_num"))?;
        let version = version.as_u64().ok_or("the server's version is not a number")?;
        let started = index.get("server.started")?;
        let started_s = started.as_str().and_then(utc_s);
        let started_s =
            started_s.ok_or_else(|| format!("server.started is not an instant in UTC: {started}"))?;
        let uptime_s = index.get("server.uptime_s")?;
        Ok(Looked {
            major: version / 10_000,
            minor: version % 10_000,
            now_s: started_s + uptime_s.as_f64().ok_or("server.uptime_s is not a number")?,
        })
    }

    fn release<'t>(&self, table: &'t Table) -> Result<&'t Release, String> {
        let mut releases = table.release.iter();
        releases
            .find(|release| release.major == self.major)
            .ok_or_else(|| {
                let Looked { major, .. } = self;
                format!(
                    "PostgreSQL {major} is not in the table of releases of {}",
                    table.known_on
                )
            })
    }

    fn support(&self, table: &Table) -> Outcome {
        let release = self.release(table)?;
        Ok(json!({
            "version": format!("{}.{}", self.major, self.minor),
            "known_on": table.known_on,
            "support_ends": release.support_ends,
            "is_supported": self.now_s < day_s(&release.support_ends)? + 86_400.0,
        }))
    }

    /// The release with its newest minor one, where the table is not too old to know that.
    fn newest<'t>(&self, table: &'t Table) -> Result<&'t Release, String> {
        match self.now_s - day_s(&table.known_on)? > AGE_MAX_S {
            true => Err(format!(
                "the table of releases is of {}, more than a year before the server's clock; a newer pgdyno has a newer one",
                table.known_on
            )),
            false => self.release(table),
        }
    }
}

fn day_s(day: &str) -> Result<f64, String> {
    utc_s(&format!("{day}T00:00:00+00:00"))
        .ok_or_else(|| format!("catalog/releases.toml: \"{day}\" is not a day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of some version that has run for a day on that one.
    fn server(version: u64, day: &str) -> Looked {
        let facts = [
            ("server.version_num", json!(version)),
            ("server.started", json!(format!("{day}T12:00:00+00:00"))),
            ("server.uptime_s", json!(3600)),
        ];
        let facts = facts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Ok(value)));
        let index = Index {
            facts: facts.collect(),
            has_server: true,
        };
        Looked::of(&index).expect("a server")
    }

    fn dated() -> Table {
        let text = "known_on = \"2026-05-14\"\n[[release]]\nmajor = 17\nnewest_minor = 10\nsupport_ends = \"2029-11-08\"";
        toml::from_str(text).expect("a table")
    }

    #[test]
    fn newest_release_is_known_for_a_year() {
        let table = dated();
        let newest = |server: Looked| server.newest(&table).map(|release| release.newest_minor);
        assert_eq!(newest(server(170_007, "2026-06-01")), Ok(10));
        let other = newest(server(120_007, "2026-06-01")).unwrap_err();
        assert!(other.contains("not in the table"), "{other}");
        let late = newest(server(170_007, "2027-06-01")).unwrap_err();
        assert!(late.contains("of 2026-05-14, more than a year"), "{late}");
    }

    #[test]
    fn support_ends_with_its_last_day_whatever_the_table_s_age() {
        let table = dated();
        let supported =
            |day: &str| server(170_007, day).support(&table).expect("a release")["is_supported"].clone();
        assert_eq!(supported("2026-06-01"), json!(true));
        assert_eq!(supported("2029-11-08"), json!(true));
        assert_eq!(supported("2029-11-09"), json!(false));
    }

    #[test]
    fn the_shipped_table_is_whole() {
        let table = TABLE.as_ref().expect("the table");
        let majors: Vec<u64> = table.release.iter().map(|release| release.major).collect();
        assert_eq!(majors, [14, 15, 16, 17, 18, 19]);
        assert!(day_s(&table.known_on).is_ok());
        assert!(
            table
                .release
                .iter()
                .all(|release| day_s(&release.support_ends).is_ok())
        );
    }
}
