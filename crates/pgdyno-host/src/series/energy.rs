//! Power of processors and their memory by the energy counters (RAPL), from /sys/class/powercap.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, gap_of, lost};
use super::{Key, Reading};
use crate::access::{HostAccess, HostError};
use std::time::Instant;

const ROOT: &str = "/sys/class/powercap";
/// Zones of both makers are named so; `intel-rapl-mmio` is the same counter by another way.
const ZONE: &str = "intel-rapl:";
/// Counters are in microjoules (Documentation/power/powercap/powercap.rst).
const UJ_PER_J: f64 = 1e6;

#[derive(Debug)]
struct Zone {
    /// `package-0`; a part of a package is behind it: `package-0/dram`.
    label: String,
    energy: Kept,
    /// Where its counter begins again.
    range_uj: u64,
}

/// Zones as they were found when they could first be listed.
#[derive(Debug, Default)]
pub(super) struct Energy {
    zones: Option<Vec<Zone>>,
    last: Last<Vec<Option<u64>>>,
}

impl Energy {
    /// The power of each zone between two reads. That a machine has no zone (usual in virtual
    /// machines), or that its counters are for root alone (since 5.10), is no gap of each
    /// recording: the fact `cpu.power_zones` says so.
    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        let zones = match &mut self.zones {
            Some(zones) => zones,
            None => match find(host) {
                Ok(zones) => self.zones.insert(zones),
                Err(HostError::Missing { .. }) => self.zones.insert(Vec::new()),
                Err(error) => return lost(at, &error),
            },
        };
        let mut errors = Vec::new();
        let now: Vec<Option<u64>> = zones
            .iter_mut()
            .map(|zone| zone.read(host, buffer, &mut errors))
            .collect();
        let mut reading = self
            .last
            .step(at, now, |before, now, reading| fill(zones, before, now, reading));
        note_errors(&errors, &mut reading);
        reading
    }
}

impl Zone {
    fn read(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        errors: &mut Vec<HostError>,
    ) -> Option<u64> {
        match self
            .energy
            .read(host, buffer)
            .map(|text| text.trim().parse().ok())
        {
            Ok(energy_uj) => energy_uj,
            Err(error) => {
                errors.push(error);
                None
            }
        }
    }
}

/// Gaps of what could not be read, but for what needs more rights.
fn note_errors(errors: &[HostError], reading: &mut Reading) {
    for error in errors.iter().filter(|error| !error.is_refused()) {
        gap_of(reading, error);
    }
}

fn find(host: &dyn HostAccess) -> Result<Vec<Zone>, HostError> {
    let mut names = host.list(ROOT)?;
    names.retain(|name| name.starts_with(ZONE));
    names.sort_unstable();
    let title = |name: &str| host.read_trimmed(&format!("{ROOT}/{name}/name")).ok();
    let zone = |name: &String| {
        // intel-rapl:0:1 is a part of intel-rapl:0.
        let (above, _) = name.rsplit_once(':')?;
        let own = title(name)?;
        let range = host
            .read_trimmed(&format!("{ROOT}/{name}/max_energy_range_uj"))
            .ok();
        Some(Zone {
            label: match above.contains(':').then(|| title(above)).flatten() {
                Some(above) => format!("{above}/{own}"),
                None => own,
            },
            energy: Kept::new(format!("{ROOT}/{name}/energy_uj")),
            range_uj: range.and_then(|range| range.parse().ok()).unwrap_or(0),
        })
    };
    Ok(names.iter().filter_map(zone).collect())
}

fn fill(
    zones: &[Zone],
    before: Option<Before<'_, Vec<Option<u64>>>>,
    now: &[Option<u64>],
    reading: &mut Reading,
) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for (zone, (before, now)) in zones.iter().zip(state.iter().zip(now)) {
        let Some((before, now)) = before.zip(*now) else {
            continue;
        };
        // It begins again after minutes of full power; nobody reads so seldom that it does so
        // twice.
        let grown = match now.checked_sub(before) {
            Some(grown) => Some(grown),
            None => now
                .checked_add(zone.range_uj)
                .and_then(|now| now.checked_sub(before)),
        };
        match grown {
            #[expect(clippy::cast_precision_loss, reason = "microjoules between two reads")]
            Some(grown_uj) => {
                let power_w = grown_uj as f64 / UJ_PER_J / seconds;
                reading.push(Key::of("energy.power_w", zone.label.clone()), power_w);
            }
            None => reading.gap(zone.energy.path(), super::step::WENT_BACK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, lines};

    const ZONES: &[(&str, &str)] = &[
        ("/sys/class/powercap/intel-rapl/enabled", "1\n"),
        ("/sys/class/powercap/intel-rapl:0/name", "package-0\n"),
        (
            "/sys/class/powercap/intel-rapl:0/max_energy_range_uj",
            "10000000\n",
        ),
        ("/sys/class/powercap/intel-rapl:0:0/name", "core\n"),
        (
            "/sys/class/powercap/intel-rapl:0:0/max_energy_range_uj",
            "10000000\n",
        ),
        ("/sys/class/powercap/intel-rapl:0:1/name", "dram\n"),
        ("/sys/class/powercap/intel-rapl:0:1/max_energy_range_uj", "?\n"),
        ("/sys/class/powercap/intel-rapl:1/name", "psys\n"),
        ("/sys/class/powercap/intel-rapl-mmio:0/name", "package-0\n"),
        ("/sys/class/powercap/intel-rapl-mmio:0/energy_uj", "5\n"),
    ];

    fn put(tree: &Tree, zone: &str, energy: &str) {
        tree.put(&[(&format!("{ROOT}/intel-rapl:{zone}/energy_uj"), energy)]);
    }

    #[test]
    fn power_is_growth_over_time_and_survives_a_counter_that_begins_again() {
        let mut tree = Tree::new(ZONES);
        let mut energy = Energy::default();
        let mut read = |values: [&str; 4], second| {
            for (zone, value) in ["0", "0:0", "0:1", "1"].into_iter().zip(values) {
                put(&tree, zone, value);
            }
            let at = tree.at(second);
            energy.read(&tree.host, &mut tree.buffer, at)
        };
        let first = read(["1000000\n", "9000000\n", "7\n", "0\n"], 0);
        assert!(first.values.is_empty() && first.gaps.is_empty(), "{first:?}");
        let second = read(["5000000\n", "1000000\n", "2000007\n", "x\n"], 2);
        assert_eq!(
            lines(&second),
            [
                "energy.power_w[package-0] 2",
                "energy.power_w[package-0/core] 1",
                "energy.power_w[package-0/dram] 1",
            ]
        );
        assert!(second.gaps.is_empty());
        // What has no range has gone back, and what was not a number has no power yet.
        let third = read(["5000000\n", "1000000\n", "1\n", "5\n"], 4);
        assert_eq!(
            lines(&third),
            ["energy.power_w[package-0] 0", "energy.power_w[package-0/core] 0"]
        );
        assert_eq!(gaps(&third), ["/sys/class/powercap/intel-rapl:0:1/energy_uj"]);
    }

    #[test]
    fn a_machine_without_zones_is_no_gap_and_one_whose_counter_is_gone_is() {
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            let mut tree = Tree::new(files);
            let at = tree.at(0);
            let reading = Energy::default().read(&tree.host, &mut tree.buffer, at);
            assert_eq!(gaps(&reading), expected);
            assert!(reading.values.is_empty());
        };
        check(&[], &[]);
        check(&ZONES[..1], &[]);
        check(&ZONES[..3], &["/sys/class/powercap/intel-rapl:0/energy_uj"]);
    }

    #[test]
    fn a_counter_for_root_alone_is_no_gap() {
        use std::io::ErrorKind::{InvalidData, PermissionDenied};
        let errors = [("a", PermissionDenied), ("b", InvalidData)]
            .map(|(path, kind)| HostError::new(path, "read", kind.into()));
        let mut reading = Reading::new(Instant::now(), None);
        note_errors(&errors, &mut reading);
        assert_eq!(gaps(&reading), ["b"]);
    }
}
