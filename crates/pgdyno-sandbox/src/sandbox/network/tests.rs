//! What is decided about networks without making one.

use super::ip::{Route, parsed};
use super::*;
use proptest::prelude::*;

#[test]
fn a_plan_is_an_mtu() {
    for (text, expected) in [("mtu:576", 576), ("mtu:9000", 9000), ("mtu:65535", 65_535)] {
        assert_eq!(NetworkPlan::named(text).map(|plan| plan.mtu_bytes), Ok(expected));
    }
    for text in ["", "mtu:", "9000", "mtu:575", "mtu:65536", "mtu:-1", "loopback"] {
        assert!(
            NetworkPlan::named(text).unwrap_err().contains("e.g. mtu:9000"),
            "{text}"
        );
    }
}

#[test]
fn addresses_are_those_that_no_route_leads_to() {
    let check = |routes: &str, begin: u32, expected: Option<&str>| {
        let routes: Vec<Route> = parsed(routes).unwrap();
        let found = free_block(&routes, begin).map(|block| block.to_string());
        assert_eq!(found.as_deref(), expected);
    };
    check("", 0, Some("10.213.0.0/30"));
    check("[ ]", LINKS - 1, Some("10.213.255.252/30"));
    check("[]", LINKS + 1, Some("10.213.0.4/30"));
    let two = r#"[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","flags":[]},
                  {"type":"local","dst":"10.213.0.1","dev":"a","table":"local"},
                  {"dst":"10.213.0.4/30","dev":"b"}, {"dst":"10.214.0.0/16","dev":"c"}]"#;
    check(two, 0, Some("10.213.0.8/30"));
    check(r#"[{"dst":"10.213.128.0/17"}]"#, LINKS / 2, Some("10.213.0.0/30"));
    check(r#"[{"dst":"10.0.0.0/8"}]"#, 7, None);
    check(r#"[{"type":"blackhole","dst":"10.213.0.0/16"}]"#, 7, None);
}

#[test]
fn what_is_not_the_sandboxs_is_left_alone() {
    for name in ["eth0", "pgdyno-", "pgdyno-main-eth", "pgdyno-0123456789"] {
        let wrong = Network {
            name: name.to_owned(),
            mtu_bytes: 1500,
            host_address: Ipv4Addr::LOCALHOST,
            server_address: Ipv4Addr::LOCALHOST,
        };
        let error = wrong.remove().unwrap_err().to_string();
        assert!(error.contains("left alone"), "{error}");
    }
}

#[test]
fn only_root_is_let_in() {
    check(None).unwrap();
    let plan = Some(NetworkPlan { mtu_bytes: 1500 });
    match pgdyno_server::User::is_root() {
        true => assert!(!matches!(check(plan), Err(SandboxError::NetworkNeedsRoot))),
        false => assert!(matches!(check(plan), Err(SandboxError::NetworkNeedsRoot))),
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,80}", to in "[0-9./a-z]{0,20}", begin in any::<u32>()) {
        let _ = parsed::<Route>(&text);
        let _ = parsed::<Link>(&text);
        let routes = parsed::<Route>(&format!("[{{\"dst\":\"{to}\"}}]")).unwrap();
        if let Some(block) = free_block(&routes, begin) {
            prop_assert!(block.meets(ADDRESSES));
        }
    }
}
