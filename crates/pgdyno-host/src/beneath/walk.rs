//! Path resolution in user space, one component at a time from an open directory: no step is
//! resolved twice, so a rename between two steps redirects nothing. It needs no openat2(2), which
//! older kernels and some containers lack.

use super::{is_mine, owner_of, refused};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as the kernel follows in one path.
const LINKS_MAX: usize = 40;
/// Each component on the way is one open handle.
const COMPONENTS_MAX: usize = 128;

/// The end of a path: a name in a directory that is held open. "." is the directory itself.
pub(crate) struct Reached {
    pub(crate) parent: OwnedFd,
    pub(crate) name: OsString,
    /// The owners of the symbolic links that were followed.
    pub(super) links_of: Vec<u32>,
    /// Whether another user can exchange a directory or a link on the way.
    pub(super) is_exposed: bool,
}

impl Reached {
    /// Opens what was reached; a symbolic link that took its place since is not followed.
    pub(crate) fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(openat(&self.parent, &self.name, flags, Mode::empty())?)
    }
}

/// Resolves `path` with `root` as "/": absolute links begin there, and ".." ends there.
/// `through_last`: a symbolic link at the end is followed, too.
pub(crate) fn walk(root: BorrowedFd<'_>, path: &Path, through_last: bool) -> io::Result<Reached> {
    let mut way = vec![root.try_clone_to_owned()?];
    let mut links_of = Vec::new();
    let mut is_exposed = false;
    let mut ahead = Vec::new();
    push(&mut ahead, path);
    while let Some(name) = ahead.pop() {
        if ahead.len() + way.len() > COMPONENTS_MAX {
            return Err(refused(format!(
                "the path has more than {COMPONENTS_MAX} components"
            )));
        }
        if name == OsStr::new("..") {
            if way.len() > 1 {
                way.pop();
            }
            continue;
        }
        let is_last = ahead.is_empty();
        let handle = opened(&way, &name, OFlags::PATH)?;
        let found = fstat(&handle)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink if through_last || !is_last => {
                links_of.push(found.st_uid);
                is_exposed |= !is_mine(found.st_uid);
                if links_of.len() > LINKS_MAX {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                let target = readlinkat(&handle, "", Vec::new())?.into_bytes();
                let target = PathBuf::from(OsString::from_vec(target));
                if target.is_absolute() {
                    way.truncate(1);
                }
                push(&mut ahead, &target);
            }
            _ if is_last => return reached(way, name, links_of, is_exposed),
            FileType::Directory => {
                is_exposed |= !owner_of(&found).keeps_entries();
                way.push(handle);
            }
            _ => return Err(rustix::io::Errno::NOTDIR.into()),
        }
    }
    reached(way, OsString::from("."), links_of, is_exposed)
}

fn opened(way: &[OwnedFd], name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    let here = way
        .last()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(here.as_fd(), name, flags, Mode::empty())?)
}

fn reached(
    mut way: Vec<OwnedFd>,
    name: OsString,
    links_of: Vec<u32>,
    is_exposed: bool,
) -> io::Result<Reached> {
    let parent = way
        .pop()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(Reached {
        parent,
        name,
        links_of,
        is_exposed,
    })
}

/// Its components before those that are ahead already; the next one is the last of the list.
fn push(ahead: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    let parts: Vec<OsString> = parts.collect();
    ahead.extend(parts.into_iter().rev());
}
