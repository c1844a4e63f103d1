//! File systems of a sandbox's own: made, mounted, unmounted and removed here alone.
//!
//! One is memory (tmpfs), or an image file on a loop device. What is about to be made is recorded
//! first, and its image has a name that nobody else can have given: so that whatever a killed
//! process leaves is found, and nothing else is taken for it. The loop device is the kernel's to
//! free: it goes with the mount (autoclear), and a mount goes with `unmount`.

mod tools;

use super::SandboxError;
use pgdyno_host::{
    Directory, HostAccess, LocalHost, Space, USUAL_MODE, make_directory, memory_available_bytes,
};
use rustix::fs::FallocateFlags;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tools::{mkfs, mount, unmount};

pub(super) use tools::is_being_made;

/// Room that an image leaves on the file system that holds it.
const LEFT_FREE_BYTES: u64 = 64 << 20;

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemKind {
    /// In memory: gone with a restart of the machine.
    Tmpfs,
    /// ext4, in an image file.
    Ext4,
    /// XFS, in an image file.
    Xfs,
    /// Btrfs, in an image file.
    Btrfs,
}

impl FileSystemKind {
    /// Every kind, once, for parsing and help.
    pub const ALL: [FileSystemKind; 4] = [
        FileSystemKind::Tmpfs,
        FileSystemKind::Ext4,
        FileSystemKind::Xfs,
        FileSystemKind::Btrfs,
    ];

    /// Name of the kind as the kernel has it: "ext4".
    pub fn name(self) -> &'static str {
        match self {
            FileSystemKind::Tmpfs => "tmpfs",
            FileSystemKind::Ext4 => "ext4",
            FileSystemKind::Xfs => "xfs",
            FileSystemKind::Btrfs => "btrfs",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<FileSystemKind> {
        FileSystemKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The program that makes one, and Debian's package of it; `None` where none is needed.
    pub fn program(self) -> Option<(&'static str, &'static str)> {
        tools::maker(self).map(|(program, package, _)| (program, package))
    }

    /// The least size: a new server's files with some room; mkfs.xfs needs 300 MB, mkfs.btrfs 109
    /// MB.
    pub fn bytes_min(self) -> u64 {
        match self {
            FileSystemKind::Tmpfs | FileSystemKind::Ext4 => 128 << 20,
            FileSystemKind::Xfs => 320 << 20,
            FileSystemKind::Btrfs => 256 << 20,
        }
    }

    /// `f_type` of statfs(2).
    fn magic(self) -> i64 {
        match self {
            FileSystemKind::Tmpfs => 0x0102_1994,
            FileSystemKind::Ext4 => 0xEF53,
            FileSystemKind::Xfs => 0x5846_5342,
            FileSystemKind::Btrfs => 0x9123_683E,
        }
    }
}

/// A file system to make for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemPlan {
    /// Kind of the file system.
    pub kind: FileSystemKind,
    /// Its size; what it needs for itself is part of it.
    pub size_bytes: u64,
}

impl FileSystemPlan {
    /// The plan of a text as "tmpfs:2G" or "ext4:4G".
    pub fn named(text: &str) -> Result<FileSystemPlan, String> {
        let wrong = || {
            let names = FileSystemKind::ALL.map(FileSystemKind::name);
            format!(
                "expected a file system and its size, e.g. ext4:4G; there are {}",
                names.join(", ")
            )
        };
        let (kind, size) = text.split_once(':').ok_or_else(wrong)?;
        let kind = FileSystemKind::named(kind).ok_or_else(wrong)?;
        let size_bytes = pgdyno_host::size_bytes(size)?;
        if size_bytes < kind.bytes_min() {
            let (name, least_mb) = (kind.name(), kind.bytes_min() >> 20);
            return Err(format!(
                "{text} is too small: expected at least {name}:{least_mb}M"
            ));
        }
        Ok(FileSystemPlan { kind, size_bytes })
    }
}

/// The directories of a sandbox that a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// The data directory, and the WAL where it is not elsewhere.
    Data,
    /// The directory of WAL, pg_wal.
    Wal,
    /// The tablespace of temporary files.
    Temp,
}

impl Holds {
    const ALL: [Holds; 3] = [Holds::Data, Holds::Wal, Holds::Temp];

    fn name(self) -> &'static str {
        match self {
            Holds::Data => "data",
            Holds::Wal => "wal",
            Holds::Temp => "temp",
        }
    }
}

/// One that a sandbox has, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Directories that are on it.
    pub holds: Holds,
    /// Kind of the file system.
    pub kind: FileSystemKind,
    /// Size of its image, or most memory that it takes.
    pub size_bytes: u64,
    /// Where it is mounted, below the sandbox's directory.
    pub point: PathBuf,
    /// The file it is in; `None` for memory.
    pub image: Option<PathBuf>,
}

impl FileSystem {
    /// What would be made for the sandbox at `directory`; `images` is where its image goes if not
    /// there. Makes nothing.
    pub(super) fn planned(
        directory: &Path,
        images: Option<&Path>,
        holds: Holds,
        plan: FileSystemPlan,
    ) -> Result<FileSystem, SandboxError> {
        // As the kernel reports it: what is mounted, and behind which device, is found by its path.
        let directory = fs::canonicalize(directory).map_err(SandboxError::io(directory, "read"))?;
        let image = match (plan.kind, images) {
            (FileSystemKind::Tmpfs, _) => None,
            (_, images) => {
                let place = images.unwrap_or(&directory);
                let place = fs::canonicalize(place).map_err(SandboxError::io(place, "read"))?;
                Some(place.join(format!("{}{}.{}", IMAGE_PREFIX, token()?, holds.name())))
            }
        };
        Ok(FileSystem {
            holds,
            kind: plan.kind,
            size_bytes: plan.size_bytes,
            point: directory.join(format!("{}.mount", holds.name())),
            image,
        })
    }

    /// The directory on it for the server.
    pub(super) fn place(&self) -> PathBuf {
        self.point.join(self.holds.name())
    }

    /// Makes and mounts it; it has been recorded.
    pub(super) fn make(&self) -> Result<(), SandboxError> {
        make_directory(&self.point, USUAL_MODE).map_err(SandboxError::io(&self.point, "made"))?;
        if let Some(image) = &self.image {
            let Some((above, name)) = self.image_place()? else {
                return mount(self);
            };
            let file = above
                .create(name, 0o600)
                .map_err(SandboxError::io(image, "made"))?;
            // All of it is reserved now: a full disk must not be found out by the server.
            let reserved = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.size_bytes);
            reserved.map_err(|e| SandboxError::FileSystem {
                what: image.display().to_string(),
                reason: format!("{} bytes could not be reserved: {e}", self.size_bytes),
            })?;
            mkfs(self.kind, image)?;
        }
        mount(self)
    }

    /// Mounts it again where it was unmounted, as by a restart of the machine.
    pub(super) fn restore(&self, sandbox: &str) -> Result<(), SandboxError> {
        if self.is_mounted()? {
            return self.check_kind();
        }
        match &self.image {
            Some(image) if image.exists() => {
                self.image_place()?;
                mount(self)
            }
            None if self.holds == Holds::Temp => mount(self),
            gone => Err(SandboxError::Lost {
                name: sandbox.to_owned(),
                what: match gone {
                    Some(image) => format!("its image {} is not there any more", image.display()),
                    None => format!(
                        "it was in memory (tmpfs at {}), which a restart of the machine or an unmount empties",
                        self.point.display()
                    ),
                },
            }),
        }
    }

    /// The directory of its image, by whose path root mounts it, and the image's name.
    fn image_place(&self) -> Result<Option<(Directory, OsString)>, SandboxError> {
        let Some(image) = &self.image else {
            return Ok(None);
        };
        let (above, name) = Directory::above(image).map_err(SandboxError::io(image, "opened"))?;
        if !above.keeps_paths() {
            return Err(SandboxError::FileSystem {
                what: image.display().to_string(),
                reason: "other users than root can exchange it, or a directory above it".to_owned(),
            });
        }
        Ok(Some((above, name)))
    }

    /// Whether something is mounted at its point. Missing is not mounted.
    pub(super) fn is_mounted(&self) -> Result<bool, SandboxError> {
        is_mount_point(&self.point)
    }

    fn check_kind(&self) -> Result<(), SandboxError> {
        let found = rustix::fs::statfs(&self.point)
            .map_err(|e| SandboxError::io(&self.point, "read")(e.into()))?
            .f_type;
        if i128::from(found) == i128::from(self.kind.magic()) {
            return Ok(());
        }
        Err(SandboxError::FileSystem {
            what: self.point.display().to_string(),
            reason: format!("expected {}, found another file system mounted", self.kind.name()),
        })
    }

    /// Unmounts and removes it, as far as it was ever made. Nothing outside of `directory` is
    /// touched but an image with a name that only a sandbox's can have.
    pub(super) fn remove(&self, directory: &Path) -> Result<(), SandboxError> {
        let directory = fs::canonicalize(directory).map_err(SandboxError::io(directory, "read"))?;
        if self.point.parent() != Some(&directory) {
            return Err(SandboxError::FileSystem {
                what: self.point.display().to_string(),
                reason: format!("it is not in {} and is left alone", directory.display()),
            });
        }
        unmount(&self.point)?;
        if let Some(image) = &self.image {
            let name = image.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with(IMAGE_PREFIX) {
                return Err(SandboxError::FileSystem {
                    what: image.display().to_string(),
                    reason: "it has no sandbox's name and is left alone".into(),
                });
            }
            let removed = Directory::above(image).and_then(|(above, name)| above.remove(name));
            removed
                .or_else(absent)
                .map_err(SandboxError::io(image, "removed"))?;
        }
        let removed = Directory::above(&self.point).and_then(|(above, name)| above.remove_empty(name));
        removed
            .or_else(absent)
            .map_err(SandboxError::io(&self.point, "removed"))
    }
}

const IMAGE_PREFIX: &str = "pgdyno-sandbox-";

/// What is not there need not be removed.
fn absent(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// A directory is on another file system than the one above it. True of a mount point alone here: a
/// directory on overlayfs or a subvolume that could look like one is nothing that a sandbox makes.
fn is_mount_point(point: &Path) -> Result<bool, SandboxError> {
    let device = |path: &Path| match fs::metadata(path) {
        Ok(meta) => Ok(Some(meta.dev())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(SandboxError::io(path, "read")(e)),
    };
    let above = point.parent().unwrap_or(Path::new("/"));
    Ok(match (device(point)?, device(above)?) {
        (Some(here), Some(above)) => here != above,
        _ => false,
    })
}

/// Unmounts what of a sandbox whose record is lost is mounted in its directory. Its images
/// elsewhere are not known.
pub(super) fn unmount_below(directory: &Path) -> Result<(), SandboxError> {
    for holds in Holds::ALL {
        unmount(&directory.join(format!("{}.mount", holds.name())))?;
    }
    Ok(())
}

/// What keeps the file systems of a plan from being made, found before anything is. `place` will
/// hold the images.
pub(super) fn check(plans: &[FileSystemPlan], place: &Path) -> Result<(), SandboxError> {
    if plans.is_empty() {
        return Ok(());
    }
    if !pgdyno_server::User::is_root() {
        return Err(SandboxError::NeedsRoot);
    }
    for plan in plans {
        if plan.size_bytes < plan.kind.bytes_min() {
            return Err(SandboxError::FileSystem {
                what: format!("a {} of {} bytes", plan.kind.name(), plan.size_bytes),
                reason: format!("it needs at least {} bytes", plan.kind.bytes_min()),
            });
        }
        tools::check_program(plan.kind)?;
    }
    let sum = |in_memory: bool| -> u64 {
        let those = plans
            .iter()
            .filter(|plan| (plan.kind == FileSystemKind::Tmpfs) == in_memory);
        those.fold(0, |sum, plan| sum.saturating_add(plan.size_bytes))
    };
    let (memory, images) = (sum(true), sum(false));
    if let Some(available) = memory_available_bytes(&LocalHost::new()).filter(|&bytes| memory > bytes) {
        return Err(SandboxError::FileSystem {
            what: format!("a tmpfs of {memory} bytes"),
            reason: format!("this machine has {available} bytes of memory available"),
        });
    }
    if images == 0 {
        return Ok(());
    }
    check_space(images.saturating_add(LEFT_FREE_BYTES), place)
}

/// `place`, or what is there above it, has room for so many bytes.
fn check_space(bytes: u64, place: &Path) -> Result<(), SandboxError> {
    let there = place
        .ancestors()
        .find(|above| above.is_dir())
        .unwrap_or(Path::new("/"));
    match LocalHost::new().space_of(&there.to_string_lossy()) {
        Some(Ok(Space { free_bytes, .. })) if free_bytes < bytes => Err(SandboxError::FileSystem {
            what: place.display().to_string(),
            reason: format!("{free_bytes} bytes are free there, an image and some room need {bytes}"),
        }),
        Some(Err(error)) => Err(SandboxError::FileSystem {
            what: place.display().to_string(),
            reason: error.to_string(),
        }),
        _ => Ok(()),
    }
}

/// What makes a name one that nobody else has given: 24 hexadecimal digits.
pub(super) fn token() -> Result<String, SandboxError> {
    token_of(12)
}

/// So many random bytes, as hexadecimal digits.
pub(super) fn token_of(length: usize) -> Result<String, SandboxError> {
    let source = Path::new("/dev/urandom");
    let mut bytes = vec![0_u8; length];
    fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(SandboxError::io(source, "read"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
