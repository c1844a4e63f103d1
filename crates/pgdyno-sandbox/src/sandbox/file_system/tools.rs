//! The system's own programs for file systems: mkfs, mount, umount, losetup.

use super::{FileSystem, FileSystemKind, is_mount_point};
use crate::programs;
use crate::sandbox::{SandboxError, network, process};
use pgdyno_server::pause;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Somebody who looks into a directory leaves it within this time, or stays.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
/// Mounts upon one another at one point that are unmounted.
const MOUNTS_MAX: usize = 16;

/// The program that makes a kind, the package that brings it, and its options: no work is left for
/// later, which would go on while something is measured, and nothing is discarded, which would
/// release what the image has reserved.
pub(super) fn maker(kind: FileSystemKind) -> Option<(&'static str, &'static str, &'static [&'static str])> {
    match kind {
        FileSystemKind::Tmpfs => None,
        FileSystemKind::Ext4 => Some((
            "mkfs.ext4",
            "e2fsprogs",
            &[
                "-q",
                "-F",
                "-m",
                "0",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
            ],
        )),
        FileSystemKind::Xfs => Some(("mkfs.xfs", "xfsprogs", &["-q", "-K"])),
        FileSystemKind::Btrfs => Some(("mkfs.btrfs", "btrfs-progs", &["-q", "-K"])),
    }
}

/// The program that makes it is there.
pub(super) fn check_program(kind: FileSystemKind) -> Result<(), SandboxError> {
    match maker(kind) {
        Some((program, package, _)) if !programs::is_there(program, "-V") => {
            Err(SandboxError::NoProgram { program, package })
        }
        _ => Ok(()),
    }
}

/// Runs a program, whose package is named if it is not there.
fn tool(program: &'static str, package: &'static str, arguments: &[&Path]) -> Result<(), SandboxError> {
    let path = programs::find(program);
    // Distinguished from a failure of the program: what is to be done is to install it.
    if path.is_relative() && !programs::is_there(program, "-V") {
        return Err(SandboxError::NoProgram { program, package });
    }
    let mut command = process::command(&path, None, &[]).map_err(SandboxError::io(&path, "run"))?;
    command.args(arguments);
    process::run(program, command).map(|_| ())
}

pub(super) fn mkfs(kind: FileSystemKind, image: &Path) -> Result<(), SandboxError> {
    let Some((program, package, options)) = maker(kind) else {
        return Ok(());
    };
    let options = options.iter().map(Path::new);
    let arguments: Vec<&Path> = options.chain([image]).collect();
    tool(program, package, &arguments)
}

/// Mounts it. The loop device is one that the kernel frees by itself when the mount is gone, even
/// if this process is killed.
pub(super) fn mount(wanted: &FileSystem) -> Result<(), SandboxError> {
    let size = format!("size={},mode=755,nosuid,nodev", wanted.size_bytes);
    let options = match wanted.kind {
        FileSystemKind::Tmpfs => size.as_str(),
        // It would discard by itself, later.
        FileSystemKind::Btrfs => "loop,nosuid,nodev,nodiscard",
        _ => "loop,nosuid,nodev",
    };
    let source = wanted.image.as_deref().unwrap_or(Path::new("pgdyno"));
    let arguments = [
        Path::new("-t"),
        Path::new(wanted.kind.name()),
        Path::new("-o"),
        Path::new(options),
        source,
        &wanted.point,
    ];
    tool("mount", "mount", &arguments)?;
    if let Some(device) = wanted.image.as_deref().and_then(loop_device_of) {
        // Past the cache of the file system below, which would else hold everything a second time
        // and answer reads that were meant for the disk. Where that one cannot, the facts of the
        // storage say so.
        let _ = tool("losetup", "mount", &[Path::new("--direct-io=on"), &device]);
    }
    Ok(())
}

/// Unmounts whatever is mounted at the point.
pub(super) fn unmount(point: &Path) -> Result<(), SandboxError> {
    let deadline = Instant::now() + LEAVES_WITHIN;
    let mut unmounted = 0;
    while unmounted < MOUNTS_MAX && is_mount_point(point)? {
        match tool("umount", "mount", &[point]) {
            Ok(()) => unmounted += 1,
            Err(error) if Instant::now() >= deadline => {
                return Err(SandboxError::FileSystem {
                    what: point.display().to_string(),
                    reason: format!("{error}{}", users_of(point)),
                });
            }
            Err(_) => pause(Duration::from_millis(50)),
        }
    }
    Ok(())
}

/// Who works below a directory, as text for an error.
fn users_of(point: &Path) -> String {
    let those: Vec<String> = processes()
        .filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(point)))
        .map(|process| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            let number = process.file_name().unwrap_or_default().to_string_lossy();
            format!("process {number} ({})", name.trim())
        })
        .collect();
    if those.is_empty() {
        return String::new();
    }
    format!("; working there: {}", those.join(", "))
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .bytes()
                .all(|b| b.is_ascii_digit())
        })
        .map(|entry| entry.path())
}

/// The loop device that shows a file, as "/dev/loop0".
fn loop_device_of(image: &Path) -> Option<PathBuf> {
    let devices = fs::read_dir("/sys/block").ok()?.flatten();
    devices
        .filter(|device| device.file_name().to_string_lossy().starts_with("loop"))
        .find(|device| {
            let file = fs::read_to_string(device.path().join("loop/backing_file"));
            file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == image)
        })
        .map(|device| Path::new("/dev").join(device.file_name()))
}

/// Whether a program still works, perhaps for a process that was killed, that was started to make a
/// part of a sandbox: one of `places`, or a network's name, is one of its arguments.
pub(in crate::sandbox) fn is_being_made(places: &[&Path]) -> bool {
    const PROGRAMS: [&str; 6] = ["initdb", "mount", "umount", "losetup", "mke2fs", network::PROGRAM];
    processes().any(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let mut arguments = line.split('\0');
        let program = arguments.next().and_then(|path| path.rsplit('/').next());
        program.is_some_and(|name| PROGRAMS.contains(&name) || name.starts_with("mkfs."))
            && arguments.any(|argument| places.iter().any(|place| Path::new(argument) == *place))
    })
}
