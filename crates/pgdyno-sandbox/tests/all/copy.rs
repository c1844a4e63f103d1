//! A server's files copied and restored, for real: on the file system that is there, and on one
//! that shares blocks.

use crate::common::Home;
use pgdyno_sandbox::{FileSystemKind, FileSystemPlan};

fn comes_back(data: Option<FileSystemPlan>) {
    let home = Home::new(data);
    let sandbox = home.sandbox();
    home.ask("CREATE TABLE t AS SELECT generate_series(1, 1000) n");
    let copy = match data {
        // Beside the data, on the same file system.
        Some(_) => sandbox.record().data.with_file_name("copy"),
        None => home.file("copy"),
    };
    let mut reports = 0;
    let refused = sandbox.save_copy(&copy, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("its server runs"), "{refused}");
    sandbox.stop().unwrap();
    let copied = sandbox.save_copy(&copy, &mut |_| reports += 1).unwrap();
    assert!(
        copied.bytes > 20 << 20 && copied.files > 500 && reports >= copied.files,
        "{copied:?}"
    );
    sandbox.start().unwrap();
    home.ask("DROP TABLE t");
    home.ask("ALTER SYSTEM SET work_mem = '5MB'");
    let number = home.ask("SELECT system_identifier FROM pg_control_system()");
    sandbox.stop().unwrap();
    // Twice: a copy serves as often as one likes.
    for _ in 0..2 {
        let restored = sandbox.restore_copy(&copy, &mut |_| ()).unwrap();
        assert_eq!(restored.is_reflinked, copied.is_reflinked);
        sandbox.start().unwrap();
        assert_eq!(home.ask("SELECT count(*) FROM t"), "1000");
        assert_eq!(home.ask("SHOW work_mem"), "5MB");
        assert_eq!(
            home.ask("SELECT system_identifier FROM pg_control_system()"),
            number
        );
        home.ask("DELETE FROM t");
        sandbox.stop().unwrap();
    }
    assert_eq!(copied.is_reflinked, data.is_some());
}

#[test]
fn where_blocks_are_copied() {
    // The directory of the tests is on none that shares blocks, or this says so.
    comes_back(None);
}

#[test]
fn where_blocks_are_shared() {
    comes_back(Some(FileSystemPlan {
        kind: FileSystemKind::Xfs,
        size_bytes: 400 << 20,
    }));
}
