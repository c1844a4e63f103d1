//! Clusters of tests are copies of one that was made once: initdb.py takes the place of initdb.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

const SCRIPT: &str = include_str!("initdb.py");
/// How the script calls the real one.
const OWN: &str = "initdb-own";
/// What calls the script. It has the cluster among its arguments while that works, as initdb does.
const CALLER: &str = "#!/bin/sh\n/usr/bin/python3 -SE \"$0.py\" \"$@\"\nexit $?\n";

/// Puts the script in place of initdb in all versions that are below `shared`. A version that comes
/// later has its own until the next call.
pub(crate) fn replace(shared: &Path) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    let templates = shared.join("clusters");
    fs::create_dir_all(&templates).expect("a directory");
    // Each of the servers' users has its own there.
    fs::set_permissions(&templates, fs::Permissions::from_mode(0o1777)).expect("open to all");
    for version in fs::read_dir(shared.join("installed"))
        .expect("versions")
        .flatten()
    {
        let bin = version.path().join("bin");
        let (initdb, own) = (bin.join("initdb"), bin.join(OWN));
        if !initdb.exists() || fs::read_to_string(bin.join("initdb.py")).is_ok_and(|text| text == SCRIPT) {
            continue;
        }
        match fs::hard_link(&initdb, &own) {
            // Another process was first.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            other => other.expect("a link"),
        }
        let write = |name: &str, text: &str| {
            let new = bin.join(format!("{name}.{}", std::process::id()));
            fs::write(&new, text).expect("written");
            fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("executable");
            fs::rename(&new, bin.join(name)).expect("renamed");
        };
        write("initdb.py", SCRIPT);
        write("initdb", CALLER);
    }
}
