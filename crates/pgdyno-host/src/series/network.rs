//! Network interfaces from /proc/net/dev, and TCP's own counters from /proc/net/snmp and
//! /proc/net/netstat.

use super::files::{Buffer, Kept};
use super::step::{Before, Last, Named, WENT_BACK, growths, lost, report_gone, same};
use super::{Key, Reading, growth};
use crate::access::{HostAccess, HostError};
use std::time::Instant;

/// Columns of /proc/net/dev that are used: bytes, packets, errors, drops; received, then sent.
const COLUMNS: [usize; 8] = [0, 1, 2, 3, 8, 9, 10, 11];
const METRICS: [&str; 8] = [
    "net.receive_bytes_per_s",
    "net.receive_packets_per_s",
    "net.receive_errors_per_s",
    "net.receive_drops_per_s",
    "net.transmit_bytes_per_s",
    "net.transmit_packets_per_s",
    "net.transmit_errors_per_s",
    "net.transmit_drops_per_s",
];

/// The largest share of its speed, 0 to 1, at which an interface of these readings received or
/// sent; `None` where no speed is known, as of most virtual ones.
pub fn network_use(host: &dyn HostAccess, readings: &[Reading]) -> Option<f64> {
    const BYTES_OF_MEGABIT: f64 = 125_000.0;
    let ways = ["net.receive_bytes_per_s", "net.transmit_bytes_per_s"];
    let values = readings.iter().flat_map(|reading| &reading.values);
    let shares = values
        .filter(|(key, _)| ways.contains(&&*key.metric))
        .filter_map(|(key, rate)| {
            let speed = host
                .read_trimmed(&format!("/sys/class/net/{}/speed", key.label))
                .ok()?;
            let most = speed.parse::<f64>().ok().filter(|megabits| *megabits > 0.0)? * BYTES_OF_MEGABIT;
            Some(rate / most)
        });
    shares.max_by(f64::total_cmp)
}

#[derive(Debug, Clone, PartialEq)]
struct Interface {
    name: String,
    counts: [u64; COLUMNS.len()],
}

impl Named for Interface {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Counters of one of the two files with a line of names and a line of numbers for each protocol.
const SNMP: [(&str, &str); 5] = [
    ("RetransSegs", "tcp.retransmits_per_s"),
    ("InSegs", "tcp.receive_segments_per_s"),
    ("OutSegs", "tcp.transmit_segments_per_s"),
    ("InErrs", "tcp.receive_errors_per_s"),
    ("OutRsts", "tcp.resets_per_s"),
];
const NETSTAT: [(&str, &str); 5] = [
    ("ListenOverflows", "tcp.listen_overflows_per_s"),
    ("ListenDrops", "tcp.listen_drops_per_s"),
    ("TCPTimeouts", "tcp.timeouts_per_s"),
    ("TCPLostRetransmit", "tcp.lost_retransmits_per_s"),
    ("TCPSynRetrans", "tcp.syn_retransmits_per_s"),
];
type Counts = [Option<u64>; 5];

#[derive(Debug)]
pub(super) struct Network {
    dev: Kept,
    last: Last<Vec<Interface>>,
    snmp: Kept,
    last_snmp: Last<Counts>,
    netstat: Kept,
    last_netstat: Last<Counts>,
}

impl Network {
    /// The network that `process` is in (a container has its own), or the one this process is in.
    pub(super) fn new(process: Option<u32>) -> Network {
        let root = match process {
            Some(pid) => format!("/proc/{pid}/net"),
            None => "/proc/net".to_owned(),
        };
        Network {
            dev: Kept::new(format!("{root}/dev")),
            last: Last::default(),
            snmp: Kept::new(format!("{root}/snmp")),
            last_snmp: Last::default(),
            netstat: Kept::new(format!("{root}/netstat")),
            last_netstat: Last::default(),
        }
    }

    pub(super) fn read(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        match self.dev.read(host, buffer).map(parse_dev) {
            Ok(interfaces) => self.last.step(at, interfaces, |before, now, reading| {
                fill_dev(before, now, reading)
            }),
            Err(error) => self.last.lost(at, &error),
        }
    }

    pub(super) fn read_snmp(&mut self, host: &dyn HostAccess, buffer: &mut Buffer, at: Instant) -> Reading {
        let mut established = None;
        let counts = self.snmp.read(host, buffer).map(|text| {
            established = pairs(text, "Tcp:")
                .find_map(|(name, value)| (name == "CurrEstab").then(|| value.parse::<u32>().ok()).flatten());
            parse_counts(text, "Tcp:", &SNMP)
        });
        let mut reading = step(&mut self.last_snmp, counts, at, &SNMP);
        if let Some(established) = established {
            reading.push(Key::one("tcp.established"), f64::from(established));
        }
        reading
    }

    pub(super) fn read_netstat(
        &mut self,
        host: &dyn HostAccess,
        buffer: &mut Buffer,
        at: Instant,
    ) -> Reading {
        let counts = self
            .netstat
            .read(host, buffer)
            .map(|text| parse_counts(text, "TcpExt:", &NETSTAT));
        step(&mut self.last_netstat, counts, at, &NETSTAT)
    }
}

fn step(
    last: &mut Last<Counts>,
    counts: Result<Counts, HostError>,
    at: Instant,
    table: &[(&str, &'static str); 5],
) -> Reading {
    match counts {
        Ok(counts) => last.step(at, counts, |before, now, reading| {
            fill_counts(table, before, now, reading);
        }),
        Err(error) => {
            *last = Last::default();
            lost(at, &error)
        }
    }
}

fn parse_dev(text: &str) -> Vec<Interface> {
    let mut interfaces = Vec::new();
    for line in text.lines() {
        // The numbers hold no colon, the name of an alias may; older kernels leave no blank after
        // it.
        let Some((name, numbers)) = line.rsplit_once(':') else {
            continue;
        };
        let all: Vec<u64> = numbers
            .split_ascii_whitespace()
            .map_while(|number| number.parse().ok())
            .collect();
        let counts = COLUMNS.map(|column| all.get(column).copied());
        if counts.iter().all(Option::is_some) {
            let counts = counts.map(Option::unwrap_or_default);
            interfaces.push(Interface {
                name: name.trim().to_owned(),
                counts,
            });
        }
    }
    interfaces
}

fn fill_dev(before: Option<Before<'_, Vec<Interface>>>, now: &[Interface], reading: &mut Reading) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for (place, interface) in now.iter().enumerate() {
        let unused = interface.counts.iter().all(|count| *count == 0);
        let Some(before) = same(state, place, &interface.name).filter(|_| !unused) else {
            continue;
        };
        match growths(&before.counts, &interface.counts) {
            Some(grown) => {
                for (metric, grown) in METRICS.into_iter().zip(grown) {
                    reading.push(Key::of(metric, interface.name.as_str()), grown / seconds);
                }
            }
            None => reading.gap(&format!("/proc/net/dev {}", interface.name), WENT_BACK),
        }
    }
    report_gone(state, now, "/proc/net/dev", reading);
}

/// Names and numbers of a protocol: a line of names, then one of numbers, both with the protocol
/// before them.
fn pairs<'a>(text: &'a str, protocol: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let names = lines.next().unwrap_or_default();
    let numbers = lines.next().unwrap_or_default();
    names
        .split_ascii_whitespace()
        .zip(numbers.split_ascii_whitespace())
}

fn parse_counts(text: &str, protocol: &str, table: &[(&str, &str); 5]) -> Counts {
    let mut counts = Counts::default();
    for (name, number) in pairs(text, protocol) {
        if let Some(place) = table.iter().position(|(line, _)| *line == name) {
            counts[place] = number.parse().ok();
        }
    }
    counts
}

fn fill_counts(
    table: &[(&str, &'static str); 5],
    before: Option<Before<'_, Counts>>,
    now: &Counts,
    reading: &mut Reading,
) {
    let Some(Before { state, seconds }) = before else {
        return;
    };
    for ((name, metric), pair) in table.iter().zip(state.iter().zip(now)) {
        match pair {
            (Some(before), Some(now)) => match growth(*before, *now) {
                Some(grown) => reading.push(Key::one(metric), grown / seconds),
                None => reading.gap(metric, WENT_BACK),
            },
            _ => reading.gap(metric, format!("this kernel has no counter {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::fixture::{Tree, gaps, has, lines};
    use proptest::prelude::*;

    const HEAD: &str =
        "Inter-|   Receive                       |  Transmit\n face |bytes    packets errs drop fifo\n";

    #[test]
    fn interfaces_have_rates_once_they_were_used() {
        let mut tree = Tree::new(&[(
            "/proc/net/dev",
            // Without a blank after the colon, as older kernels write.
            &format!(
                "{HEAD}    lo:    0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  eth0:1000 10 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n"
            ),
        )]);
        let mut network = Network::new(None);
        let (start, later, last) = (tree.at(0), tree.at(2), tree.at(3));
        let first = network.read(&tree.host, &mut tree.buffer, start);
        assert!(first.values.is_empty());
        tree.put(&[(
            "/proc/net/dev",
            "    lo:    0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  eth0: 3000 20 2 4 0 0 0 0 900 9 6 8 0 0 0 0\n",
        )]);
        let second = network.read(&tree.host, &mut tree.buffer, later);
        assert_eq!(
            lines(&second),
            [
                "net.receive_bytes_per_s[eth0] 1000",
                "net.receive_packets_per_s[eth0] 5",
                "net.receive_errors_per_s[eth0] 1",
                "net.receive_drops_per_s[eth0] 2",
                "net.transmit_bytes_per_s[eth0] 200",
                "net.transmit_packets_per_s[eth0] 2",
                "net.transmit_errors_per_s[eth0] 3",
                "net.transmit_drops_per_s[eth0] 4",
            ]
        );
        let used = |tree: &Tree| network_use(&tree.host, std::slice::from_ref(&second));
        assert_eq!(used(&tree), None);
        tree.put(&[
            ("/sys/class/net/eth0/speed", "-1\n"),
            ("/sys/class/net/lo/speed", "10\n"),
        ]);
        assert_eq!(used(&tree), None);
        tree.put(&[("/sys/class/net/eth0/speed", "10\n")]);
        assert_eq!(used(&tree), Some(1000.0 / 1_250_000.0));
        // The driver was loaded again, and lo is gone.
        tree.put(&[("/proc/net/dev", "  eth0: 3 1 2 4 0 0 0 0 900 9 6 8 0 0 0 0\n")]);
        let third = network.read(&tree.host, &mut tree.buffer, last);
        assert!(third.values.is_empty());
        assert_eq!(gaps(&third), ["/proc/net/dev eth0", "/proc/net/dev lo"]);
    }

    #[test]
    fn the_network_is_the_servers_own() {
        let mut tree = Tree::new(&[("/proc/7/net/dev", HEAD)]);
        let at = tree.at(0);
        let mut read = |process| {
            let reading = Network::new(process).read(&tree.host, &mut tree.buffer, at);
            reading.gaps.len()
        };
        assert_eq!([read(Some(7)), read(None)], [0, 1]);
    }

    #[test]
    fn counters_of_tcp_are_found_by_their_names() {
        let snmp = |retransmits: u32| {
            format!(
                "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoAlgorithm MaxConn CurrEstab InSegs OutSegs RetransSegs \
                 InErrs OutRsts\nTcp: 1 -1 8 100 90 {retransmits} 0 3\n"
            )
        };
        let netstat =
            "TcpExt: SyncookiesSent ListenOverflows TCPTimeouts\nTcpExt: 0 4 5\nIpExt: A\nIpExt: 1\n";
        let mut tree = Tree::new(&[("/proc/net/snmp", &snmp(10)), ("/proc/net/netstat", netstat)]);
        let mut network = Network::new(None);
        let (start, later) = (tree.at(0), tree.at(2));
        network.read_snmp(&tree.host, &mut tree.buffer, start);
        network.read_netstat(&tree.host, &mut tree.buffer, start);
        tree.put(&[("/proc/net/snmp", &snmp(30))]);
        let reading = network.read_snmp(&tree.host, &mut tree.buffer, later);
        has(
            &reading,
            &[
                "tcp.retransmits_per_s 10",
                "tcp.resets_per_s 0",
                "tcp.established 8",
            ],
        );
        let reading = network.read_netstat(&tree.host, &mut tree.buffer, later);
        has(
            &reading,
            &["tcp.listen_overflows_per_s 0", "tcp.timeouts_per_s 0"],
        );
        assert!(gaps(&reading).contains(&"tcp.listen_drops_per_s"));
        tree.remove("/proc/net/snmp");
        let reading = network.read_snmp(&tree.host, &mut tree.buffer, later);
        assert_eq!(gaps(&reading), ["/proc/net/snmp"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(eth0:[0-9 ]{0,120}\n|Tcp:.{0,30}\n|.{0,30}\n){0,4}") {
            let interfaces = parse_dev(&text);
            let mut reading = Reading::new(Instant::now(), None);
            fill_dev(Some(Before { state: &interfaces, seconds: 1.0 }), &interfaces, &mut reading);
            let _ = parse_counts(&text, "Tcp:", &SNMP);
        }
    }
}
