//! Block devices: which disk holds a path.

use crate::access::{HostAccess, HostError};

/// The whole disk below the file system that holds `path`: its name in /sys/block ("vda", "nvme0n1").
/// A partition is followed to its disk; device-mapper and md devices are disks of their own here.
pub fn disk_of(host: &dyn HostAccess, path: &str) -> Result<String, HostError> {
    let (major, minor) = host.device_of(path)?;
    disk_of_number(host, major, minor)
}

/// The same, from a device number. File systems without a device (tmpfs, overlay) have none: `Missing`.
pub fn disk_of_number(host: &dyn HostAccess, major: u32, minor: u32) -> Result<String, HostError> {
    let link = format!("/sys/dev/block/{major}:{minor}");
    let target = host.read_link(&link)?;
    let mut parts = target.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let parent = parts.next().unwrap_or_default();
    let is_partition = host.read(&format!("{link}/partition")).is_ok();
    Ok(if is_partition { parent } else { name }.to_owned())
}

/// Device number "major:minor" of a disk in /sys/block.
pub fn number_of(host: &dyn HostAccess, disk: &str) -> Result<String, HostError> {
    host.read_trimmed(&format!("/sys/block/{disk}/dev"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LocalHost;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_partition_belongs_to_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("sys/devices/pci0/block/nvme0n1");
        fs::create_dir_all(disk.join("nvme0n1p2")).unwrap();
        fs::write(disk.join("nvme0n1p2/partition"), "2\n").unwrap();
        fs::create_dir_all(dir.path().join("sys/dev/block")).unwrap();
        let link = |number: &str, place: &str| {
            let target = format!("../../devices/pci0/block/{place}");
            symlink(target, dir.path().join("sys/dev/block").join(number)).unwrap();
        };
        link("259:2", "nvme0n1/nvme0n1p2");
        link("259:0", "nvme0n1");
        let host = LocalHost::at(dir.path());
        assert_eq!(disk_of_number(&host, 259, 2).unwrap(), "nvme0n1");
        assert_eq!(disk_of_number(&host, 259, 0).unwrap(), "nvme0n1");
        assert!(disk_of_number(&host, 0, 31).is_err());
    }
}
