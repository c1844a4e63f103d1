//! Who owns a file or a directory, and what others may do there.

use rustix::fd::AsFd;
use rustix::fs::{Gid, Mode, Stat, Uid, fchmod, fchown, fstat};
use std::io;

/// Owner, group and permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Number of the user.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
    /// Permission bits, as 0o600.
    pub mode: u32,
}

impl Owner {
    /// Those of an open file or directory.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn of(handle: impl AsFd) -> io::Result<Owner> {
        Ok(owner_of(&fstat(handle)?))
    }

    /// Whether others than this process's user and root can make entries in such a directory.
    ///
    /// For root whatever a group may write is shared: users are members of root's group too, and
    /// the mask of an access control list is shown as the group's bits. Another user's own group is
    /// the user's alone on most systems.
    pub(super) fn is_shared(self) -> bool {
        let own = Owner::own(0);
        let by_group = self.mode & 0o020 != 0 && (own.uid == 0 || self.gid != own.gid);
        by_group || self.mode & 0o002 != 0
    }

    /// Whether entries of ours stay what they are in such a directory: in /tmp others can make
    /// entries, and exchange none of ours.
    pub(super) fn keeps_entries(self) -> bool {
        const STICKY: u32 = 0o1000;
        is_mine(self.uid) && (!self.is_shared() || self.mode & STICKY != 0)
    }

    /// Whether it is root or this process's user.
    pub fn is_mine(self) -> bool {
        is_mine(self.uid)
    }

    /// Those of this process, with a mode.
    pub fn own(mode: u32) -> Owner {
        Owner {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            mode,
        }
    }
}

pub(super) fn owner_of(found: &Stat) -> Owner {
    Owner {
        uid: found.st_uid,
        gid: found.st_gid,
        mode: found.st_mode & 0o7777,
    }
}

pub(super) fn is_mine(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Gives an open file or directory an owner and a mode. Only root gives away; what is right already
/// stays.
///
/// # Errors
///
/// The error of the system call.
pub fn give(handle: impl AsFd, owner: Owner) -> io::Result<()> {
    let now = owner_of(&fstat(&handle)?);
    if (now.uid, now.gid) != (owner.uid, owner.gid) {
        fchown(
            &handle,
            Some(Uid::from_raw(owner.uid)),
            Some(Gid::from_raw(owner.gid)),
        )?;
    }
    // After the owner: a change of owner takes bits away.
    Ok(fchmod(&handle, Mode::from_raw_mode(owner.mode & 0o7777))?)
}
