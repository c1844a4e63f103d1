//! What sandboxes leave mounted.

use super::{Home, kernel, until, until_is};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What is mounted at or below a directory: (point, file system, source).
pub fn mounts_below(directory: &Path) -> Vec<(String, String, String)> {
    let text = kernel("/proc/self/mountinfo");
    let directory = format!("{}/", directory.display());
    let mounts = text.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.to_owned();
        let mut right = right.split(' ').map(str::to_owned);
        Some((point, right.next()?, right.next()?))
    });
    mounts
        .filter(|(point, ..)| format!("{point}/").starts_with(&directory))
        .collect()
}

/// Files that loop devices show, below a directory.
pub fn loops_below(directory: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").expect("devices").flatten();
    let files = devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files
        .map(|file| file.trim().to_owned())
        .filter(|file| Path::new(file).starts_with(directory))
        .collect()
}

/// Unmounts what is mounted there. Another process that asks all file systems for their sizes keeps
/// it busy for a moment.
#[track_caller]
pub fn unmount(point: &Path) {
    until("umount", || {
        let output = Command::new("umount").arg(point).output().expect("umount runs");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    });
}

/// A kernel may free a loop device a moment after its mount is gone.
pub fn nothing_is_left(home: &Home) {
    until_is("loop devices that are left", Vec::new(), || {
        loops_below(home.path.path())
    });
    assert_eq!(mounts_below(home.path.path()), []);
    assert!(!home.file("state/sandboxes/x").exists());
}
