//! What figures are compared with: data. docs/how-to/check.md says where each number comes from.

use super::Grade;
use serde::Serialize;

/// Direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Smaller values are better: times, and shares that are lost.
    Less,
    /// Larger values are better: rates.
    More,
}

/// Bounds that a figure is graded by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Unit of the bounds and of the figure.
    pub unit: &'static str,
    /// Better than this is good.
    pub good: f64,
    /// This, and what is worse, is poor.
    pub poor: f64,
    /// Direction in which the figure is better.
    pub better: Better,
}

const fn below(unit: &'static str, good: f64, poor: f64) -> Limits {
    Limits {
        unit,
        good,
        poor,
        better: Better::Less,
    }
}

const TABLE: [(&str, Limits, &str); 9] = [
    (
        "timer",
        below("ns", 100.0, 1000.0),
        "another clock source (tsc, where the machine offers it); until then leave track_io_timing off, and EXPLAIN with \
         TIMING OFF",
    ),
    (
        "round_trip",
        below("ms", 0.25, 1.0),
        "bring the client nearer to the server, or make fewer round trips: several rows per statement, pipelines, \
         functions",
    ),
    (
        "commit",
        below("ms", 0.5, 2.0),
        "compare with wal_sync and round_trip, which are parts of it: a quicker volume for the WAL, a nearer client, or \
         more than one change per transaction; with a synchronous standby its network and disk are parts too",
    ),
    (
        "wal_sync",
        below("ms", 0.5, 2.0),
        "a volume for the WAL with a write cache that survives a loss of power, or another wal_sync_method where one \
         is said to be quicker here",
    ),
    (
        "random_read",
        below("ms", 0.25, 1.0),
        "keep more of the data in memory, or a quicker volume; index scans of what is not cached wait this long per page",
    ),
    (
        "sequential_read",
        Limits {
            unit: "MB/s",
            good: 500.0,
            poor: 100.0,
            better: Better::More,
        },
        "look for a limit of the volume or of the control group; sequential scans, backups and vacuum take as long as \
         this lets them",
    ),
    (
        "noise",
        below("%", 2.0, 5.0),
        "find what else runs here, or measure longer and in more blocks: differences below this are not seen here",
    ),
    (
        "clock",
        below("ms", 1.0, 10.0),
        "find what sets the clock, and let it be slewed (chronyd, systemd-timesyncd) rather than set",
    ),
    (
        "steal",
        below("%", 2.0, 10.0),
        "use a virtual machine with dedicated CPUs, or a larger one: results from this one are unreliable",
    ),
];

/// The limits of a measurement, and what to do about a poor one.
pub(super) fn of(name: &str) -> (Limits, &'static str) {
    let found = TABLE.iter().find(|(of, ..)| *of == name);
    found.map_or((below("", 0.0, 0.0), ""), |(_, limits, advice)| {
        (*limits, *advice)
    })
}

/// The grade of a figure by its limits.
pub(super) fn judge(figure: f64, limits: Limits) -> Grade {
    let (figure, good, poor) = match limits.better {
        Better::Less => (figure, limits.good, limits.poor),
        Better::More => (-figure, -limits.good, -limits.poor),
    };
    if figure.is_nan() {
        Grade::Unknown
    } else if figure < good {
        Grade::Good
    } else if figure < poor {
        Grade::Fair
    } else {
        Grade::Poor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_part_good_fair_and_poor() {
        let check = |name, figure, grade| assert_eq!(judge(figure, of(name).0), grade, "{name} {figure}");
        check("commit", 0.49, Grade::Good);
        check("commit", 0.5, Grade::Fair);
        check("commit", 2.0, Grade::Poor);
        check("sequential_read", 501.0, Grade::Good);
        check("sequential_read", 100.1, Grade::Fair);
        check("sequential_read", 100.0, Grade::Poor);
        check("sequential_read", 3.0, Grade::Poor);
        check("steal", f64::NAN, Grade::Unknown);
    }
}
