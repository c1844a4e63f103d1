//! Mounted file systems: which one holds a path, and on which devices it is.

use crate::access::{HostAccess, HostError};
use crate::device;
use std::io::ErrorKind;
use std::path::Path;

const MOUNTINFO: &str = "/proc/self/mountinfo";
/// Symbolic links followed for one path; the kernel's own limit.
const LINKS_MAX: usize = 40;
/// Overlays upon overlays that are followed.
const OVERLAYS_MAX: usize = 4;

/// A line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Device number; major 0 where the file system has no device of its own.
    pub(crate) number: (u32, u32),
    /// Which directory of the file system is seen here.
    pub(crate) root: String,
    /// Directory that it is mounted on.
    pub(crate) point: String,
    /// Options of this mount, as "rw,noatime".
    pub(crate) options: String,
    /// Type of the file system: "ext4".
    pub(crate) kind: String,
    /// Device or name it was mounted from.
    pub(crate) source: String,
    /// Options of the file system.
    pub(crate) super_options: String,
}

impl Mount {
    /// All options, those of the mount first, each once.
    pub(crate) fn all_options(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for option in self.options.split(',').chain(self.super_options.split(',')) {
            if !option.is_empty() && !all.contains(&option) {
                all.push(option);
            }
        }
        all
    }
}

/// All mounts that this process sees, in the order in which they were made.
pub(crate) fn mounts(host: &dyn HostAccess) -> Result<Vec<Mount>, HostError> {
    Ok(parse(&host.read(MOUNTINFO)?))
}

/// Lines that are not as documented are skipped.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let (major, minor) = left.next()?.split_once(':')?;
    let (root, point, options) = (left.next()?, left.next()?, left.next()?);
    let mut right = right.split(' ');
    Some(Mount {
        number: (major.parse().ok()?, minor.parse().ok()?),
        root: unescaped(root),
        point: unescaped(point),
        options: options.to_owned(),
        kind: right.next()?.to_owned(),
        source: unescaped(right.next()?),
        super_options: right.next().unwrap_or_default().to_owned(),
    })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if byte.is_ascii() => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The mount that holds `path`, which is free of symbolic links. The device number decides where it
/// can be had; btrfs shows another one in mountinfo than in its files' status, so the place decides
/// then.
pub(crate) fn holding<'m>(host: &dyn HostAccess, mounts: &'m [Mount], path: &str) -> Option<&'m Mount> {
    holding_on(mounts, path, host.device_of(path).ok())
}

/// The same where the path's device number is this one.
pub(crate) fn holding_on<'m>(
    mounts: &'m [Mount],
    path: &str,
    number: Option<(u32, u32)>,
) -> Option<&'m Mount> {
    mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| is_below(path, &mount.point))
        .max_by_key(|(at, mount)| (Some(mount.number) == number, mount.point.len(), *at))
        .map(|(_, mount)| mount)
}

/// Whether a path is on a file system that another program or machine answers for, which can keep a
/// reader waiting without end. By the list of mounts alone: nothing of the path is touched.
pub fn may_hang(host: &dyn HostAccess, path: &Path) -> bool {
    const KINDS: [&str; 9] = [
        "nfs", "cifs", "smb", "fuse", "autofs", "afs", "ceph", "9p", "gluster",
    ];
    let path = path.to_string_lossy();
    let mounts = mounts(host).unwrap_or_default();
    let holding = mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| is_below(&path, &mount.point))
        .max_by_key(|(at, mount)| (mount.point.trim_end_matches('/').len(), *at));
    holding.is_some_and(|(_, mount)| KINDS.iter().any(|kind| mount.kind.starts_with(kind)))
}

/// Whether `path` is `directory` or below it.
pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path without symbolic links, as the target's own root has them. Everything but the last part
/// must be there.
pub(crate) fn resolve(host: &dyn HostAccess, path: &str) -> Result<String, HostError> {
    resolve_below(host, "", path)
}

/// The same of a path below another root, as whose own links lead.
pub(crate) fn resolve_below(host: &dyn HostAccess, root: &str, path: &str) -> Result<String, HostError> {
    let mut ahead: Vec<String> = parts(path);
    let mut done = String::new();
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            done.truncate(done.rfind('/').unwrap_or(0));
            continue;
        }
        let here = format!("{done}/{part}");
        match host.read_link(&format!("{root}{here}")) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(HostError::Malformed {
                        path: path.to_owned(),
                        line: 1,
                        expected: "at most 40 symbolic links on the way",
                        found: here,
                    });
                }
                if target.starts_with('/') {
                    done.clear();
                }
                ahead.extend(parts(&target));
            }
            // Not a link.
            Err(HostError::Io { source, .. }) if source.kind() == ErrorKind::InvalidInput => done = here,
            Err(error) => return Err(error),
        }
    }
    Ok(if done.is_empty() { "/".to_owned() } else { done })
}

/// The parts of a path, last one first.
fn parts(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .rev()
        .map(str::to_owned)
        .collect()
}

/// Numbers of the block devices that a mount is on; the reason where there are none.
pub(crate) fn devices_of(
    host: &dyn HostAccess,
    mounts: &[Mount],
    mount: &Mount,
) -> Result<Vec<(u32, u32)>, String> {
    devices_within(host, mounts, mount, OVERLAYS_MAX)
}

fn devices_within(
    host: &dyn HostAccess,
    mounts: &[Mount],
    mount: &Mount,
    overlays: usize,
) -> Result<Vec<(u32, u32)>, String> {
    if mount.number.0 != 0 {
        return Ok(vec![mount.number]);
    }
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => {
            return Err(format!(
                "{} keeps files in memory: there is no block device",
                mount.kind
            ));
        }
        "zfs" => {
            return Err(format!(
                "ZFS keeps its own list of devices: `zpool status` shows those of {}",
                mount.source
            ));
        }
        "overlay" => return below_overlay(host, mounts, mount, overlays),
        _ => {}
    }
    if !mount.source.starts_with("/dev/") {
        return Err(format!(
            "{} from {} has no block device on this host: it is reached over a network or through another program",
            mount.kind, mount.source
        ));
    }
    let source = resolve(host, &mount.source).map_err(|e| e.to_string())?;
    let name = source.rsplit('/').next().unwrap_or_default();
    let first = device::number_of_name(host, name).map_err(|e| e.to_string())?;
    let mut all = vec![first];
    if mount.kind == "btrfs" {
        for number in other_members(host, name) {
            if !all.contains(&number) {
                all.push(number);
            }
        }
    }
    Ok(all)
}

/// An overlay's files are written to its upper directory.
fn below_overlay(
    host: &dyn HostAccess,
    mounts: &[Mount],
    mount: &Mount,
    overlays: usize,
) -> Result<Vec<(u32, u32)>, String> {
    let upper = mount
        .super_options
        .split(',')
        .find_map(|option| option.strip_prefix("upperdir="));
    let below = upper
        .filter(|_| overlays > 0)
        .and_then(|upper| resolve(host, upper).ok())
        .and_then(|upper| holding(host, mounts, &upper).cloned());
    match below {
        Some(below) if below.number != mount.number => devices_within(host, mounts, &below, overlays - 1),
        _ => Err("the layers of this overlay are not seen from here (a container)".to_owned()),
    }
}

/// All devices of the btrfs file system that the device `name` is a member of.
fn other_members(host: &dyn HostAccess, name: &str) -> Vec<(u32, u32)> {
    let systems = host.list("/sys/fs/btrfs").unwrap_or_default();
    let members = systems.into_iter().find_map(|system| {
        let devices = host.list(&format!("/sys/fs/btrfs/{system}/devices")).ok()?;
        devices.iter().any(|device| device == name).then_some(devices)
    });
    members
        .unwrap_or_default()
        .iter()
        .filter_map(|device| device::number_of_name(host, device).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LocalHost;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn path_below_a_network_file_system_may_hang_and_one_beside_it_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let text = "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n30 27 0:50 / /home/far rw - nfs4 server:/home rw\n\
                    31 30 0:51 / /home/far/near rw - tmpfs tmpfs rw\n32 27 0:52 / /auto rw - autofs map rw\n";
        fs::write(dir.path().join("proc/self/mountinfo"), text).unwrap();
        let host = LocalHost::at(dir.path());
        let check =
            |path: &str, expected: bool| assert_eq!(may_hang(&host, Path::new(path)), expected, "{path}");
        check("/home/far/a", true);
        check("/home/far", true);
        check("/auto/a", true);
        check("/home/farther", false);
        check("/home/far/near/a", false);
        check("/root", false);
    }

    const LINES: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw,discard
30 27 254:16 /sub /srv/my\\040data rw,noatime - xfs /dev/vdb rw,attr2,noatime
31 27 0:40 / /srv/my\\040data/fast rw - tmpfs tmpfs rw,size=1g
32 27 0:41 / /backup rw - nfs4 store:/backup rw,vers=4.2
nonsense - x";

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let (host, mounts) = (LocalHost::at(dir.path()), parse(LINES));
        assert_eq!(mounts.len(), 5);
        let check = |path: &str, point: &str| {
            assert_eq!(holding(&host, &mounts, path).unwrap().point, point, "{path}");
        };
        check("/srv/my data/x", "/srv/my data");
        check("/srv/my data", "/srv/my data");
        check("/srv/my database", "/");
        check("/srv/my data/fast/wal", "/srv/my data/fast");
        check("/", "/");
        assert_eq!(mounts[2].all_options(), ["rw", "noatime", "attr2"]);
    }

    #[test]
    fn file_systems_without_a_device_say_why() {
        let dir = tempfile::tempdir().unwrap();
        let (host, mounts) = (LocalHost::at(dir.path()), parse(LINES));
        let check = |at: usize, reason: &str| {
            let why = devices_of(&host, &mounts, &mounts[at]).unwrap_err();
            assert!(why.contains(reason), "{why}");
        };
        check(3, "in memory");
        check(4, "network");
        assert_eq!(devices_of(&host, &mounts, &mounts[2]), Ok(vec![(254, 16)]));
    }

    #[test]
    fn links_are_followed_within_the_root() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::create_dir_all(dir.path().join("c")).unwrap();
        symlink("/c", dir.path().join("a/absolute")).unwrap();
        symlink("../../c", dir.path().join("a/b/relative")).unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        let host = LocalHost::at(dir.path());
        for path in ["/a/absolute", "/a/b/relative", "/a/b/../../c", "/c/.", "//c/"] {
            assert_eq!(resolve(&host, path).unwrap(), "/c", "{path}");
        }
        assert_eq!(resolve(&host, "/").unwrap(), "/");
        assert!(
            resolve(&host, "/loop")
                .unwrap_err()
                .to_string()
                .contains("40 symbolic")
        );
        assert!(resolve(&host, "/a/none").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,200}", path in "\\PC{0,40}") {
            let _ = parse(&format!("1 2 3:4 {text} - {text}"));
            let _ = unescaped(&text);
            let _ = is_below(&path, &text);
        }
    }
}
