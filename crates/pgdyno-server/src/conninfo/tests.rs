use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| {
        pairs
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| (*v).to_owned())
    }
}

#[test]
fn variables_fill_what_the_string_leaves_out() {
    let env = environment(&[
        ("PGHOST", "db.example"),
        ("PGPORT", "6000"),
        ("PGUSER", "ann"),
        ("PGPASSWORD", "pw"),
    ]);
    let found = Conninfo::named("port=7000", &env).unwrap();
    assert_eq!(found.to_string(), "database ann at db.example:7000 as ann");
    assert_eq!(found.config().get_password(), Some(&b"pw"[..]));
}

#[test]
fn a_password_is_never_shown() {
    let env = environment(&[]);
    let found = Conninfo::named("postgresql://ann:hunter2@db.example/x", &env).unwrap();
    let shown = format!(
        "{found} {found:?} {:?} {}",
        found.config(),
        found.without_password()
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    for bad in [
        "host=a password=hunter2 secret hunter2",
        "postgresql://ann:hunter2@:::/x?hunter2",
    ] {
        if let Err(error) = Conninfo::named(bad, &env) {
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }
}

/// What would lead questions and load to two servers, or past TLS, is refused.
#[test]
fn what_is_not_done_is_reported() {
    let check = |text: &str, part: &str| {
        let error = Conninfo::named(text, &environment(&[])).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    };
    check("host=a,b", "2 hosts, where one is meant");
    check("host=a,b port=1,2,3", "that of ports 3");
    check("host=@abstract", "abstract namespace");
    check("host=db sslnegotiation=direct", "needs sslmode=require");
    check("host=db sslnegotiation=indirect", "expected postgres or direct");
    check("host=db sslcrl=/x", "\"sslcrl\"");
    check(
        "host=db target_session_attrs=primarily",
        "target_session_attrs is \"primarily\"",
    );
    check("host=db connect_timeout=soon", "connect_timeout is \"soon\"");
    check(
        "host=db sslrootcert=system sslmode=require",
        "any certificate of any name",
    );
    check("host=db sslmode=verify-full", "no sslrootcert");
    let local = Conninfo::named("host=/tmp sslmode=require", &environment(&[])).unwrap();
    assert!(local.tls().is_none());
    let bound = Conninfo::named("host=db", &environment(&[("PGCHANNELBINDING", "require")])).unwrap();
    assert!(
        bound.without_password().contains("channel_binding='require'"),
        "{}",
        bound.without_password()
    );
}

#[test]
fn several_hosts_have_their_own_words() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "a:1:*:*:of a\n10.0.0.5:2:*:*:of c\n*:*:*:*:of others\n",
    )
    .unwrap();
    let text = format!(
        "postgres://ann@a:1,%2Ftmp,:2/x?hostaddr=,,10.0.0.5&sslmode=require&target_session_attrs=prefer-standby\
         &load_balance_hosts=random&passfile={}",
        file.path().display()
    );
    let hosts = Hosts::resolve(&text, &environment(&[("PGCONNECT_TIMEOUT", "3")])).unwrap();
    assert!(hosts.wanted == Wanted::PreferStandby && hosts.shuffled);
    let shown: Vec<String> = hosts.each.iter().map(Conninfo::place).collect();
    assert_eq!(shown, ["a:1", "/tmp:5432", "10.0.0.5:2"]);
    let passwords: Vec<_> = hosts
        .each
        .iter()
        .map(|each| each.config().get_password())
        .collect();
    assert_eq!(passwords, [&b"of a"[..], b"of others", b"of c"].map(Some));
    let secured: Vec<bool> = hosts.each.iter().map(Conninfo::has_tls).collect();
    assert_eq!(secured, [true, false, true]);
    for each in &hosts.each {
        assert_eq!(each.config().get_connect_timeout(), Some(&Duration::from_secs(3)));
    }
}

#[test]
fn an_address_is_written_down_beside_its_name() {
    let check = |text: &str, place: &str, written: &str| {
        let found = Conninfo::named(text, &environment(&[])).unwrap();
        assert_eq!(found.place(), place);
        assert_eq!(found.without_password(), written);
        let again = Conninfo::named(written, &environment(&[])).unwrap();
        assert_eq!(again.without_password(), written);
    };
    check(
        "host=db hostaddr=10.0.0.5 user=ann",
        "db:5432 (10.0.0.5)",
        "host='db' hostaddr=10.0.0.5 port=5432 user='ann' dbname='ann'",
    );
    check(
        "hostaddr=::1 user=ann sslmode=disable",
        "[::1]:5432",
        "host='::1' hostaddr=::1 port=5432 user='ann' dbname='ann' sslmode='disable'",
    );
}

#[test]
fn prefer_and_allow_have_two_ways() {
    let check = |mode: &str, expected: &[bool]| {
        let found = Conninfo::named(&format!("host=db sslmode={mode}"), &environment(&[])).unwrap();
        let ways: Vec<bool> = found.ways().iter().map(Conninfo::has_tls).collect();
        assert_eq!(ways, expected, "{mode}");
    };
    check("disable", &[false]);
    check("allow", &[false, true]);
    check("prefer", &[true, false]);
    check("require", &[true]);
    let local = Conninfo::named("host=/tmp", &environment(&[])).unwrap();
    assert_eq!(local.ways().len(), 1);
}

#[test]
fn a_word_is_not_a_target() {
    assert!(matches!(
        Conninfo::named("demo", &environment(&[])),
        Err(ServerError::NotATarget { .. })
    ));
}

proptest! {
    #[test]
    fn what_is_written_down_is_the_same_server(
        words in proptest::collection::vec(
            ("(host|hostaddr|port|user|dbname|sslmode|password|connect_timeout|target_session_attrs|x)",
             "(a|,|/tmp|::1|10.0.0.5|7|prefer|allow|disable|any|' |\\\\'|[ -~]{0,6})"),
            0..6
        ),
        uri in "[a-z0-9:@/?&=%,.\\[\\]-]{0,40}",
    ) {
        let pairs: Vec<String> = words.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for text in [pairs.join(" "), format!("postgresql://{uri}"), format!("postgres://{uri}?{}", pairs.join("&"))] {
            let Ok(found) = Conninfo::named(&text, &environment(&[])) else {
                continue;
            };
            let written = found.without_password();
            let again = Conninfo::named(&written, &environment(&[])).unwrap();
            prop_assert_eq!(&written, &again.without_password());
            prop_assert_eq!(found.to_string(), again.to_string());
        }
    }
}

#[test]
fn what_is_asked_of_tls_is_asked_by_other_programs_too() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        let found = Conninfo::named(text, &environment(&[("PGSSLMODE", "require")])).unwrap();
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        assert_eq!(found.tls_variables(), expected, "{text}");
    };
    check(
        "host=db user=ann sslmode=verify-full sslrootcert=system channel_binding=require",
        &[
            ("PGSSLMODE", "verify-full"),
            ("PGSSLROOTCERT", "system"),
            ("PGCHANNELBINDING", "require"),
        ],
    );
    check("host=db user=ann", &[("PGSSLMODE", "require")]);
    // A socket has none, whatever is asked.
    check("host=/tmp user=ann", &[("PGSSLMODE", "disable")]);
}
