//! Block devices from /proc/diskstats, as iostat defines its columns.
//!
//! Fields are numbered as Documentation/admin-guide/iostats.rst does: 11 of them, 15 with discards
//! (4.18), 17 with flushes (5.5). Per request: await is the growth of a time by that of its count.
//! For the device: the queue is the growth of field 11 (time weighted by requests in flight) by the
//! interval, util that of field 10 by the interval.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, Named, WENT_BACK, growths, report_gone, same};
use super::{Key, Reading};
use crate::access::HostAccess;
use std::collections::BTreeSet;
use std::time::Instant;

/// The file counts in sectors of this size, whatever the device's own is.
const SECTOR_BYTES: f64 = 512.0;
const FIELDS: usize = 17;
/// Fields 4, 8, 10, 11, 15 and 17 are times in ms of 32 bits, which wrap after 50 days of waiting.
const TIMES: [usize; 6] = [3, 7, 9, 10, 14, 16];
/// Field 9, the requests in flight, is no counter.
const IN_FLIGHT: usize = 8;
const SOURCE: &str = "/proc/diskstats";

#[derive(Debug, Clone, PartialEq)]
struct Disk {
    name: String,
    fields: [u64; FIELDS],
    /// How many of them this kernel reports.
    count: usize,
}

impl Named for Disk {
    fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Debug)]
pub(super) struct Disks {
    file: Kept,
    last: Last<Vec<Disk>>,
    /// Names of the devices to read; `None` for all.
    asked: Option<Vec<String>>,
    /// Names of /sys/block: whole devices.
    whole: BTreeSet<String>,
    /// Names that are in the file and are no whole device.
    parts: BTreeSet<String>,
}

impl Disks {
    pub(super) fn new(asked: Option<Vec<String>>) -> Disks {
        Disks {
            file: Kept::new(SOURCE),
            last: Last::default(),
            asked,
            whole: BTreeSet::new(),
            parts: BTreeSet::new(),
        }
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        let mut disks = match self.file.read(host, buffer).map(parse) {
            Ok(disks) => disks,
            Err(error) => return self.last.lost(at, &error),
        };
        let unlisted = match &self.asked {
            Some(asked) => {
                disks.retain(|disk| asked.contains(&disk.name));
                None
            }
            None => self.keep_whole(host, &mut disks),
        };
        let asked = self.asked.as_deref().unwrap_or_default();
        self.last.step(at, disks, |before, now, reading| {
            if let Some(why) = unlisted {
                reading.gap("/sys/block", why);
            }
            for name in asked {
                if !now.iter().any(|disk| disk.name == *name) {
                    reading.gap(&format!("{SOURCE} {name}"), "there is no such block device");
                }
            }
            fill(before, now, reading);
        })
    }

    /// Leaves whole devices that have ever been used: no partitions, and none of the many loop and
    /// RAM disks that only are there. Gives the reason where partitions cannot be distinguished
    /// from devices.
    fn keep_whole(&mut self, host: &dyn HostAccess, disks: &mut Vec<Disk>) -> Option<String> {
        disks.retain(|disk| disk.fields[0] > 0 || disk.fields[4] > 0);
        let known = |name: &String| self.whole.contains(name) || self.parts.contains(name);
        if !disks.iter().all(|disk| known(&disk.name)) {
            match host.list("/sys/block") {
                // A slash in a device's name is an exclamation mark there.
                Ok(names) => {
                    self.whole = names.into_iter().map(|name| name.replace('!', "/")).collect();
                }
                Err(error) => return Some(format!("partitions are listed like devices: {error}")),
            }
            self.parts = disks
                .iter()
                .map(|disk| disk.name.clone())
                .filter(|name| !self.whole.contains(name))
                .collect();
        }
        disks.retain(|disk| self.whole.contains(&disk.name));
        None
    }
}

fn parse(text: &str) -> Vec<Disk> {
    let mut disks = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        let mut disk = Disk {
            name: name.to_owned(),
            fields: [0; FIELDS],
            count: 0,
        };
        for (place, value) in disk
            .fields
            .iter_mut()
            .zip(words.map_while(|word| word.parse().ok()))
        {
            *place = value;
            disk.count += 1;
        }
        // A partition of a kernel before 2.6.25 has four fields of another meaning.
        if disk.count >= 11 {
            disks.push(disk);
        }
    }
    disks
}

fn fill(before: Option<Before<'_, Vec<Disk>>>, now: &[Disk], reading: &mut Reading) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for (place, disk) in now.iter().enumerate() {
        let Some(before) = same(state, place, &disk.name) else {
            continue;
        };
        match disk.grown(before) {
            Some(grown) => disk.push(&grown, seconds, reading),
            None => reading.gap(&format!("{SOURCE} {}", disk.name), WENT_BACK),
        }
    }
    let count = now.iter().map(|disk| disk.count).min().unwrap_or(FIELDS);
    if count < 15 {
        reading.gap(
            "disk.discards_per_s",
            "this kernel does not count discards (4.18)",
        );
    }
    if count < FIELDS {
        reading.gap("disk.flushes_per_s", "this kernel does not count flushes (5.5)");
    }
    report_gone(state, now, SOURCE, reading);
}

impl Disk {
    fn grown(&self, before: &Disk) -> Option<[f64; FIELDS]> {
        let (mut from, mut to) = (before.fields, self.fields);
        from[IN_FLIGHT] = 0;
        to[IN_FLIGHT] = 0;
        // A time that wrapped is known from a restart by the counts, which have 64 bits and do not
        // go backwards with it.
        for time in TIMES {
            if to[time] < from[time] && from[time] <= u64::from(u32::MAX) {
                to[time] += 1 << 32;
            }
        }
        let mut counts = (from, to);
        for time in TIMES {
            counts.0[time] = 0;
            counts.1[time] = 0;
        }
        growths(&counts.0, &counts.1)?;
        growths(&from, &to)
    }

    fn push(&self, grown: &[f64; FIELDS], seconds: f64, reading: &mut Reading) {
        let mut push = |metric, value| reading.push(Key::of(metric, self.name.as_str()), value);
        let [reads, writes] = [grown[0], grown[4]];
        push("disk.reads_per_s", reads / seconds);
        push("disk.writes_per_s", writes / seconds);
        push("disk.read_merges_per_s", grown[1] / seconds);
        push("disk.write_merges_per_s", grown[5] / seconds);
        push("disk.read_bytes_per_s", grown[2] * SECTOR_BYTES / seconds);
        push("disk.write_bytes_per_s", grown[6] * SECTOR_BYTES / seconds);
        push("disk.queue", grown[10] / 1e3 / seconds);
        // The kernel counts in whole ticks: a moment's excess over the interval is not a share.
        push("disk.util_ratio", (grown[9] / 1e3 / seconds).min(1.0));
        if reads > 0.0 {
            push("disk.read_await_ms", grown[3] / reads);
        }
        if writes > 0.0 {
            push("disk.write_await_ms", grown[7] / writes);
        }
        if self.count >= 15 {
            push("disk.discards_per_s", grown[11] / seconds);
            push("disk.discard_bytes_per_s", grown[13] * SECTOR_BYTES / seconds);
            if grown[11] > 0.0 {
                push("disk.discard_await_ms", grown[14] / grown[11]);
            }
        }
        if self.count >= FIELDS {
            push("disk.flushes_per_s", grown[15] / seconds);
            if grown[15] > 0.0 {
                push("disk.flush_await_ms", grown[16] / grown[15]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, has, has_no, lines};
    use proptest::prelude::*;

    const ZEROS: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    /// Two reads, two seconds apart, where /sys/block holds vda and loop0.
    fn two(asked: Option<&[&str]>, first: &str, second: &str) -> Reading {
        let files = [
            (SOURCE, first),
            ("/sys/block/vda/dev", "254:0"),
            ("/sys/block/loop0/dev", "7:0"),
        ];
        let mut tree = Tree::new(&files);
        let asked = asked.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let mut disks = Disks::new(asked);
        let (start, later) = (tree.at(0), tree.at(2));
        assert!(disks.read(&tree.host, &mut tree.buffer, start).values.is_empty());
        tree.put(&[(SOURCE, second)]);
        disks.read(&tree.host, &mut tree.buffer, later)
    }

    #[test]
    fn columns_are_those_of_iostat() {
        let reading = two(
            None,
            &format!(
                "{ZEROS} 254 0 vda 10 1 80 5 20 2 160 40 0 100 45 3 0 24 6 4 8\n 254 1 vda1 9 1 80 5 20 2 160 40 0 100 45\n"
            ),
            &format!(
                "{ZEROS} 254 0 vda 30 1 180 65 60 8 360 120 3 1100 4045 3 0 24 6 8 28\n 254 1 vda1 9 1 80 5 99 2 160 40 0 100 45\n"
            ),
        );
        has(
            &reading,
            &[
                "disk.reads_per_s[vda] 10",
                "disk.writes_per_s[vda] 20",
                "disk.write_merges_per_s[vda] 3",
                "disk.read_bytes_per_s[vda] 25600",
                "disk.write_bytes_per_s[vda] 51200",
                "disk.read_await_ms[vda] 3",
                "disk.write_await_ms[vda] 2",
                "disk.flushes_per_s[vda] 2",
                "disk.flush_await_ms[vda] 5",
                "disk.discards_per_s[vda] 0",
                "disk.queue[vda] 2",
                "disk.util_ratio[vda] 0.5",
            ],
        );
        // Nothing was discarded, so nothing waited for it; an unused loop device and a partition
        // are omitted.
        has_no(&reading, "disk.discard_await_ms");
        assert!(reading.values.iter().all(|(key, _)| key.label == "vda"));
        assert!(reading.gaps.is_empty());
    }

    #[test]
    fn older_kernels_have_fewer_fields() {
        let check = |first: &str, second: &str, absent: &[&str]| {
            let reading = two(None, first, second);
            has(&reading, &["disk.reads_per_s[vda] 5"]);
            assert_eq!(gaps(&reading), absent);
        };
        // 14 fields: before 4.18; 18: before 5.5.
        check(
            "254 0 vda 10 0 80 5 20 0 160 40 0 100 45\n",
            "254 0 vda 20 0 80 5 20 0 160 40 0 100 45\n",
            &["disk.discards_per_s", "disk.flushes_per_s"],
        );
        check(
            "254 0 vda 10 0 80 5 20 0 160 40 0 100 45 0 0 0 0\n",
            "254 0 vda 20 0 80 5 20 0 160 40 0 100 45 0 0 0 0\n",
            &["disk.flushes_per_s"],
        );
    }

    #[test]
    fn times_of_32_bits_may_wrap_and_counts_may_not_go_backwards() {
        let wrapped = two(
            Some(&["vda"]),
            "254 0 vda 10 0 0 4294967290 1 0 0 0 0 0 0\n",
            "254 0 vda 12 0 0 4 1 0 0 0 0 0 0\n",
        );
        has(&wrapped, &["disk.read_await_ms[vda] 5"]);
        let replaced = two(
            Some(&["vda"]),
            "254 0 vda 10 0 0 4294967290 1 0 0 0 0 0 0\n",
            "254 0 vda 2 0 0 4 1 0 0 0 0 0 0\n",
        );
        assert!(lines(&replaced).is_empty());
        assert!(gaps(&replaced).contains(&"/proc/diskstats vda"));
    }

    #[test]
    fn a_device_that_is_asked_for_and_not_there_is_a_gap() {
        let reading = two(Some(&["vda", "sdz"]), ZEROS, ZEROS);
        assert!(reading.values.is_empty());
        assert_eq!(
            gaps(&reading)[..2],
            ["/proc/diskstats vda", "/proc/diskstats sdz"]
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(a in "(8 0 sda[0-9 ]{0,200}\n|.{0,30}\n){0,3}", b in "(8 0 sda[0-9 ]{0,200}\n|.{0,30}\n){0,3}") {
            let (before, now) = (parse(&a), parse(&b));
            let mut reading = Reading::new(Instant::now(), None);
            fill(Some(Before { state: &before, seconds: 1.0 }), &now, &mut reading);
            prop_assert!(reading.values.iter().all(|(_, value)| value.is_finite() && *value >= 0.0));
        }
    }
}
