//! What a directory is stored on: file system, mount, and every block device down to the disks.

use super::sheet::{Sheet, number_of, scalar, text_of};
use crate::access::HostAccess;
use crate::block::{self, Device};
use crate::choices::chosen;
use crate::fact::Fact;
use crate::mount::{self, Mount};
use serde_json::{Map, Value};

const MOUNTINFO: &str = "/proc/self/mountinfo";
/// `size` in sysfs counts in sectors of this size, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

/// Where a path really is.
struct Place {
    path: String,
    mount: Mount,
    devices: Result<Vec<Device>, String>,
}

impl Place {
    fn find(host: &dyn HostAccess, path: &str) -> Result<Place, String> {
        let path = mount::resolve(host, path).map_err(super::sheet::why)?;
        let mounts = mount::mounts(host).map_err(super::sheet::why)?;
        let mount = mount::holding(host, &mounts, &path)
            .ok_or_else(|| format!("no mount that is seen from here holds {path}"))?
            .clone();
        let devices = mount::devices_of(host, &mounts, &mount)
            .and_then(|tops| block::devices_below(host, &tops).map_err(super::sheet::why));
        Ok(Place { path, mount, devices })
    }

    /// The devices that the file system itself is on.
    fn tops(&self) -> Result<Vec<&Device>, String> {
        let devices = self.devices.as_ref().map_err(Clone::clone)?;
        Ok(devices.iter().filter(|device| device.depth == 0).collect())
    }

    /// The disks at the end, sorted; and why there may be more.
    fn disks(&self) -> Result<(Vec<String>, Option<String>), String> {
        let devices = self.devices.as_ref().map_err(Clone::clone)?;
        let mut disks: Vec<String> = devices
            .iter()
            .filter(|device| device.is_disk())
            .map(|device| device.name.clone())
            .collect();
        disks.sort();
        let gap = devices.iter().find_map(|device| {
            let why = device.gap.as_ref()?;
            Some(format!("below {}: {why}", device.name))
        });
        Ok((disks, gap))
    }
}

/// Facts of the storage that holds `path`; `role` says what is kept there: "data", "wal",
/// "temp.NAME". Names begin with "storage.ROLE.".
pub fn storage_facts(host: &dyn HostAccess, role: &str, path: &str) -> Vec<Fact> {
    let mut sheet = Sheet::new(host);
    let name = |what: &str| format!("storage.{role}.{what}");
    let place = match Place::find(host, path) {
        Ok(place) => place,
        Err(why) => {
            for what in ["path", "file_system", "devices"] {
                sheet.note::<Value>(&name(what), path, Err(why.clone()));
            }
            return sheet.facts;
        }
    };
    let mount = &place.mount;
    sheet.note(&name("path"), path, Ok(place.path.clone()));
    sheet.note(&name("file_system"), MOUNTINFO, Ok(mount.kind.clone()));
    sheet.note(&name("mount_point"), MOUNTINFO, Ok(mount.point.clone()));
    sheet.note(&name("mount_source"), MOUNTINFO, Ok(mount.source.clone()));
    let options: Vec<String> = mount
        .all_options()
        .iter()
        .map(|option| shown_option(option))
        .collect();
    sheet.note(&name("mount_options"), MOUNTINFO, Ok(options));
    let space = match host.space_of(&place.path) {
        Some(space) => space.map_err(super::sheet::why),
        None => Err("not available from a copy of a machine's files".to_owned()),
    };
    sheet.note(
        &name("bytes"),
        "statvfs()",
        space.as_ref().map(|space| space.bytes).map_err(Clone::clone),
    );
    sheet.note(
        &name("free_bytes"),
        "statvfs()",
        space.map(|space| space.free_bytes),
    );
    let source = "/sys/dev/block";
    let disks = place.disks().and_then(|(disks, gap)| match gap {
        None => Ok(disks),
        Some(gap) => Err(gap),
    });
    sheet.note(&name("disks"), source, disks);
    for (what, file) in [("read_ahead_kb", "read_ahead_kb"), ("rotational", "rotational")] {
        let of_top = place.tops().and_then(|tops| {
            let top = tops
                .first()
                .ok_or_else(|| "there is no block device".to_owned())?;
            queue(host, &top.directory(), file)
        });
        let value = of_top.map(|text| {
            if what == "rotational" {
                (text == "1").into()
            } else {
                scalar(&text)
            }
        });
        sheet.note(&name(what), "/sys/block/*/queue, of the uppermost device", value);
    }
    let devices = place.devices.as_ref().map_err(Clone::clone);
    let devices = devices.map(|all| {
        all.iter()
            .map(|device| described(host, device))
            .collect::<Vec<_>>()
    });
    sheet.note(&name("devices"), source, devices);
    sheet.facts
}

/// Network file systems take passwords as options.
fn shown_option(option: &str) -> String {
    match option.split_once('=') {
        Some((name, _)) if name.contains("pass") || name.contains("secret") || name.contains("key") => {
            format!("{name}=(not shown)")
        }
        _ => option.to_owned(),
    }
}

/// Whether two paths, the data's and the WAL's, end on the same block device, and on the same disk.
/// Two loop devices over files of one disk are two devices on the same disk: both are shown.
/// `same_disk` is null where the disks are not all known and none is shared as far as they are.
pub fn same_device_fact(host: &dyn HostAccess, data: &str, wal: &str) -> Fact {
    let outcome = Place::find(host, data)
        .and_then(|data| Ok((data, Place::find(host, wal)?)))
        .and_then(|(data, wal)| compared(&data, &wal));
    Fact::new("storage.wal_on_device_of_data", "/sys/dev/block", outcome)
}

fn compared(data: &Place, wal: &Place) -> Result<Value, String> {
    let names = |place: &Place| -> Result<Vec<String>, String> {
        Ok(place.tops()?.iter().map(|device| device.name.clone()).collect())
    };
    let (data_tops, wal_tops) = (names(data)?, names(wal)?);
    let ((data_disks, data_gap), (wal_disks, wal_gap)) = (data.disks()?, wal.disks()?);
    let shared = data_disks.iter().any(|disk| wal_disks.contains(disk));
    let known = data_gap.is_none() && wal_gap.is_none();
    let same_device = data_tops.iter().any(|top| wal_tops.contains(top));
    Ok(super::sheet::object([
        ("same_device", same_device.into()),
        (
            "same_disk",
            (shared || known || same_device)
                .then_some(shared || same_device)
                .into(),
        ),
        ("data_devices", data_tops.into()),
        ("wal_devices", wal_tops.into()),
        ("data_disks", data_disks.into()),
        ("wal_disks", wal_disks.into()),
    ]))
}

/// A file of the request queue; a partition has that of its disk.
fn queue(host: &dyn HostAccess, directory: &str, file: &str) -> Result<String, String> {
    text_of(host, &format!("{directory}/queue/{file}"))
        .or_else(|_| text_of(host, &format!("{directory}/../queue/{file}")))
}

/// Fields of a device that are not known, or do not apply to its kind, are omitted.
struct Description<'h> {
    host: &'h dyn HostAccess,
    directory: String,
    fields: Map<String, Value>,
}

impl Description<'_> {
    fn put(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.fields.insert(name.to_owned(), value);
        }
    }

    /// From the first of some files that can be read.
    fn read(&mut self, name: &str, files: &[&str]) {
        let text = files.iter().find_map(|file| self.text(file));
        self.put(name, text.map(|text| scalar(&text)));
    }

    /// Puts a name, which stays a text even where it is made of digits.
    fn put_name(&mut self, name: &str, file: &str) {
        let text = self.text(file);
        self.put(
            name,
            text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ").into()),
        );
    }

    fn text(&self, file: &str) -> Option<String> {
        text_of(self.host, &format!("{}/{file}", self.directory)).ok()
    }

    fn yes_no(&mut self, name: &str, file: &str) {
        let value = self.text(file).map(|text| (text != "0").into());
        self.put(name, value);
    }
}

fn described(host: &dyn HostAccess, device: &Device) -> Value {
    let mut of = Description {
        host,
        directory: device.directory(),
        fields: Map::new(),
    };
    let (major, minor) = device.number;
    of.put("name", Some(device.name.clone().into()));
    of.put("number", Some(format!("{major}:{minor}").into()));
    of.put("depth", Some(device.depth.into()));
    of.put("kind", Some(device.kind.into()));
    of.put("below", Some(device.below.clone().into()));
    of.put("below_unknown", device.gap.clone().map(Value::from));
    let sectors = number_of(host, &format!("{}/size", of.directory)).ok();
    of.put(
        "bytes",
        sectors.and_then(|n| n.checked_mul(SECTOR_BYTES)).map(Value::from),
    );
    let ids = [
        "wwid",
        "device/wwid",
        "dm/uuid",
        "md/uuid",
        "serial",
        "device/serial",
        "nguid",
        "uuid",
    ];
    of.put("id", ids.iter().find_map(|file| of.text(file)).map(Value::from));
    describe_kind(&mut of, device);
    if device.kind != "partition" || of.text("queue/rotational").is_some() {
        describe_queue(&mut of);
    }
    Value::Object(of.fields)
}

fn describe_kind(of: &mut Description<'_>, device: &Device) {
    of.put_name("title", "dm/name");
    of.put_name("model", "device/model");
    match device.kind {
        "crypt" => {
            // "CRYPT-LUKS2-..." has the format.
            let uuid = of.text("dm/uuid").unwrap_or_default();
            of.put("format", uuid.split('-').nth(1).map(Value::from));
        }
        "md" => {
            for (name, file) in [
                ("level", "md/level"),
                ("members", "md/raid_disks"),
                ("missing_members", "md/degraded"),
                ("chunk_bytes", "md/chunk_size"),
                ("state", "md/array_state"),
                ("sync", "md/sync_action"),
            ] {
                of.read(name, &[file]);
            }
        }
        "loop" => {
            of.put_name("backing_file", "loop/backing_file");
            of.yes_no("direct_io", "loop/dio");
        }
        "nvme" => of.put_name("transport", "device/transport"),
        _ => {}
    }
}

fn describe_queue(of: &mut Description<'_>) {
    of.yes_no("rotational", "queue/rotational");
    let scheduler = of
        .text("queue/scheduler")
        .map(|text| chosen(&text).unwrap_or(&text).into());
    of.put("scheduler", scheduler);
    for (name, files) in [
        ("read_ahead_kb", &["queue/read_ahead_kb"] as &[&str]),
        ("nr_requests", &["queue/nr_requests"]),
        ("queue_depth", &["device/queue_depth", "device/sqsize"]),
        ("write_cache", &["queue/write_cache"]),
        ("logical_block_bytes", &["queue/logical_block_size"]),
        ("physical_block_bytes", &["queue/physical_block_size"]),
        ("max_request_kb", &["queue/max_sectors_kb"]),
        ("write_throttle_us", &["queue/wbt_lat_usec"]),
        ("discard_max_bytes", &["queue/discard_max_bytes"]),
    ] {
        of.read(name, files);
    }
    of.yes_no("fua", "queue/fua");
    let queues = of.host.list(&format!("{}/mq", of.directory)).ok();
    of.put("queues", queues.map(|queues| queues.len().into()));
}
