//! Who is let in, and where it listens.

use super::{fill, stop};
use common::Home;
use common::web::{Reply, Web};
use std::fs;

#[test]
fn the_token_opens_and_nothing_else_does() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &[]);
    assert_eq!(web.token.len(), 32);
    let cookie_name = format!("pgdyno-{}", web.address.rsplit(':').next().expect("a port"));
    let host = ("Host", web.address.as_str());
    let check = |path: &str, header: Option<(&str, String)>, status: u16| {
        let mut headers = vec![host];
        headers.extend(header.as_ref().map(|(name, value)| (*name, value.as_str())));
        let reply = web.raw("GET", path, &headers, "");
        assert_eq!(reply.status, status, "{path} {header:?}: {}", reply.text());
        if status == 401 {
            assert_eq!(reply.header("www-authenticate"), "Bearer realm=\"pgdyno\"");
            reply.is_problem(401, &["token", "pgdyno serve"]);
            assert!(!reply.text().contains(&web.token));
        }
    };
    let wrong = web.token.replace(|c: char| c.is_ascii_digit(), "f");
    for path in [
        "/",
        "/app.js",
        "/early.js",
        "/app.css",
        "/api/experiments",
        "/api/openapi.json",
        "/metrics",
        "/none",
    ] {
        check(path, None, 401);
        check(path, Some(("Authorization", format!("Bearer {wrong}"))), 401);
        check(path, Some(("Cookie", format!("{cookie_name}={wrong}"))), 401);
        check(path, Some(("Cookie", format!("pgdyno-1={}", web.token))), 401);
    }
    for path in ["/api/experiments", "/metrics"] {
        check(
            path,
            Some(("Authorization", format!("Bearer {}", web.token))),
            200,
        );
        check(
            path,
            Some(("Cookie", format!("a=b; {cookie_name}={}", web.token))),
            200,
        );
        // The link opens the page alone.
        check(&format!("{path}?token={}", web.token), None, 401);
    }
    let page = web.raw("GET", "/", &[host, ("Accept", "text/html,*/*")], "");
    assert_eq!(
        (page.status, page.header("content-type")),
        (401, "text/html; charset=utf-8")
    );
    assert!(page.text().contains("token"));
    check(&format!("/?token={wrong}"), None, 401);

    let link = format!("/?token={}", web.token);
    let reply = web.raw("GET", &link, &[host], "");
    let expected = format!("{cookie_name}={}; HttpOnly; SameSite=Strict; Path=/", web.token);
    assert_eq!(
        (reply.status, reply.header("set-cookie")),
        (200, expected.as_str())
    );
    // No redirect: that would still be the other site's where the link was clicked, and come
    // without the cookie.
    let refresh = "<meta http-equiv=\"refresh\" content=\"0; url=/\">";
    assert!(reply.text().contains(refresh) && !reply.text().contains(&web.token));
    let reply = web.raw("GET", &link, &[host, ("X-Forwarded-Proto", "https")], "");
    assert_eq!(reply.header("set-cookie"), format!("{expected}; Secure"));

    let token = web.token.clone();
    stop(&web);
    let (status, said) = web.ended();
    assert_eq!(status.code(), Some(0));
    assert!(said.contains("Ctrl-C") && !said.contains(&token), "{said}");
}

#[test]
fn other_hosts_and_pages_of_others_are_refused() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &["--allow-host", "Results.example.org"]);
    let bearer = format!("Bearer {}", web.token);
    let check = |hosts: &[&str], origin: Option<&str>, status: u16| {
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(hosts.iter().map(|host| ("Host", *host)));
        headers.extend(origin.map(|origin| ("Origin", origin)));
        for (method, path, fine) in [
            ("GET", "/api/experiments", 200),
            ("PUT", "/api/experiments/1/tags/x", 204),
        ] {
            let reply = web.raw(method, path, &headers, "");
            let expected = if status == 200 { fine } else { status };
            assert_eq!(
                reply.status,
                expected,
                "{method} {hosts:?} {origin:?}: {}",
                reply.text()
            );
            if status == 403 {
                reply.is_problem(403, &["--allow-host"]);
            }
        }
    };
    let own = web.address.as_str();
    let origin = format!("http://{own}");
    check(&[own], None, 200);
    check(&["localhost:9000"], None, 200);
    check(&["results.example.org"], None, 200);
    check(&[], None, 403);
    check(&["evil.example"], None, 403);
    check(&[own, "evil.example"], None, 403);
    check(&["10.1.1.1"], None, 403);
    check(&[own], Some(&origin), 200);
    check(&[own], Some("https://evil.example"), 403);
    check(&[own], Some("http://127.0.0.1:1"), 403);
    check(&[own], Some("null"), 403);
    check(&[own], Some("https://results.example.org"), 200);
    check(&["results.example.org"], Some("https://results.example.org"), 200);
}

#[test]
fn every_answer_has_strict_headers() {
    let home = Home::new();
    let id = fill(&home, "memory", "sandbox a");
    let web = Web::start(&home, &[]);
    let check = |reply: &Reply, what: &str| {
        let policy = reply.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{what}: {policy}"
        );
        assert!(!policy.contains("unsafe"));
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(name), value, "{what}");
        }
        assert_eq!(reply.header("access-control-allow-origin"), "", "{what}");
        let is_file = what.starts_with("/app.") || what == "/early.js";
        let kept = if is_file && reply.status != 503 {
            "no-cache"
        } else {
            "no-store"
        };
        assert_eq!(reply.header("cache-control"), kept, "{what}");
    };
    let report = format!("/api/experiments/{id}/report");
    for path in [
        "/",
        "/app.js",
        "/early.js",
        "/app.css",
        "/api/experiments",
        &report,
        "/metrics",
        "/none",
        "/api/experiments/x/notes",
    ] {
        check(&web.get(path), path);
    }
    check(&web.ask("PATCH", "/api/experiments", &[], ""), "a wrong method");
    check(
        &web.raw("GET", "/", &[("Host", &web.address)], ""),
        "without a token",
    );
    check(
        &web.raw("GET", "/", &[("Host", "evil.example")], ""),
        "another host",
    );
    let live = web.ask("GET", &format!("/api/experiments/{id}/live"), &[], "");
    check(&live, "live");
    web.ask("PATCH", "/api/experiments", &[], "")
        .is_problem(405, &["method"]);
    web.get("/none").is_problem(404, &["openapi.json"]);
}

#[test]
fn where_it_listens_is_asked_for_or_agreed_to() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    home.run(&["serve", "--listen", "0.0.0.0:0"])
        .fails(4, &["--beyond-loopback", "not encrypted"]);
    home.run(&["serve", "--listen", "nowhere"])
        .fails(2, &["--listen"]);
    home.run(&["serve", "--allow-host", "http://x"])
        .fails(2, &["--allow-host", "without a scheme"]);
    let first = Web::start(&home, &[]);
    home.run(&["serve", "--listen", &first.address])
        .fails(2, &[&first.address, "cannot be listened on"]);
    let second = Web::start(&home, &[]);
    assert_ne!((&first.address, &first.token), (&second.address, &second.token));
    assert_eq!(
        (
            first.get("/api/experiments").status,
            second.get("/api/experiments").status
        ),
        (200, 200)
    );
}

#[test]
fn a_token_in_a_file_stays() {
    let home = Home::new();
    fill(&home, "memory", "sandbox a");
    let path = home.file("token");
    let name = path.to_string_lossy();
    let start = || {
        let mut web = Web::start(&home, &["--token-file", &name]);
        let token = fs::read_to_string(&path).expect("a token");
        // What is kept in a file is not shown.
        assert_eq!(web.token, format!("$(cat {name})"));
        token.trim().clone_into(&mut web.token);
        assert_eq!(web.get("/api/experiments").status, 200);
        web.token.clone()
    };
    assert_eq!(start(), start());
    fs::write(&path, "<b>short").expect("written");
    let said = home.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", &name]);
    assert!(!said.err.contains("<b>"), "{}", said.err);
    said.fails(2, &["holds no token"]);
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    fs::set_permissions(&path, open).expect("opened");
    home.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", &name])
        .fails(4, &["chmod 600"]);
    let refuse = |path: &std::path::Path, code: i32, word: &str| {
        let name = path.to_string_lossy();
        home.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", &name])
            .fails(code, &[word]);
    };
    refuse(path.parent().expect("a directory"), 2, "not a plain file");
    let pipe = home.file("pipe");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, 0o600.into(), 0).expect("made");
    refuse(&pipe, 2, "not a plain file");
    fs::write(&path, "0123456789abcdef").expect("written");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("closed");
    std::os::unix::fs::chown(&path, Some(1), None).expect("given away");
    refuse(&path, 4, "another user");
}

#[test]
fn the_printed_link_is_for_a_shell() {
    let home = Home::new();
    let path = home.file("it's a token");
    let web = Web::start(&home, &["--token-file", &path.to_string_lossy()]);
    let quoted = path.to_string_lossy().replace('\'', "'\\''");
    assert_eq!(web.token, format!("$(cat '{quoted}')"));
}
