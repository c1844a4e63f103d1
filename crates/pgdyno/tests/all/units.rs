//! What packages are built for, and their units, started by a systemd.

use common::systemd::Booted;
use common::{Home, said, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A unit as packages have it, but for the place of the program.
fn unit(name: &str) -> String {
    let path = format!("{}/../../packaging/systemd/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).expect("a unit");
    assert!(text.contains("/usr/bin/pgdyno"), "{text}");
    // What has run once and ended would be forgotten.
    text.replace("/usr/bin/pgdyno", "/run/program/pgdyno")
        .replace("Type=oneshot", "Type=oneshot\nRemainAfterExit=yes")
}

/// The page is served, and who gets hold of its process can change neither journals nor programs
/// that root runs.
#[test]
fn units_of_the_packages_start_and_the_page_changes_nothing_of_roots() {
    let booted = Booted::start();
    let inside = |script: &str| booted.tool("sh", &["-ec", script]);
    // Results, journals and sockets of this machine are not its.
    inside(
        "mount -t tmpfs own /var/lib; mkdir -p /run/program /run/dbus /var/lib/pgdyno/journal; touch /run/dbus/marker",
    );
    let program = common::program();
    booted.tool("cp", &[&program.to_string_lossy(), "/run/program/pgdyno"]);
    for name in ["pgdyno-serve.service", "pgdyno-restore.service"] {
        booted.unit(name, &unit(name));
    }
    inside("echo of a revert >/var/lib/pgdyno/journal/revert.log; systemctl start pgdyno-restore");
    inside("systemctl is-active pgdyno-restore");

    inside("systemctl start pgdyno-serve");
    let answer = "exec 3<>/dev/tcp/127.0.0.1/7432; printf 'GET / HTTP/1.0\\r\\nHost: 127.0.0.1:7432\\r\\n\\r\\n' >&3; grep -q '^HTTP/1.[01] 401' <&3";
    until("a page", || {
        let asked = booted.said("bash", &["-c", answer]);
        if asked.code == 0 { Ok(()) } else { Err(asked.err) }
    });
    inside(
        "of() { nsenter --target \"$(systemctl show -P MainPID pgdyno-serve)\" --mount \"$@\"; }
        of test -s /var/lib/pgdyno/serve.token
        of touch /var/lib/pgdyno/written
        if of touch /var/lib/pgdyno/journal/written; then exit 1; fi
        if of touch /etc/written; then exit 1; fi
        if of test -e /run/dbus/marker; then exit 1; fi
        test \"$(stat -c %a /var/lib/pgdyno)\" = 711",
    );
}

/// Rust has no library for s390x with musl.
#[test]
fn what_is_built_for_s390x_has_glibc_on_its_own_hosts_too() {
    let home = Home::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/dist-target");
    for (host, chosen, expected) in [
        ("x86_64", "", "x86_64-unknown-linux-musl"),
        ("aarch64", "aarch64", "aarch64-unknown-linux-musl"),
        ("x86_64", "aarch64", "aarch64-unknown-linux-gnu"),
        ("x86_64", "s390x", "s390x-unknown-linux-gnu"),
        ("s390x", "", "s390x-unknown-linux-gnu"),
    ] {
        let uname = home.write("uname", &format!("#!/bin/sh\necho {host}\n"));
        fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).expect("its mode");
        let mut command = Command::new(script);
        command
            .env("DIST_ARCH", chosen)
            .env("PATH", format!("{}:/usr/bin:/bin", home.path.path().display()));
        let said = said(command.output().expect("a shell"));
        assert_eq!((said.out.trim(), said.code), (expected, 0), "{}", said.err);
    }
}
