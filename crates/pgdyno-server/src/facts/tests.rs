//! The table of statements, the rules of services, and how outcomes become facts.

use super::ask::{Extension, Signs};
use super::statement::Need;
use super::*;
use std::collections::BTreeSet;

const MAJORS: [u32; 6] = [14, 15, 16, 17, 18, 19];

fn signs() -> Signs {
    Signs {
        role: "\"R 1\"".into(),
        ..Signs::unknown(18)
    }
}

#[test]
fn statements_only_read_and_every_name_is_reported_by_some_version() {
    let mut names = BTreeSet::new();
    for statement in STATEMENTS {
        let sql = statement.sql;
        assert!(
            sql.starts_with("SELECT ") || sql.starts_with("WITH "),
            "{}",
            statement.name
        );
        // Texts may name statements, for people.
        let mut code = sql.split('\'').step_by(2);
        assert!(!code.any(|part| part.contains(';')), "{}", statement.name);
        assert!(statement.since < statement.until, "{}", statement.name);
        for name in statement.facts {
            assert!(
                sql.contains(&format!("'{name}'")),
                "{name} is not in its statement"
            );
            let subject = name.split('.').next().unwrap();
            assert!(SUBJECTS.contains(&subject), "{name} has no place");
            names.insert(*name);
        }
    }
    for name in names {
        let is_reported = |major: u32| {
            let reports = |s: &&Statement| s.since <= major && major < s.until && s.facts.contains(&name);
            STATEMENTS.iter().any(|s| reports(&s))
        };
        assert!(MAJORS.into_iter().any(is_reported), "{name} is never reported");
    }
}

#[test]
fn one_statement_per_name_and_version_reports_the_same_thing() {
    for major in MAJORS {
        let mut seen = BTreeSet::new();
        for statement in STATEMENTS.iter().filter(|s| s.since <= major && major < s.until) {
            assert!(
                seen.insert(statement.name),
                "{} has two rows for {major}",
                statement.name
            );
        }
    }
}

#[test]
fn services_are_recognised_by_what_they_show() {
    let check = |change: fn(&mut Signs), settings: &[&str], expected: Option<&str>| {
        let mut signs = signs();
        change(&mut signs);
        let found = service::recognise(&signs, settings);
        assert_eq!(found.as_ref().map(|(service, _)| *service), expected, "{found:?}");
    };
    check(|_| {}, &["work_mem", "aws.x"], None);
    check(|_| {}, &["rds.extensions"], Some("Amazon RDS"));
    check(
        |s| s.functions.push("aurora_version".into()),
        &["rds.extensions"],
        Some("Amazon Aurora"),
    );
    check(
        |_| {},
        &["azure.extensions"],
        Some("Azure Database for PostgreSQL"),
    );
    check(
        |s| s.roles.push("cloudsqlsuperuser".into()),
        &[],
        Some("Google Cloud SQL"),
    );
    check(
        |s| s.roles = vec!["cloudsqlsuperuser".into(), "alloydbsuperuser".into()],
        &[],
        Some("Google AlloyDB"),
    );
    check(
        |s| s.databases.push("azure_maintenance".into()),
        &[],
        Some("Azure Database for PostgreSQL"),
    );
    check(
        |s| s.version = "PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64".into(),
        &[],
        Some("YugabyteDB"),
    );
    let sql = service::fill_in(texts::SIGNS);
    for list in ["'aurora_version'", "'rdsadmin'", "'azure_sys'"] {
        assert!(sql.contains(list), "{list}");
    }
    assert!(!sql.contains('{'), "{sql}");
}

#[test]
fn what_a_role_lacks_is_named_with_its_grant() {
    let mut lacking = Signs {
        stats: false,
        config: false,
        wal_directory: false,
        shared_memory: false,
        ..signs()
    };
    let check = |signs: &Signs, needs: Need, parts: &[&str]| {
        let why = signs.lacks(needs).expect("a reason");
        for part in parts {
            assert!(why.contains(part), "\"{part}\" is not in \"{why}\"");
        }
    };
    assert_eq!(lacking.lacks(Need::Nothing), None);
    for needs in [Need::Stats, Need::WalDirectory, Need::SharedMemory] {
        check(&lacking, needs, &["GRANT pg_monitor TO \"R 1\""]);
    }
    check(
        &lacking,
        Need::Config,
        &["GRANT EXECUTE ON FUNCTION pg_catalog.pg_config() TO \"R 1\""],
    );
    check(&lacking, Need::Statements(108), &["shared_preload_libraries"]);
    lacking.major = 14;
    check(
        &lacking,
        Need::SharedMemory,
        &["pg_get_shmem_allocations() TO \"R 1\""],
    );
    for (version, least, allowed) in [
        ("1.8", 108, true),
        ("1.8", 110, false),
        ("1.12", 110, true),
        ("2.0", 110, true),
        ("nine", 108, false),
        ("1.999999999999", 108, false),
    ] {
        let mut may = signs();
        may.statements = Some(Extension {
            schema: "public".into(),
            version: version.into(),
        });
        assert_eq!(
            may.lacks(Need::Statements(least)).is_none(),
            allowed,
            "{version} {least}"
        );
    }
}

#[test]
fn a_known_fact_is_not_lost_to_a_missing_one() {
    let mut found = Found::default();
    found.add(Fact::unknown("a", "x", "first reason"));
    found.add(Fact::unknown("a", "y", "second reason"));
    assert_eq!(found.0["a"].missing.as_deref(), Some("first reason"));
    found.add(Fact::known("a", "z", 1));
    found.add(Fact::known("a", "z", 2));
    found.add(Fact::unknown("a", "z", "third reason"));
    assert_eq!(found.0["a"].value, Some(json!(1)));
}

#[test]
fn answers_become_facts_or_reasons() {
    let statement = &Statement {
        name: "test",
        since: 14,
        until: 17,
        group: Group::Light,
        needs: Need::Nothing,
        source: "here",
        facts: &["a.one", "a.two", "a.three"],
        when_null: "there is none",
        sql: "",
    };
    let mut found = Found::default();
    found.take(statement, Ok(json!({"a.one": 0, "a.two": null})));
    assert_eq!(found.0["a.one"].value, Some(json!(0)));
    for name in ["a.two", "a.three"] {
        assert_eq!(found.0[name].missing.as_deref(), Some("there is none"), "{name}");
    }
    let mut found = Found::default();
    found.take(statement, Ok(json!("no object")));
    found.take(statement, Err("cut".into()));
    assert!(found.0.values().all(|fact| fact.value.is_none()));
}

#[test]
fn databases_have_their_sizes_or_an_estimate() {
    let mut found = Found::default();
    let rows = json!([{"name": "big"}, {"name": "small"}, {"name": "closed"}]);
    found.add(Fact::known("databases", "", rows));
    found.add(Fact::known("server.database", "", "big"));
    found.add(Fact::known("tables.bytes_estimated", "", 30));
    found.add(Fact::known("indexes.bytes_estimated", "", 12));
    found.databases_with(&Ok(json!({"big": null, "small": 7})));
    let rows = found.0["databases"].value.clone().unwrap();
    assert_eq!(
        rows,
        json!([
            {"name": "big", "bytes": null, "bytes_estimated": 42},
            {"name": "small", "bytes": 7, "bytes_estimated": null},
            {"name": "closed", "bytes": null, "bytes_estimated": null},
        ])
    );
    assert!(found.0["databases.bytes"].missing.is_some());
}

/// A question sets these for itself: what it asks must not be read from them.
#[test]
fn no_fact_is_read_from_what_a_question_sets() {
    let limits = texts::LIMITS.split("set_config('").skip(1);
    let ours: Vec<&str> = limits.filter_map(|rest| rest.split('\'').next()).collect();
    assert!(
        ours.contains(&"jit") && ours.contains(&"statement_timeout"),
        "{ours:?}"
    );
    for statement in STATEMENTS {
        for name in &ours {
            let reads = format!("current_setting('{name}'");
            assert!(!statement.sql.contains(&reads), "{}: {name}", statement.name);
        }
        // It says false while jit is off.
        let asked = statement.sql.find("pg_jit_available()");
        let set = statement.sql.find("set_config('jit', 'on', true)");
        assert!(
            asked.is_none() || set.is_some_and(|set| Some(set) < asked),
            "{}",
            statement.name
        );
    }
}
