//! Real output of programs gives its figures, and any input at all is read.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/loads");
    fs::read(folder.join(format!("{name}.txt"))).unwrap()
}

/// What a fixture must give.
struct Expected {
    name: &'static str,
    warmup_s: f64,
    seconds: usize,
    tps: Option<f64>,
    transactions: Option<u64>,
    failed: Option<u64>,
    /// mean, p95, p99, max
    ms: [Option<f64>; 4],
    broken: &'static str,
}

fn check(expected: &Expected) {
    let program = expected.name.split('-').next().unwrap();
    let figures = read(&format(program), &fixture(expected.name), expected.warmup_s);
    let name = expected.name;
    let tps = figures
        .tps
        .filter(|_| !figures.seconds.is_empty() || figures.transactions.is_some());
    match (tps, expected.tps) {
        (Some(tps), Some(wanted)) => assert!((tps / wanted - 1.0).abs() < 1e-3, "{name}: {tps}"),
        (tps, wanted) => assert_eq!(tps, wanted, "{name}"),
    }
    assert_eq!(figures.seconds.len(), expected.seconds, "{name}");
    assert_eq!(figures.transactions, expected.transactions, "{name}");
    assert_eq!(figures.failed, expected.failed, "{name}");
    let latency = figures.latency;
    let ms = [latency.mean_ms, latency.p95_ms, latency.p99_ms, latency.max_ms];
    assert_eq!(ms, expected.ms, "{name}");
    let broken = figures.broken.unwrap_or_default();
    assert!(
        broken.contains(expected.broken) && broken.is_empty() == expected.broken.is_empty(),
        "{name}: {broken}"
    );
    assert_eq!(figures.latency_includes_warmup, expected.warmup_s > 0.0, "{name}");
}

const NOTHING: Expected = Expected {
    name: "",
    warmup_s: 0.0,
    seconds: 0,
    tps: None,
    transactions: None,
    failed: None,
    ms: [None; 4],
    broken: "",
};

#[test]
fn real_output_gives_its_figures() {
    let expected = [
        Expected {
            name: "pgbench",
            warmup_s: 2.0,
            seconds: 5,
            tps: Some(1135.5),
            transactions: Some(5143),
            failed: Some(0),
            ms: [Some(3.877), None, None, None],
            ..NOTHING
        },
        // Without a second behind the warm-up, the figures at the end count, and are marked so.
        Expected {
            name: "pgbench",
            warmup_s: 9.0,
            seconds: 5,
            tps: Some(1_030.124),
            transactions: Some(5143),
            failed: Some(0),
            ms: [Some(3.877), None, None, None],
            ..NOTHING
        },
        Expected {
            name: "pgbench-connect",
            seconds: 3,
            tps: Some(115.0),
            transactions: Some(349),
            failed: Some(0),
            ms: [Some(26.517), None, None, None],
            ..NOTHING
        },
        Expected {
            name: "pgbench-rate",
            seconds: 2,
            tps: Some(202.0),
            transactions: Some(623),
            failed: Some(0),
            ms: [Some(7.406), None, None, None],
            ..NOTHING
        },
        Expected {
            name: "pgbench-failed",
            warmup_s: 1.0,
            seconds: 3,
            tps: Some(432.4),
            transactions: Some(1111),
            failed: Some(6622),
            ms: [Some(3.635), None, None, None],
            ..NOTHING
        },
        Expected {
            name: "pgbench-continued",
            warmup_s: 1.0,
            seconds: 3,
            tps: Some(1236.0),
            transactions: Some(2960),
            failed: Some(16),
            ms: [Some(2.019), None, None, None],
            ..NOTHING
        },
        Expected {
            name: "pgbench-stalled",
            seconds: 5,
            tps: Some(214.42),
            transactions: Some(1073),
            failed: Some(0),
            ms: [Some(9.304), None, None, None],
            ..NOTHING
        },
        Expected {
            name: "pgbench-aborted",
            tps: Some(26_292.398),
            transactions: Some(5768),
            failed: Some(0),
            ms: [Some(0.067), None, None, None],
            broken: "client 0 script 0 aborted",
            ..NOTHING
        },
        Expected {
            name: "pgbench-lost",
            seconds: 4,
            tps: Some(262.75),
            transactions: Some(1052),
            failed: Some(0),
            ms: [Some(5.815), None, None, None],
            broken: "terminating connection",
            ..NOTHING
        },
        Expected {
            name: "pgbench-ended",
            seconds: 2,
            tps: Some(243.5),
            ..NOTHING
        },
        Expected {
            name: "sysbench",
            warmup_s: 1.0,
            seconds: 5,
            tps: Some(867.77),
            transactions: Some(4234),
            failed: Some(9),
            ms: [Some(4.74), Some(13.22), None, Some(40.73)],
            ..NOTHING
        },
        Expected {
            name: "sysbench-p99",
            seconds: 3,
            tps: Some(742.76),
            transactions: Some(2233),
            failed: Some(5),
            ms: [Some(5.39), None, Some(24.83), Some(57.37)],
            ..NOTHING
        },
        Expected {
            name: "sysbench-stalled",
            warmup_s: 2.0,
            seconds: 5,
            tps: Some(101.093),
            transactions: Some(559),
            failed: Some(1),
            ms: [Some(17.91), Some(22.69), None, Some(2324.07)],
            ..NOTHING
        },
        Expected {
            name: "sysbench-lost",
            seconds: 2,
            tps: Some(241.39),
            ..NOTHING
        },
        Expected {
            name: "sysbench-ended",
            seconds: 2,
            tps: Some(153.935),
            ..NOTHING
        },
        Expected {
            name: "sysbench-refused",
            broken: "password authentication failed",
            ..NOTHING
        },
    ];
    expected.iter().for_each(check);
}

#[test]
fn a_second_has_its_own_figures_and_a_standstill_has_no_times() {
    let figures = read(&format("sysbench"), &fixture("sysbench-stalled"), 1.5);
    let third = figures.seconds[2];
    assert_eq!(
        (third.tps, third.latency.p95_ms, third.measured),
        (0.0, None, true)
    );
    let first = figures.seconds[0];
    assert_eq!((first.t_s, first.length_s, first.measured), (1.0, 1.0, false));
    assert_eq!(
        (first.latency.p95_ms, first.failed_per_s),
        (Some(20.0), Some(1.0))
    );
    // Its middle is what counts.
    assert!(figures.seconds[1].measured);
    let failed = read(&format("pgbench"), &fixture("pgbench-failed"), 0.0).seconds[1];
    assert_eq!(
        (failed.failed_per_s, failed.latency.mean_ms),
        (Some(2446.0), Some(2.921))
    );
}

/// Mean, median, 95th and 99th percentile, maximum.
fn times(of: ForeignLatency) -> [Option<f64>; 5] {
    [of.mean_ms, of.p50_ms, of.p95_ms, of.p99_ms, of.max_ms]
}

#[test]
fn programs_of_tpcc_are_read() {
    let figures = read(&format("sysbench-tpcc"), &fixture("sysbench-tpcc"), 1.5);
    assert_eq!((figures.transactions, figures.failed), (Some(1285), Some(7)));
    assert_eq!(
        (figures.tps.map(f64::round), figures.seconds.len()),
        (Some(163.0), 8)
    );
    assert_eq!(figures.latency.p95_ms, Some(56.84));

    let figures = read(&format("go-tpc"), &fixture("go-tpc"), 0.0);
    assert_eq!((figures.tps, figures.nopm), (Some(15_533.0 / 60.0), Some(7057.5)));
    assert_eq!(times(figures.latency), [17.1, 15.7, 37.7, 60.8, 96.5].map(Some));
    assert_eq!(figures.broken, None);

    let text = b"[INFO ] 12:00 [main] DBWorkload runWorkload - Rate limited reqs/s: Results(state=EXIT, \
        nanoSeconds=60000000000, measuredRequests=3168) = 52.8 requests/sec (throughput), 52.5 requests/sec (goodput)\n";
    let figures = read(&format("benchbase"), text, 0.0);
    assert_eq!((figures.tps, figures.transactions), (Some(52.5), Some(3168)));
}

#[test]
fn hammerdb_is_read() {
    let figures = read(&format("hammerdb"), &fixture("hammerdb"), 0.0);
    assert_eq!((figures.tps, figures.nopm), (Some(17999.0 / 60.0), Some(7928.0)));
    assert_eq!(
        times(figures.latency),
        [3.685, 2.207, 9.863, 25.064, 252.323].map(Some)
    );
    assert_eq!(figures.broken, None);
    for broken in [
        "Vuser 3:FINISHED FAILED",
        "Vuser 2:New Order Procedure Error set RAISEERROR for Details",
    ] {
        let text =
            format!("Vuser 1:TEST RESULT : System achieved 12 NOPM from 27 PostgreSQL TPM\n{broken}\n");
        let figures = read(&format("hammerdb"), text.as_bytes(), 0.0);
        assert_eq!(figures.broken.as_deref(), Some(broken));
    }
    assert_eq!(format("hammerdb").commits.per_transaction, None);
}

#[test]
fn older_and_odd_lines_are_read_too() {
    let pgbench = format("pgbench");
    let old = b"progress: 1.0 s, 100.0 tps, lat 1.000 ms stddev 0.500\n\
        tps = 85.1 (including connections establishing)\ntps = 85.2 (excluding connections establishing)\n\
        number of transactions actually processed: 123/1000\n";
    let figures = read(&pgbench, old, 5.0);
    assert_eq!(
        (figures.tps, figures.transactions, figures.tps_includes_warmup),
        (Some(85.2), Some(123), true)
    );
    // A date is no time since the start, and a time that does not advance ends no second.
    let mut output = ForeignOutput::new(&pgbench, 0.0, false, None);
    let dates = b"progress: 1790000000.123 s, 7.0 tps, lat 1.0 ms\nprogress: 2.0 s, 9.0 tps\n";
    output.read(ForeignStream::Err, dates, 2.0, &mut |_| {});
    let seconds = output.finish(3.0, &mut |_| {}).seconds;
    assert_eq!(
        seconds
            .iter()
            .map(|second| (second.t_s, second.tps))
            .collect::<Vec<_>>(),
        [(2.0, 7.0)]
    );
}

proptest! {
    #[test]
    fn any_output_is_read_the_same_however_it_comes(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "(progress: [0-9.]{1,6} s, [0-9.e+-]{1,5} tps, lat [0-9.]{1,4} ms\n|tps = [0-9.]{1,30} \\(without|\\[ [0-9]{1,3}s \\] thds: 1 tps: [0-9.]{1,5} lat \\(ms,95%\\): 1 err/s: 2\n)".prop_map(String::into_bytes),
        ], 0..40),
        warmup_s in -1.0..9.0_f64,
        which in 0..3_usize,
    ) {
        let format = foreign_formats().unwrap().remove(which);
        let whole = read(&format, &pieces.concat(), warmup_s);
        let mut output = ForeignOutput::new(&format, warmup_s, false, Some("sekret".into()));
        for piece in &pieces {
            output.read(ForeignStream::Out, piece, f64::MAX, &mut |_| {});
        }
        prop_assert_eq!(output.finish(10.0, &mut |_| {}), whole);
    }
}
