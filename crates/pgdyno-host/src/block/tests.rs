use super::*;
use crate::access::LocalHost;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A device in a tree that looks like sysfs: place below /sys/devices, number, files with their
/// content, devices below.
fn make(root: &Path, place: &str, number: &str, files: &[(&str, &str)], below: &[&str]) {
    let name = place.rsplit('/').next().unwrap();
    let directory = root.join("sys/devices").join(place);
    fs::create_dir_all(directory.join("slaves")).unwrap();
    fs::write(directory.join("dev"), format!("{number}\n")).unwrap();
    for (file, content) in files {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for other in below {
        let name = other.rsplit('/').next().unwrap();
        symlink(
            // As sysfs has them: within the tree.
            Path::new("/sys/devices").join(other),
            directory.join("slaves").join(name),
        )
        .unwrap();
    }
    for (place_of_link, link) in [
        ("sys/dev/block", number),
        ("sys/class/block", name),
        ("sys/block", name),
    ] {
        fs::create_dir_all(root.join(place_of_link)).unwrap();
        let up = "../".repeat(place_of_link.matches('/').count());
        symlink(
            format!("{up}devices/{place}"),
            root.join(place_of_link).join(link),
        )
        .unwrap();
    }
}

fn shown(devices: &[Device]) -> Vec<String> {
    devices
        .iter()
        .map(|d| format!("{} {} {} > {}", d.depth, d.name, d.kind, d.below.join("+")))
        .collect()
}

#[test]
fn a_partition_belongs_to_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "pci0/block/nvme0n1", "259:0", &[], &[]);
    make(
        dir.path(),
        "pci0/block/nvme0n1/nvme0n1p2",
        "259:2",
        &[("partition", "2\n")],
        &[],
    );
    let host = LocalHost::at(dir.path());
    assert_eq!(disk_of_number(&host, 259, 2).unwrap(), "nvme0n1");
    assert_eq!(disk_of_number(&host, 259, 0).unwrap(), "nvme0n1");
    assert!(disk_of_number(&host, 0, 31).is_err());
    let devices = devices_below(&host, &[(259, 2)]).unwrap();
    assert_eq!(
        shown(&devices),
        ["0 nvme0n1p2 partition > nvme0n1", "1 nvme0n1 nvme > "]
    );
    assert!(devices[1].is_disk() && !devices[0].is_disk());
}

#[test]
fn a_volume_on_luks_on_raid_ends_on_both_disks() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let scsi = |disk: &str, part: &str, numbers: [&str; 2]| {
        let place = format!("pci0/ata1/host0/block/{disk}");
        make(root, &place, numbers[0], &[], &[]);
        let place = format!("{place}/{part}");
        make(root, &place, numbers[1], &[("partition", "1\n")], &[]);
        place
    };
    let (a, b) = (
        scsi("sda", "sda1", ["8:0", "8:1"]),
        scsi("sdb", "sdb1", ["8:16", "8:17"]),
    );
    make(
        root,
        "virtual/block/md0",
        "9:0",
        &[("md/level", "raid1\n")],
        &[&a, &b],
    );
    let uuid = [("dm/uuid", "CRYPT-LUKS2-0123-name\n"), ("dm/name", "name\n")];
    make(root, "virtual/block/dm-0", "253:0", &uuid, &["virtual/block/md0"]);
    let uuid = [("dm/uuid", "LVM-abc\n"), ("dm/name", "vg-data\n")];
    make(
        root,
        "virtual/block/dm-1",
        "253:1",
        &uuid,
        &["virtual/block/dm-0"],
    );
    let devices = devices_below(&LocalHost::at(root), &[(253, 1)]).unwrap();
    assert_eq!(
        shown(&devices),
        [
            "0 dm-1 lvm > dm-0",
            "1 dm-0 crypt > md0",
            "2 md0 md > sda1+sdb1",
            "3 sda1 partition > sda",
            "4 sda sata > ",
            "3 sdb1 partition > sdb",
            "4 sdb sata > ",
        ]
    );
}

#[test]
fn a_loop_device_is_on_its_files_disk_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    make(root, "pci0/virtio0/block/vda", "254:0", &[], &[]);
    let file = [("loop/backing_file", "/srv/image\n")];
    make(root, "virtual/block/loop0", "7:0", &file, &[]);
    let file = [("loop/backing_file", "/gone/image (deleted)\n")];
    make(root, "virtual/block/loop1", "7:1", &file, &[]);
    fs::create_dir_all(root.join("srv")).unwrap();
    fs::create_dir_all(root.join("proc/self")).unwrap();
    fs::write(root.join("srv/image"), "").unwrap();
    fs::write(
        root.join("proc/self/mountinfo"),
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n",
    )
    .unwrap();
    let host = LocalHost::at(root);
    assert_eq!(
        shown(&devices_below(&host, &[(7, 0)]).unwrap()),
        ["0 loop0 loop > vda", "1 vda virtio > "]
    );
    let gone = devices_below(&host, &[(7, 1)]).unwrap();
    assert!(gone[0].gap.as_ref().unwrap().contains("not seen"), "{gone:?}");
    assert!(!gone[0].is_disk());
}

#[test]
fn devices_in_a_circle_come_to_an_end() {
    let dir = tempfile::tempdir().unwrap();
    make(
        dir.path(),
        "virtual/block/dm-0",
        "253:0",
        &[("dm/uuid", "x")],
        &["virtual/block/dm-1"],
    );
    make(
        dir.path(),
        "virtual/block/dm-1",
        "253:1",
        &[("dm/uuid", "x")],
        &["virtual/block/dm-0"],
    );
    let devices = devices_below(&LocalHost::at(dir.path()), &[(253, 0)]).unwrap();
    assert_eq!(
        shown(&devices),
        ["0 dm-0 device-mapper > dm-1", "1 dm-1 device-mapper > dm-0"]
    );
}
