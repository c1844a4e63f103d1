//! What is measured of the host itself: clock, disks, and the share of the CPUs that others took.

use super::{Bench, Event, Grade, Measured, shown, spread_ms};
use pgdyno_host::block;
use pgdyno_host::probe::{
    ProbeError, ReadFile, ReadTimes, Spread, SyncFile, SyncMethod, SyncTimes, clock_source, clock_state,
    is_memory, timer_cost,
};
use pgdyno_server::Server;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const TIMER_MS: u32 = 1000;
const SYNC_MS: u32 = 500;
/// The ways are measured in turn, so many times.
const SYNC_ROUNDS: u32 = 5;
const READ_MS: u32 = 1500;
/// Readers of the second measurement of random reads: what a scan of many blocks asks for ahead.
const READERS: u32 = 16;
/// What files may be on, by the median of random reads in milliseconds, up to which it is so
/// (docs/how-to/check.md says where the limits are from). Below the least a cache has answered.
const MEDIA: [(f64, &str); 3] = [(0.25, "ssd"), (2.5, "network"), (f64::INFINITY, "hdd")];
const MEDIUM_LEAST_MS: f64 = 0.02;
/// No disk answers so quickly that a write is safe: what does is a cache.
const FLUSH_LEAST_US: f64 = 10.0;
/// Another way is mentioned if it is so many times as quick; less is noise.
const QUICKER_LEAST: f64 = 1.25;
/// Where no server reports another one: PostgreSQL's on Linux.
const USUAL_METHOD: SyncMethod = SyncMethod::Fdatasync;
const IN_MEMORY: &str = "this is memory (tmpfs): nothing reaches a disk";
/// Questions for the server's time of day, of which the quickest counts.
const TIMES_ASKED: u32 = 5;
/// The kernel allots what was stolen by ticks; a shorter time has too few of them.
const STEAL_LEAST_S: f64 = 1.0;

impl Bench<'_> {
    pub(super) fn timer(&self) -> Measured {
        let found = timer_cost(self.asked.length_of(TIMER_MS), self.stop);
        let source = clock_source(&**self.asked.host);
        let source = source.unwrap_or_else(|error| format!("unknown ({error})"));
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let reads = found.reads as f64;
        let spread = format!(
            "mean {} ns, {:.2} % below 128 ns of {}; clock source {source}",
            shown(found.mean_ns),
            found.share_below(128) * 100.0,
            shown(reads)
        );
        let detail = json!({ "cost": found, "clock_source": source });
        let mut measured = Measured::judged("timer", found.typical_ns, spread, detail);
        if found.backwards > 0 {
            measured.verdict = Grade::Poor;
            measured.why = Some(format!("the clock went backwards {} times", found.backwards));
        } else if measured.verdict == Grade::Fair {
            measured.why = Some("track_io_timing and EXPLAIN ANALYZE cost noticeably".into());
        }
        measured
    }

    /// The way that the server flushes, and whether past the page cache: before 16 it did so where
    /// the WAL served nobody else.
    fn method_used(&mut self) -> (SyncMethod, bool) {
        let Some(server) = self.server.as_mut() else {
            return (USUAL_METHOD, false);
        };
        let mut show = |sql: &str| server.value("asking how it flushes", sql).ok().flatten();
        let name = show("SHOW wal_sync_method").unwrap_or_default();
        let method = SyncMethod::named(&name).unwrap_or(USUAL_METHOD);
        let is_alone = show("SHOW wal_level").as_deref() == Some("minimal");
        (
            method,
            method.is_by_opening() && is_alone && server.version().major < 16,
        )
    }

    pub(super) fn wal_sync(&mut self, on: &mut dyn FnMut(Event<'_>)) -> Measured {
        const NAME: &str = "wal_sync";
        let directory = match &self.place.wal {
            Ok(directory) => directory.clone(),
            Err(why) => return Measured::unknown(NAME, format!("not measured: {why}")),
        };
        let used = self.method_used();
        let (ways, refused) = match self.all_ways(&directory, on) {
            Ok(found) => found,
            Err(error) => return Measured::unknown(NAME, error),
        };
        let quicker = quicker(&ways, used);
        let ways: Vec<SyncTimes> = ways.into_iter().filter_map(Way::times).collect();
        let of_used = ways
            .iter()
            .find(|w| (w.method, w.direct) == used && w.writes == 1)
            .copied();
        let Some(of_used) = of_used else {
            let why = format!("{} could not be measured: {}", used.0.name(), refused.join("; "));
            return Measured::unknown(NAME, why);
        };
        let detail = json!({
            "directory": directory,
            "disk": self.disk(&directory),
            "method": used.0.name(),
            "direct": used.1,
            "ways": ways,
            "refused": refused,
        });
        let spread = format!(
            "{}, {:.0}/s; {}",
            spread_ms(&of_used.times),
            of_used.per_s,
            used.0.name()
        );
        let mut measured = Measured::judged(NAME, of_used.times.mean_us / 1e3, spread, detail);
        measured.note(self.where_it_is(&directory));
        measured.notes.extend(ways_table(&ways, used));
        measured.notes.extend(refused);
        measured.notes.extend(quicker);
        if is_memory(&directory) {
            return measured.but_unknown(IN_MEMORY);
        }
        if of_used.times.p50_us < FLUSH_LEAST_US {
            return measured
                .but_unknown("so quick that no disk was reached: something below takes flushes lightly");
        }
        measured
    }

    /// Each way with one write and with two; opening past the page cache apart. All of them in
    /// turn, several times over, so that what else the disk has to do affects them all. What is
    /// refused is reported, not measured.
    fn all_ways(
        &self,
        directory: &Path,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(Vec<Way>, Vec<String>), ProbeError> {
        let file = SyncFile::create(directory, self.stop)?;
        let (mut ways, mut refused) = (Way::all(), Vec::new());
        let length = self.asked.length_of(SYNC_MS) / SYNC_ROUNDS;
        for round in 1..=SYNC_ROUNDS {
            on(Event::Now(&format!("wal_sync, round {round} of {SYNC_ROUNDS}")));
            ways.retain_mut(|way| {
                match file.measure(way.method, way.writes, way.direct, length, self.stop) {
                    Ok(times_ns) => way.rounds_ns.push(times_ns),
                    Err(ProbeError::Stopped) => {}
                    Err(error) => {
                        refused.push(format!("{}, {} x 8 kB: {error}", way.name(), way.writes));
                        return false;
                    }
                }
                true
            });
        }
        Ok((ways, refused))
    }

    pub(super) fn read(&self, on: &mut dyn FnMut(Event<'_>)) -> Vec<Measured> {
        const NAMES: [&str; 2] = ["random_read", "sequential_read"];
        let both = |why: String| NAMES.map(|name| Measured::unknown(name, &why)).into();
        let directory = match &self.place.data {
            Ok(directory) => directory.clone(),
            Err(why) => return both(format!("not measured: {why}")),
        };
        on(Event::Now("read: laying out a file"));
        let length = self.asked.length_of(READ_MS);
        let done = ReadFile::create(&directory, self.stop).and_then(|file| {
            on(Event::Now("random_read"));
            let random = file.random(length, self.stop)?;
            let together_per_s = file.random_by(READERS, length, self.stop)?;
            on(Event::Now("sequential_read"));
            let sequential = file.sequential(length, self.stop)?;
            Ok((random, together_per_s, sequential, file))
        });
        let (random, together_per_s, sequential, file) = match done {
            Ok(done) => done,
            Err(error) => return both(error.to_string()),
        };
        let detail = |times: &ReadTimes| {
            json!({
                "directory": directory,
                "disk": self.disk(&directory),
                "file_bytes": file.bytes(),
                "direct": file.is_direct(),
                "reads": times,
            })
        };
        let mb_per_s = |times: &ReadTimes| times.bytes_per_s / 1e6;
        let of_random = format!(
            "{}, {:.0} IOPS, {} MB/s; 8 kB, one at a time; {together_per_s:.0} IOPS with {READERS} at a time",
            spread_ms(&random.times),
            random.per_s,
            shown(mb_per_s(&random))
        );
        let mut detail_of_random = detail(&random);
        detail_of_random["together"] = json!({ "readers": READERS, "per_s": together_per_s });
        let of_sequential = format!("{}; 1 MB, one at a time", spread_ms(&sequential.times));
        let mut found = vec![
            Measured::judged(NAMES[0], random.times.mean_us / 1e3, of_random, detail_of_random),
            Measured::judged(
                NAMES[1],
                mb_per_s(&sequential),
                of_sequential,
                detail(&sequential),
            ),
        ];
        found[0].note(format!(
            "{}, a file of {} MB, {}",
            self.where_it_is(&directory),
            file.bytes() >> 20,
            match file.is_direct() {
                true => "past the page cache (O_DIRECT)",
                false => "O_DIRECT is refused: pgdyno asked the kernel to drop the file from the page cache (fadvise), which it may not have done",
            }
        ));
        if is_memory(&directory) {
            found = found.into_iter().map(|m| m.but_unknown(IN_MEMORY)).collect();
        } else if let Some(medium) = medium_of(random.times.p50_us / 1e3).filter(|_| file.is_direct()) {
            found[0].note(format!(
                "the median is as on {medium}: where the facts do not name the medium, --given \
                 storage.data_medium={medium} (of profile, tune and run) does"
            ));
        }
        found
    }

    fn disk(&self, directory: &Path) -> Option<String> {
        block::disk_of(&**self.asked.host, &directory.to_string_lossy()).ok()
    }

    fn where_it_is(&self, directory: &Path) -> String {
        match self.disk(directory) {
            Some(disk) => format!("in {} on {disk}", directory.display()),
            None => format!("in {}", directory.display()),
        }
    }

    pub(super) fn steal(&mut self) -> Measured {
        const NAME: &str = "steal";
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        if elapsed_s < STEAL_LEAST_S {
            return Measured::unknown(NAME, "it took less than a second in all, too short for a result");
        }
        let readings = self.host_series.tick(&**self.asked.host);
        // The first line of a metric of CPUs is that of all of them.
        let ratio = |metric: &str| readings.iter().find_map(|reading| reading.value(metric));
        let Some(steal) = ratio("cpu.steal_ratio") else {
            return Measured::unknown(NAME, "/proc/stat does not report it");
        };
        let detail = json!({
            "steal_ratio": steal,
            "idle_ratio": ratio("cpu.idle_ratio"),
            "iowait_ratio": ratio("cpu.iowait_ratio"),
            "over_s": elapsed_s,
        });
        Measured::judged(NAME, steal * 100.0, format!("over {elapsed_s:.0} s"), detail)
    }

    pub(super) fn clock(&mut self) -> Measured {
        match &self.place.here {
            Ok(()) => self.clock_of_this_host(),
            Err(_) => match self.server.as_mut() {
                Some(server) => clock_of_server(server),
                None => Measured::unknown("clock", "no server was named"),
            },
        }
    }

    fn clock_of_this_host(&self) -> Measured {
        let drift = self.clock.drift();
        let state = clock_state();
        let spread = match &state {
            Ok(state) => format!(
                "set by that much in {:.0} s; pace corrected by {:+.1} ppm",
                drift.elapsed_s, state.frequency_ppm
            ),
            Err(_) => format!("set by that much in {:.0} s", drift.elapsed_s),
        };
        let detail = json!({ "drift": drift, "state": state.as_ref().ok() });
        let mut measured = Measured::judged("clock", drift.set_by_us.abs() / 1e3, spread, detail);
        match state {
            Ok(state) if state.is_synchronised => measured.note(format!(
                "synchronised; off by at most {} ms",
                shown(state.error_max_us / 1e3)
            )),
            Ok(_) if measured.verdict == Grade::Good => {
                measured.verdict = Grade::Fair;
                measured.why = Some("the kernel has no reference for its clock".into());
            }
            Ok(_) => {}
            Err(error) => measured.note(format!(
                "whether it is synchronised is not known: adjtimex: {error}"
            )),
        }
        measured
    }
}

/// What files may be on where a random read takes so long; `None` where no disk was reached.
fn medium_of(median_ms: f64) -> Option<&'static str> {
    let medium = MEDIA.iter().find(|(most_ms, _)| median_ms < *most_ms);
    medium
        .filter(|_| median_ms >= MEDIUM_LEAST_MS)
        .map(|(_, medium)| *medium)
}

/// How far the server's time of day is from this host's, by the quickest of a few questions.
fn clock_of_server(server: &mut Server) -> Measured {
    const NAME: &str = "clock";
    let sql = "SELECT extract(epoch FROM clock_timestamp())";
    let mut best: Option<(Duration, f64)> = None;
    for _ in 0..TIMES_ASKED {
        let (before, begun) = (SystemTime::now(), Instant::now());
        let answer = match server.value("asking for the time", sql) {
            Ok(answer) => answer.unwrap_or_default(),
            Err(error) => return Measured::unknown(NAME, error),
        };
        let took = begun.elapsed();
        let middle = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + took / 2;
        let Ok(server_s) = answer.parse::<f64>() else {
            return Measured::unknown(NAME, format!("the server's time is \"{answer}\""));
        };
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, server_s - middle.as_secs_f64()));
        }
    }
    let Some((took, apart_s)) = best else {
        return Measured::unknown(NAME, "the server was not asked");
    };
    let (apart_ms, unsure_ms) = (apart_s * 1e3, took.as_secs_f64() * 500.0);
    let detail = json!({ "server_minus_this_ms": apart_ms, "unsure_by_ms": unsure_ms });
    let spread = format!(
        "the server's minus this one's, give or take {} ms",
        shown(unsure_ms)
    );
    let mut measured = Measured::judged(NAME, apart_ms.abs(), spread, detail);
    // Limits are for a clock that is set; two hosts that are apart are no fault of one of them.
    measured.limits = None;
    measured.advice = None;
    measured.but_unknown("not judged: whether the server's clock is kept is known on its host only")
}

/// A way to flush, with the times of each round.
struct Way {
    method: SyncMethod,
    writes: u32,
    direct: bool,
    rounds_ns: Vec<Vec<u64>>,
}

impl Way {
    fn all() -> Vec<Way> {
        let mut all = Vec::new();
        for direct in [false, true] {
            let methods = SyncMethod::ALL.into_iter();
            for method in methods.filter(|method| !direct || method.is_by_opening()) {
                all.extend([1, 2].map(|writes| Way {
                    method,
                    writes,
                    direct,
                    rounds_ns: Vec::new(),
                }));
            }
        }
        all
    }

    fn name(&self) -> String {
        name_of(self.method, self.direct)
    }

    fn times(self) -> Option<SyncTimes> {
        SyncTimes::of(self.method, self.writes, self.direct, self.rounds_ns.concat())
    }

    /// The median of each round: one flush that met somebody else's write can be a hundred times as
    /// long.
    fn medians_us(&self) -> Vec<f64> {
        let spreads = self.rounds_ns.iter().cloned().filter_map(Spread::of);
        spreads.map(|spread| spread.p50_us).collect()
    }
}

fn name_of(method: SyncMethod, direct: bool) -> String {
    match direct {
        true => format!("{}, O_DIRECT", method.name()),
        false => method.name().to_owned(),
    }
}

/// A way that the server could use and that was clearly quicker than its own in every single round.
fn quicker(ways: &[Way], used: (SyncMethod, bool)) -> Option<String> {
    let one = |way: &&Way| way.writes == 1;
    let own = ways
        .iter()
        .filter(one)
        .find(|way| (way.method, way.direct) == used)?
        .medians_us();
    // The least advantage that it had in any round.
    let advantage = |way: &Way| {
        let rounds = own.iter().zip(way.medians_us());
        rounds
            .map(|(own, other)| own / other)
            .fold(f64::INFINITY, f64::min)
    };
    let others = ways.iter().filter(one).filter(|way| way.direct == used.1);
    let (least, best) = others
        .filter(|way| way.rounds_ns.len() == own.len())
        .map(|way| (advantage(way), way))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (least >= QUICKER_LEAST).then(|| {
        format!(
            "{} was quicker in each of {} rounds, {least:.1} times at least by the median",
            best.name(),
            own.len()
        )
    })
}

/// A line for each way.
fn ways_table(ways: &[SyncTimes], used: (SyncMethod, bool)) -> Vec<String> {
    let rate = |method, direct, writes| {
        let found = ways
            .iter()
            .find(|w| w.method == method && w.direct == direct && w.writes == writes);
        found.map_or_else(
            || "-".to_owned(),
            |w| format!("{:.0}/s, {} ms", w.per_s, shown(w.times.mean_us / 1e3)),
        )
    };
    let mut lines = Vec::new();
    for direct in [false, true] {
        for method in SyncMethod::ALL {
            if !ways.iter().any(|w| w.method == method && w.direct == direct) {
                continue;
            }
            let name = name_of(method, direct);
            let mark = if (method, direct) == used {
                "the server's"
            } else {
                ""
            };
            let line = format!(
                "{name:<24} 1 x 8 kB {:<20} 2 x 8 kB {:<20} {mark}",
                rate(method, direct, 1),
                rate(method, direct, 2),
            );
            lines.push(line.trim_end().to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_way_is_named_if_it_was_quicker_every_time() {
        let way = |method, rounds: &[u64]| Way {
            method,
            writes: 1,
            direct: false,
            rounds_ns: rounds.iter().map(|&ns| vec![ns]).collect(),
        };
        let check = |other: &[u64], expected: Option<&str>| {
            let ways = [
                way(SyncMethod::Fdatasync, &[1000, 1000]),
                way(SyncMethod::OpenDatasync, other),
            ];
            let found = quicker(&ways, (SyncMethod::Fdatasync, false));
            match expected {
                Some(text) => assert!(found.as_ref().is_some_and(|f| f.contains(text)), "{found:?}"),
                None => assert_eq!(found, None),
            }
        };
        check(
            &[100, 500],
            Some("open_datasync was quicker in each of 2 rounds, 2.0 times"),
        );
        // Once is chance; a round is missing where it broke off.
        check(&[100, 900], None);
        check(&[100], None);
        check(&[2000, 2000], None);
    }

    #[test]
    fn medium_follows_from_the_time_of_a_random_read() {
        for (median_ms, expected) in [
            (0.005, None),
            (0.08, Some("ssd")),
            (0.25, Some("network")),
            (1.0, Some("network")),
            (6.0, Some("hdd")),
            (f64::NAN, None),
        ] {
            assert_eq!(medium_of(median_ms), expected, "{median_ms}");
        }
    }

    #[test]
    fn the_servers_way_is_marked_and_no_line_ends_with_blanks() {
        let ways: Vec<SyncTimes> = [SyncMethod::Fdatasync, SyncMethod::Fsync]
            .into_iter()
            .filter_map(|method| SyncTimes::of(method, 1, false, vec![500_000]))
            .collect();
        let expected = [
            "fdatasync                1 x 8 kB 2000/s, 0.500 ms     2 x 8 kB -                    the server's",
            "fsync                    1 x 8 kB 2000/s, 0.500 ms     2 x 8 kB -",
        ];
        assert_eq!(ways_table(&ways, (SyncMethod::Fdatasync, false)), expected);
    }

    #[test]
    fn every_way_is_in_the_list_once() {
        let all = Way::all();
        assert_eq!(all.len(), 12);
        assert!(all.iter().all(|way| !way.direct || way.method.is_by_opening()));
    }
}
