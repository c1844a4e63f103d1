//! Faults that want a server of their own, or two: each found with its severity, and ended by what
//! the advice says.

use super::{advice, advised, client, cure, old_cluster, rules_of, statements};
use common::Home;
use common::foreign::Foreign;
use common::machine::quiet_machine;
use pgdyno_advice::{Advisor, Question};
use pgdyno_host::Fact;
use pgdyno_knobs::Catalogue;
use pgdyno_server::{Found, Guc, Server, server_facts};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

#[track_caller]
fn severity_of(said: &Value, rule: &str) -> Value {
    let found = advice(said, rule).unwrap_or_else(|| panic!("{rule}: {:?}", rules_of(said, "advice")));
    found["severity"].clone()
}

/// On a file system of its own: how much of it is free is part of the rule.
#[test]
fn slot_without_a_limit_is_a_hint_until_there_is_one() {
    let home = Home::on_disk();
    let create = ["sandbox", "create", "slots", "--filesystem", "ext4:2G"];
    home.run(&create).fine();
    assert_eq!(advice(&advised(&home, "slots"), "slots-without-limit"), None);
    let mut session = client(&home, "slots");
    session
        .batch_execute("SELECT pg_create_physical_replication_slot('standstill', true)")
        .expect("a slot");
    assert_eq!(
        severity_of(&advised(&home, "slots"), "slots-without-limit"),
        "hint"
    );
    cure(&home, "slots", &mut session, "slots-without-limit");
    drop(session);
    home.run(&["sandbox", "destroy", "slots"]).fine();
}

/// Autovacuum comes by itself, and waits for the table that a forgotten transaction has locked.
#[test]
fn multixact_past_its_freeze_age_is_advice_until_autovacuum_is_let_in() {
    const NEXT: u32 = 20_000;
    let home = Home::on_disk();
    let settings = [
        "max_prepared_transactions=2",
        "autovacuum_multixact_freeze_max_age=10000",
        "autovacuum_naptime=1",
    ];
    let prepare = "CREATE TABLE t (); BEGIN; LOCK TABLE t; PREPARE TRANSACTION 'forgotten'";
    let ages = ["-m", &format!("{NEXT},1")];
    old_cluster(&home, &settings, prepare, &ages, &[("pg_multixact/offsets", 0)]);

    let said = advised(&home, "old");
    assert_eq!(severity_of(&said, "multixact-past-freeze-age"), "advice");
    // It names no holder of rows, and says to look for what autovacuum waits for: the lock.
    let mut session = client(&home, "old");
    for (sql, _) in statements(advice(&said, "multixact-past-freeze-age").expect("advice")) {
        session.batch_execute(&sql).expect(&sql);
    }
    session
        .batch_execute("ROLLBACK PREPARED 'forgotten'")
        .expect("ended");
    common::until("autovacuum has frozen the table", || {
        match advice(&advised(&home, "old"), "multixact-past-freeze-age") {
            Some(found) => Err(found["why"].clone()),
            None => Ok(()),
        }
    });
}

#[test]
fn log_that_goes_nowhere_is_advice_until_it_is_collected() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    let advised = || home.run(&["advise", &target, "--json"]).json();
    assert_eq!(advice(&advised(), "log-goes-nowhere"), None);
    // As whoever starts it by hand does.
    let restart = foreign.restart_command();
    let (start, rest) = restart.split_once(" -l ").expect("a log");
    let (_, rest) = rest.split_once(' ').expect("more");
    let restart = format!("{start} {rest}");
    let restart = || {
        let mut shell = Command::new("sh");
        let shell = shell
            .args(["-c", &restart])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(shell.status().expect("sh runs").success());
    };
    restart();
    let said = advised();
    assert_eq!(severity_of(&said, "log-goes-nowhere"), "advice");
    for (sql, _) in statements(advice(&said, "log-goes-nowhere").expect("advice")) {
        foreign.ask(&sql);
    }
    restart();
    assert_eq!(advice(&advised(), "log-goes-nowhere"), None);
}

/// What the rules say of these facts of a real server, by name, with their severity.
fn ruled(facts: &[Fact], settings: &[Guc]) -> Vec<(String, &'static str)> {
    let catalogue = Catalogue::shipped().expect("the catalogue");
    let advisor = Advisor::shipped(&catalogue).expect("the rules");
    let advised = advisor.advise(&Question {
        facts,
        settings,
        evidence: &[],
        allowed: &[],
        only: &[],
    });
    let all = advised.advice.iter();
    all.map(|advice| (advice.rule.clone(), advice.severity.name()))
        .collect()
}

/// No plant: the day on which the support of a version ends cannot be brought about, so the
/// server's own clock is changed in its facts.
#[test]
fn major_version_without_support_is_advice() {
    let home = Home::new();
    home.run(&["sandbox", "create", "old", "-V", "14"]).fine();
    let found = Found::find(&format!("{} dbname=postgres", home.config("old")), &|_| None).expect("a server");
    let mut server = Server::connect(&found.conninfo).expect("a session");
    let found = server_facts(&mut server).expect("facts");
    let at = |day: &str| {
        let mut facts = found.facts.clone();
        for fact in &mut facts {
            match fact.name.as_str() {
                "server.started" => fact.value = Some(json!(format!("{day}T00:00:00+00:00"))),
                "server.uptime_s" => fact.value = Some(json!(3600)),
                _ => {}
            }
        }
        let ruled = ruled(&facts, &found.settings);
        ruled.into_iter().find(|(rule, _)| rule == "major-unsupported")
    };
    // The table of releases says when: 2026-11-12.
    assert_eq!(at("2026-11-12"), None);
    assert_eq!(at("2026-11-13").map(|(_, severity)| severity), Some("advice"));
}

/// Two servers on one host, and a pool of which both use little. Other tests' servers may run too,
/// so that there is no other is said by that fact alone.
#[test]
fn huge_pages_beside_another_server_are_not_called_idle() {
    let _machine = quiet_machine();
    let home = Home::new();
    let bytes = fs::read_to_string("/proc/meminfo").expect("meminfo");
    let total = bytes
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().nth(1));
    let total_kb: u64 = total.and_then(|kb| kb.parse().ok()).expect("a number");
    // A twentieth of memory, which the rule asks for, and the two servers' pages of 2 MB.
    let pages = total_kb / 20 / 2048 + 200;
    fs::write("/proc/sys/vm/nr_hugepages", pages.to_string()).expect("root");
    for name in ["one", "two"] {
        home.run(&["sandbox", "create", name]).fine();
    }
    assert_eq!(advice(&advised(&home, "one"), "huge-page-pool-idle"), None);
    let page = home.run(&["facts", "sandbox:one", "--json"]).fine().json();
    let settings: Vec<Guc> = serde_json::from_value(page["settings"].clone()).expect("settings");
    let facts = |others: Option<u64>| -> Vec<Fact> {
        let all = page["facts"].as_array().expect("facts").iter();
        let of = |fact: &Value| {
            let name = fact["name"].as_str().expect("a name");
            match (fact["missing"].as_str(), others) {
                (_, Some(others)) if name == "process.other_servers" => Fact::known(name, "changed", others),
                (Some(why), _) => Fact::unknown(name, "facts", why),
                _ => Fact::known(name, "facts", fact["value"].clone()),
            }
        };
        all.map(of).collect()
    };
    let severity = |facts: &[Fact]| {
        let ruled = ruled(facts, &settings).into_iter();
        ruled
            .filter(|(rule, _)| rule == "huge-page-pool-idle")
            .map(|(_, severity)| severity)
            .next()
    };
    assert_eq!(severity(&facts(None)), None);
    assert_eq!(severity(&facts(Some(0))), Some("advice"));
}
