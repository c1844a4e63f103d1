//! Block devices: which disk holds a path, and the chain of devices from a file system down to the
//! physical disks.

use crate::access::{HostAccess, HostError};
use crate::device::number_in;
use crate::mount;

/// The whole disk below the file system that holds `path`: its name in /sys/block ("vda",
/// "nvme0n1"). A partition is followed to its disk; device-mapper and md devices are disks of their
/// own here.
pub fn disk_of(host: &dyn HostAccess, path: &str) -> Result<String, HostError> {
    let (major, minor) = host.device_of(path)?;
    disk_of_number(host, major, minor)
}

/// The same, from a device number. File systems without a device (tmpfs, overlay) have none:
/// `Missing`.
fn disk_of_number(host: &dyn HostAccess, major: u32, minor: u32) -> Result<String, HostError> {
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

/// The devices that the one below the file system of `path` is made of, down to the disks: names in
/// /sys/block, those above first; none for a disk. A partition has no queue of its own and is not
/// among them.
pub fn members_of(host: &dyn HostAccess, path: &str) -> Result<Vec<String>, HostError> {
    let (major, minor) = host.device_of(path)?;
    let top = disk_of_number(host, major, minor)?;
    let mut names: Vec<String> = Vec::new();
    for device in devices_below(host, &[(major, minor)])? {
        if device.kind != "partition" && device.name != top && !names.contains(&device.name) {
            names.push(device.name);
        }
    }
    Ok(names)
}

/// Where a device's identity is read, whatever its name is this time: files below /sys/block/NAME.
const IDENTITIES: [(&str, &str); 7] = [
    ("wwid", "wwid"),
    ("wwid", "device/wwid"),
    ("dm", "dm/uuid"),
    ("md", "md/uuid"),
    ("serial", "serial"),
    ("serial", "device/serial"),
    ("file", "loop/backing_file"),
];

/// What identifies a disk over reboots and renaming ("wwid:naa.5000c500"); `None` where it reports
/// none.
pub fn identity_of(host: &dyn HostAccess, disk: &str) -> Option<String> {
    IDENTITIES.iter().find_map(|(kind, file)| {
        let text = host.read_trimmed(&format!("/sys/block/{disk}/{file}")).ok()?;
        (!text.is_empty()).then(|| format!("{kind}:{text}"))
    })
}

/// The disk with this identity, under whatever name it has now.
pub fn disk_with_identity(host: &dyn HostAccess, identity: &str) -> Option<String> {
    let disks = host.list("/sys/block").ok()?;
    disks
        .into_iter()
        .find(|disk| identity_of(host, disk).as_deref() == Some(identity))
}

/// Devices of one path that are read: more is a loop, or nonsense.
const DEVICES_MAX: usize = 256;

/// A block device on the way from a file system to the disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// As in /sys/block, or a partition's ("vda1", "dm-0").
    pub(crate) name: String,
    /// Major and minor number.
    pub(crate) number: (u32, u32),
    /// How many devices are above it.
    pub(crate) depth: usize,
    /// "partition", "crypt", "lvm", "md", "loop", "nvme", "virtio", "sata" and so on;
    /// docs/reference/facts.md lists them.
    pub(crate) kind: &'static str,
    /// Names of the devices right below it; empty for a disk.
    pub(crate) below: Vec<String>,
    /// Why those are not known, where they should be.
    pub(crate) gap: Option<String>,
}

impl Device {
    /// Directory of the device in sysfs.
    pub(crate) fn directory(&self) -> String {
        format!("/sys/dev/block/{}:{}", self.number.0, self.number.1)
    }

    /// Whether it is a disk: nothing that this host knows of is below it.
    pub(crate) fn is_disk(&self) -> bool {
        self.below.is_empty() && self.gap.is_none()
    }
}

/// The devices from a file system down to its disks, those above first; each once.
pub(crate) fn devices_below(host: &dyn HostAccess, tops: &[(u32, u32)]) -> Result<Vec<Device>, HostError> {
    let mut devices: Vec<Device> = Vec::new();
    let mut ahead: Vec<((u32, u32), usize)> = tops.iter().rev().map(|&top| (top, 0)).collect();
    while let Some((number, depth)) = ahead.pop() {
        if devices.len() >= DEVICES_MAX || devices.iter().any(|device| device.number == number) {
            continue;
        }
        let (mut device, below) = device(host, number, depth)?;
        match below {
            Ok(below) => {
                for &number in &below {
                    if let Ok(name) = name_of(host, number) {
                        device.below.push(name);
                    }
                }
                ahead.extend(below.iter().rev().map(|&number| (number, depth + 1)));
            }
            Err(why) => device.gap = Some(why),
        }
        devices.push(device);
    }
    Ok(devices)
}

fn name_of(host: &dyn HostAccess, (major, minor): (u32, u32)) -> Result<String, HostError> {
    let target = host.read_link(&format!("/sys/dev/block/{major}:{minor}"))?;
    Ok(target.rsplit('/').next().unwrap_or_default().to_owned())
}

type Below = Result<Vec<(u32, u32)>, String>;

fn device(host: &dyn HostAccess, number: (u32, u32), depth: usize) -> Result<(Device, Below), HostError> {
    let directory = format!("/sys/dev/block/{}:{}", number.0, number.1);
    let place = host.read_link(&directory)?;
    let mut parts = place.rsplit('/');
    let name = parts.next().unwrap_or_default().to_owned();
    let (kind, below) = if host.read(&format!("{directory}/partition")).is_ok() {
        let disk = parts.next().unwrap_or_default();
        let number = number_in(host, &format!("/sys/block/{disk}/dev"));
        (
            "partition",
            number.map(|number| vec![number]).map_err(|e| e.to_string()),
        )
    } else if let Ok(file) = host.read_trimmed(&format!("{directory}/loop/backing_file")) {
        ("loop", below_file(host, &file))
    } else {
        (
            kind_of(host, &directory, &name, &place),
            below_slaves(host, &directory),
        )
    };
    let device = Device {
        name,
        number,
        depth,
        kind,
        below: Vec::new(),
        gap: None,
    };
    Ok((device, below))
}

/// The devices that a device-mapper or md device is made of.
fn below_slaves(host: &dyn HostAccess, directory: &str) -> Below {
    // Without the directory there are none.
    let slaves = host.list(&format!("{directory}/slaves")).unwrap_or_default();
    slaves
        .iter()
        .map(|slave| number_in(host, &format!("{directory}/slaves/{slave}/dev")).map_err(|e| e.to_string()))
        .collect()
}

/// The devices below the file that a loop device shows.
fn below_file(host: &dyn HostAccess, file: &str) -> Below {
    let seen =
        mount::resolve(host, file).map_err(|e| format!("the file behind it is not seen from here: {e}"))?;
    let mounts = mount::mounts(host).map_err(|e| e.to_string())?;
    let mount = mount::holding(host, &mounts, &seen)
        .ok_or_else(|| format!("no mount seen from here holds {seen}"))?;
    mount::devices_of(host, &mounts, mount)
}

/// Device-mapper's kinds by the start of their uuid; a partition made by kpartx has "partN-" before
/// it.
const MAPPED: [(&str, &str); 6] = [
    ("CRYPT-", "crypt"),
    ("LVM-", "lvm"),
    ("mpath-", "multipath"),
    ("part", "partition"),
    ("DMRAID-", "fake raid"),
    ("stratis-", "stratis"),
];

/// Kinds by the start of the name that the kernel gives.
const NAMED: [(&str, &str); 14] = [
    ("nvme", "nvme"),
    ("vd", "virtio"),
    ("xvd", "xen"),
    ("mmcblk", "mmc"),
    ("zram", "zram"),
    ("nbd", "nbd"),
    ("rbd", "ceph"),
    ("drbd", "drbd"),
    ("bcache", "bcache"),
    ("pmem", "pmem"),
    ("dasd", "dasd"),
    ("scm", "scm"),
    ("ram", "ram"),
    ("sr", "optical"),
];

/// Kinds of SCSI disks by a part of their place in /sys/devices.
const PLACED: [(&str, &str); 7] = [
    ("/usb", "usb"),
    ("/ata", "sata"),
    ("/session", "iscsi"),
    ("/end_device-", "sas"),
    ("/rport-", "fibre channel"),
    ("/virtio", "virtio scsi"),
    ("VMBUS", "hyper-v"),
];

fn kind_of(host: &dyn HostAccess, directory: &str, name: &str, place: &str) -> &'static str {
    if let Ok(uuid) = host.read_trimmed(&format!("{directory}/dm/uuid")) {
        return first_of(&MAPPED, |start| uuid.starts_with(start)).unwrap_or("device-mapper");
    }
    if host.read(&format!("{directory}/md/level")).is_ok() {
        return "md";
    }
    if name.starts_with("sd") {
        return first_of(&PLACED, |part| place.contains(part)).unwrap_or("scsi");
    }
    first_of(&NAMED, |start| name.starts_with(start)).unwrap_or("other")
}

fn first_of(table: &[(&str, &'static str)], holds: impl Fn(&str) -> bool) -> Option<&'static str> {
    table.iter().find(|(sign, _)| holds(sign)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests;
