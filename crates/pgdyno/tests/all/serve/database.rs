//! A store in PostgreSQL behind the page: the same answers, few sessions, and none that stays when
//! its server has ended them.

use super::*;
use std::net::TcpListener;

/// Those of pgdyno alone: autovacuum has sessions in each database too.
const SESSIONS: &str =
    "FROM pg_stat_activity WHERE datname = 'team' AND usename = 'ann' AND backend_type = 'client backend'";

#[test]
fn a_store_in_postgresql_answers_like_the_file_it_came_from() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let bin = common::system_program("initdb");
    let bin = bin.parent().expect("a directory").to_string_lossy().into_owned();
    home.run(&["sandbox", "create", "lab", "--pg-bin", &bin]).fine();
    home.ask("lab", "CREATE ROLE ann LOGIN PASSWORD 'not-to-be-shown'");
    home.ask("lab", "CREATE DATABASE team OWNER ann");
    let port = home.record("lab")["port"].as_u64().expect("a port");
    let url = format!("postgres://ann:not-to-be-shown@127.0.0.1:{port}/team?sslmode=disable");
    let file = store_of(&home);
    home.run(&["import", &file.to_string_lossy(), "--store", &url])
        .fine();

    let (of_file, of_server) = (Web::start(&home, &[]), Web::start(&home, &["--store", &url]));
    let pages = [
        "/api/experiments",
        "/api/experiments/1/trials/2",
        "/api/experiments/1/notes",
    ];
    let same = || {
        for path in pages {
            let (here, there) = (of_file.get(path), of_server.get(path));
            assert_eq!((here.status, here.text()), (there.status, there.text()), "{path}");
        }
    };
    same();
    for web in [&of_file, &of_server] {
        let reply = web.ask("PUT", "/api/experiments/1/tags/nightly", &[], "");
        assert!(reply.status < 300, "{}", reply.text());
    }
    same();
    let kept: u32 = home
        .ask("lab", &format!("SELECT count(*) {SESSIONS}"))
        .parse()
        .expect("a number");
    assert!((1..=4).contains(&kept), "{kept} sessions for ten requests");

    // A request for what is not there costs no session.
    let which = format!("SELECT string_agg(pid::text, ' ' ORDER BY pid) {SESSIONS}");
    let before = home.ask("lab", &which);
    of_server.get("/api/experiments/99/trials/1").is_problem(404, &[]);
    assert_eq!(home.ask("lab", &which), before);

    // The server ends them: the next request has a new one.
    let ended = format!("SELECT count(pg_terminate_backend(pid)) {SESSIONS}");
    assert_eq!(home.ask("lab", &ended), kept.to_string());
    same();
    home.run(&["sandbox", "stop", "lab"]).fine();
    let refused = of_server.get("/api/experiments");
    refused.is_problem(503, &[&format!("postgres://ann@127.0.0.1:{port}/team")]);
    assert!(!refused.text().contains("not-to-be-shown"), "{}", refused.text());
    home.run(&["sandbox", "start", "lab"]).fine();
    same();

    stop(&of_server);
    let (status, said) = of_server.ended();
    assert!(status.success() && !said.contains("not-to-be-shown"), "{said}");
}

/// While the store's server is waited for, before there is a page, it ends as it does later.
#[test]
fn it_ends_in_order_while_it_begins() {
    let home = Home::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let url = format!("postgres://ann@127.0.0.1:{port}/team?sslmode=disable&connect_timeout=2");
    let child = home.spawn(&["serve", "--listen", "127.0.0.1:0", "--store", &url]);
    // It asks, and nobody answers.
    let _asked = silent.accept().expect("it asks");
    let web = Web::of(child);
    stop(&web);
    let (status, said) = web.ended();
    assert!(status.success() && said.contains("serving"), "{status}: {said}");
}
