//! Units of the packages, started by a systemd.

use common::systemd::Booted;
use common::until;
use std::fs;

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
