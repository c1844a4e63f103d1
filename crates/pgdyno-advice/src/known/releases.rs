//! How far a server is behind PostgreSQL's releases, by the dated table of them (catalog/releases.toml) and the server's own clock.

use super::time::utc_s;
use super::{Index, Outcome};
use serde::Deserialize;
use serde_json::json;
use std::sync::LazyLock;

/// A table that is older says nothing: there are four releases a year.
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

/// The fact `server.release`.
pub(super) fn of(index: &Index) -> Outcome {
    of_table(index, TABLE.as_ref().map_err(Clone::clone)?)
}

fn of_table(index: &Index, table: &Table) -> Outcome {
    let version = index
        .get("setting.server_version_num")
        .or_else(|_| index.get("server.version_num"))?;
    let version = version.as_u64().ok_or("the server's version is no number")?;
    let (major, minor) = (version / 10_000, version % 10_000);
    let started = index.get("server.started")?;
    let started_s = started.as_str().and_then(utc_s);
    let started_s = started_s.ok_or_else(|| format!("server.started is no instant in UTC: {started}"))?;
    let uptime_s = index.get("server.uptime_s")?;
    let now_s = started_s + uptime_s.as_f64().ok_or("server.uptime_s is no number")?;
    if now_s - day_s(&table.known_on)? > AGE_MAX_S {
        return Err(format!(
            "the table of releases is of {}, more than a year before the server's clock; a newer pgdyno has a newer one",
            table.known_on
        ));
    }
    let release = table.release.iter().find(|release| release.major == major);
    let release = release.ok_or_else(|| {
        format!(
            "PostgreSQL {major} is not in the table of releases of {}",
            table.known_on
        )
    })?;
    Ok(json!({
        "version": format!("{major}.{minor}"),
        "newest": format!("{major}.{}", release.newest_minor),
        "behind": release.newest_minor.saturating_sub(minor),
        "known_on": table.known_on,
        "support_ends": release.support_ends,
        "is_supported": now_s < day_s(&release.support_ends)? + 86_400.0,
    }))
}

fn day_s(day: &str) -> Result<f64, String> {
    utc_s(&format!("{day}T00:00:00+00:00"))
        .ok_or_else(|| format!("catalog/releases.toml: \"{day}\" is no day"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    fn of_server(version: u64, started: &str) -> Outcome {
        let facts = [
            ("server.version_num", json!(version)),
            ("server.started", json!(started)),
            ("server.uptime_s", json!(86_400)),
        ];
        let facts: BTreeMap<String, Outcome> = facts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Ok(value)))
            .collect();
        let table: Table = toml::from_str(
            "known_on = \"2026-05-14\"\n[[release]]\nmajor = 17\nnewest_minor = 10\nsupport_ends = \"2029-11-08\"",
        )
        .expect("a table");
        of_table(
            &Index {
                facts,
                has_server: true,
            },
            &table,
        )
    }

    #[test]
    fn a_server_is_compared_with_the_table_for_a_year() {
        let fields = |outcome: Outcome| {
            let value = outcome.expect("a release");
            (
                value["newest"].clone(),
                value["behind"].clone(),
                value["is_supported"].clone(),
            )
        };
        let june = "2026-06-01T00:00:00+00:00";
        assert_eq!(
            fields(of_server(170_007, june)),
            (json!("17.10"), json!(3), json!(true))
        );
        // A server may be newer than the table.
        assert_eq!(
            fields(of_server(170_011, june)),
            (json!("17.10"), json!(0), json!(true))
        );
        assert!(of_server(120_007, june).unwrap_err().contains("not in the table"));
        let late = of_server(170_007, "2027-06-01T00:00:00+00:00");
        assert!(late.unwrap_err().contains("of 2026-05-14, more than a year"));
    }

    #[test]
    fn support_ends_with_its_last_day() {
        let supported = |started: &str| {
            let table: Table = toml::from_str(
                "known_on = \"2029-10-01\"\n[[release]]\nmajor = 17\nnewest_minor = 20\nsupport_ends = \"2029-11-08\"",
            )
            .expect("a table");
            let facts = [
                ("server.version_num", json!(170_020)),
                ("server.started", json!(started)),
                ("server.uptime_s", json!(3600)),
            ];
            let facts = facts
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Ok(value)))
                .collect();
            let of = of_table(
                &Index {
                    facts,
                    has_server: true,
                },
                &table,
            );
            of.expect("a release")["is_supported"] == Value::Bool(true)
        };
        assert!(supported("2029-11-08T12:00:00+00:00"));
        assert!(!supported("2029-11-09T12:00:00+00:00"));
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
