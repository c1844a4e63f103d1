//! Documents of trials for a report file: thinned where there are too many, deflated, in base64.

use super::model::{TrialColumn, TrialDocument};
use super::{document, thin};
use crate::model::Report;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pgdyno_record::{SeriesRecord, StoredExperiment};
use serde::Serialize;
use std::io::Write as _;

/// Room for a report file of 5 MB, less 1 MB for the page and the report itself.
const PACKED_BYTES_MAX: usize = 4_000_000;
/// Points of a column where all of its own are too many, and whether all metrics go along; from the
/// best to the least.
const LEVELS: &[(usize, Scope)] = &[
    (usize::MAX, Scope::All),
    (1200, Scope::All),
    (600, Scope::All),
    (300, Scope::All),
    (1200, Scope::Main),
    (600, Scope::Main),
    (300, Scope::Main),
    (150, Scope::Main),
    (80, Scope::Main),
];

/// A stretch of a heat map has tens of counts: it is as large as so many points of a series.
const POINTS_PER_STRETCH: usize = 4;

/// Metrics that go along where all are too many: those that the page shows first.
const MAIN: &[&str] = &[
    "tps",
    "p95_ms",
    "checkpoints.done_per_s",
    "checkpoints.requested_per_s",
    "checkpoints.sync_ms_per_s",
    "checkpoints.timed_per_s",
    "checkpoints.write_ms_per_s",
    "checkpoints.blocks_written_per_s",
    "cpu.busy_ratio",
    "cpu.iowait_ratio",
    "cpu.run_queue",
    "cpu.steal_ratio",
    "cpu.system_ratio",
    "cpu.user_ratio",
    "db.blocks_hit_per_s",
    "db.blocks_read_per_s",
    "disk.read_bytes_per_s",
    "disk.write_bytes_per_s",
    "disk.write_await_ms",
    "memory.available_bytes",
    "memory.cached_bytes",
    "memory.dirty_bytes",
    "psi.cpu.some_ratio",
    "psi.io.some_ratio",
    "sessions.active",
    "vacuum.autovacuum_workers",
    "vacuum.running",
    "wal.bytes_per_s",
    "wal.full_page_images_per_s",
];

/// Metrics that are in the details of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every metric that was recorded.
    All,
    /// Those that the page shows first, of single CPUs none.
    Main,
}

impl Scope {
    /// Whether a metric is to be read: a series that is not wanted need not be unpacked.
    pub fn wants(self, metric: &str) -> bool {
        self == Scope::All || MAIN.contains(&metric) || metric.starts_with("waits.")
    }
}

/// What the details of trials in a report file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Details {
    /// Points that a column has at most; `None` where it has all.
    pub points_max: Option<usize>,
    /// Metrics that have columns in them.
    pub scope: Scope,
    /// Trials without details, because the file would be too large.
    pub skipped: usize,
}

/// The packed document of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Number of the trial in the store.
    pub trial: i64,
    /// JSON with its times shared, zlib, base64.
    pub text: String,
}

/// Why trials could not be packed; `E` is the reader's.
#[derive(Debug, thiserror::Error)]
pub enum PackError<E> {
    /// The series could not be read.
    #[error("the series of trials {first} to {last} could not be read")]
    Read {
        /// The first of those that were asked for together.
        first: i64,
        /// The last of them.
        last: i64,
        /// The reader's error.
        source: E,
    },
    /// The document could not be written.
    #[error("the document of trial {trial} could not be packed: {source}")]
    Write {
        /// Number of the trial in the store.
        trial: i64,
        /// Error of the compression.
        source: std::io::Error,
    },
}

/// Gives the series of trials, one for each number and in their order.
type Read<'r, E> = dyn FnMut(&[i64], Scope) -> Result<Vec<SeriesRecord>, E> + 'r;

/// Packs the trials that `wanted` names, in the order of the report, with as many metrics and
/// points as a file of 5 MB has room for. `read` gives the series of some trials, in their order,
/// of which it may omit metrics that the scope does not want. While it reads the next ones, those
/// before are packed on a thread aside.
pub fn pack<E>(
    stored: &StoredExperiment,
    report: &Report,
    wanted: &dyn Fn(i64) -> bool,
    read: &mut Read<'_, E>,
) -> Result<(Details, Vec<Packed>), PackError<E>> {
    let ids: Vec<i64> = report
        .trials
        .iter()
        .map(|t| t.id)
        .filter(|id| wanted(*id))
        .collect();
    let mut reader = Reader { stored, report, read };
    for &(points_max, scope) in LEVELS.iter().skip(first_level(&mut reader, &ids)?) {
        if let Some(packed) = pack_all(&mut reader, &ids, points_max, scope, PACKED_BYTES_MAX)? {
            let details = Details {
                points_max: (points_max < usize::MAX).then_some(points_max),
                scope,
                skipped: 0,
            };
            return Ok((details, packed));
        }
    }
    let details = Details {
        points_max: None,
        scope: Scope::Main,
        skipped: ids.len(),
    };
    Ok((details, Vec::new()))
}

struct Reader<'a, E> {
    stored: &'a StoredExperiment,
    report: &'a Report,
    read: &'a mut Read<'a, E>,
}

impl<E> Reader<'_, E> {
    /// The documents of these trials, of those that are there.
    fn documents(&mut self, ids: &[i64], scope: Scope) -> Result<Vec<Document>, PackError<E>> {
        let (first, last) = match ids {
            [first, .., last] => (*first, *last),
            [only] => (*only, *only),
            [] => return Ok(Vec::new()),
        };
        let all = (self.read)(ids, scope).map_err(|source| PackError::Read { first, last, source })?;
        let document = |(&trial, series): (&i64, SeriesRecord)| {
            let of_report = self.report.trials.iter().find(|t| t.id == trial)?;
            let mut document = document(self.stored, of_report.clone(), &series)?;
            document
                .series
                .retain(|column| kept(scope, &column.metric, column.label.as_deref()));
            Some((trial, document))
        };
        Ok(ids.iter().zip(all).filter_map(document).collect())
    }
}

/// A trial and its document.
type Document = (i64, TrialDocument);

/// Sums over CPUs stay; of waits their types are in the document already.
fn kept(scope: Scope, metric: &str, label: Option<&str>) -> bool {
    let is_one_cpu = metric.starts_with("cpu.") && !matches!(label, None | Some("all"));
    match scope {
        Scope::All => true,
        Scope::Main => scope.wants(metric) && !metric.starts_with("waits.") && !is_one_cpu,
    }
}

/// Columns by which the size of a trial is reckoned.
const SAMPLE: usize = 16;

/// Reckons from some columns of the longest trial what all trials would take, and returns the first
/// level that fits.
fn first_level<E>(reader: &mut Reader<'_, E>, ids: &[i64]) -> Result<usize, PackError<E>> {
    let trials = reader.report.trials.iter().filter(|t| ids.contains(&t.id));
    let seconds: Vec<(usize, i64)> = trials.map(|t| (t.series.t_s.len().max(1), t.id)).collect();
    let Some((most, longest)) = seconds.iter().max().copied() else {
        return Ok(0);
    };
    let Some((_, all)) = reader.documents(&[longest], Scope::All)?.pop() else {
        return Ok(0);
    };
    for (number, (points_max, scope)) in LEVELS.iter().enumerate() {
        // Shorter trials have fewer points, where not all are thinned to the same number.
        let points: usize = seconds.iter().map(|(seconds, _)| seconds.min(points_max)).sum();
        if reckoned(longest, &all, *points_max, *scope)? * points / most.min(*points_max) <= PACKED_BYTES_MAX
        {
            return Ok(number);
        }
    }
    Ok(LEVELS.len() - 1)
}

/// The packed size of a trial, about.
fn reckoned(
    trial: i64,
    document: &TrialDocument,
    points_max: usize,
    scope: Scope,
) -> Result<usize, Unwritten> {
    let wanted: Vec<&TrialColumn> = document
        .series
        .iter()
        .filter(|column| kept(scope, &column.metric, column.label.as_deref()))
        .collect();
    let stride = wanted.len().div_ceil(SAMPLE).max(1);
    let rest = document.without_series();
    let alone = text_of(trial, rest.clone(), points_max)?.len();
    let some = TrialDocument {
        series: wanted
            .iter()
            .step_by(stride)
            .map(|column| (*column).clone())
            .collect(),
        ..rest
    };
    Ok(alone + (text_of(trial, some, points_max)?.len().saturating_sub(alone)) * stride)
}

/// So many trials are read at once: of all metrics of trials of an hour that is a hundred
/// megabytes.
const AT_ONCE: usize = 8;

/// `None` where they are too large together.
fn pack_all<E>(
    reader: &mut Reader<'_, E>,
    ids: &[i64],
    points_max: usize,
    scope: Scope,
    bytes_max: usize,
) -> Result<Option<Vec<Packed>>, PackError<E>> {
    let mut packed = Vec::new();
    let mut bytes = 0;
    let mut chunks = ids.chunks(AT_ONCE);
    let mut ready = reader.documents(chunks.next().unwrap_or_default(), scope)?;
    while !ready.is_empty() || chunks.len() > 0 {
        let documents = std::mem::take(&mut ready);
        let texts = std::thread::scope(|threads| {
            let packing = threads.spawn(|| texts_of(documents, points_max));
            ready = reader.documents(chunks.next().unwrap_or_default(), scope)?;
            packing
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map_err(PackError::from)
        })?;
        bytes += texts.iter().map(|packed| packed.text.len()).sum::<usize>();
        if bytes > bytes_max {
            return Ok(None);
        }
        packed.extend(texts);
    }
    Ok(Some(packed))
}

fn texts_of(documents: Vec<Document>, points_max: usize) -> Result<Vec<Packed>, Unwritten> {
    let packed = |(trial, document)| {
        let text = text_of(trial, document, points_max)?;
        Ok(Packed { trial, text })
    };
    documents.into_iter().map(packed).collect()
}

/// The trial whose document could not be written, and why.
struct Unwritten(i64, std::io::Error);

impl<E> From<Unwritten> for PackError<E> {
    fn from(Unwritten(trial, source): Unwritten) -> PackError<E> {
        PackError::Write { trial, source }
    }
}

/// A document with its columns' times written once, as steps.
#[derive(Serialize)]
struct Shared<'a> {
    #[serde(flatten)]
    document: &'a TrialDocument,
    axes: Vec<Vec<u32>>,
    columns: Vec<SharedColumn<'a>>,
}

#[derive(Serialize)]
struct SharedColumn<'a> {
    metric: &'a str,
    label: Option<&'a str>,
    unit: &'a str,
    layer: &'a str,
    title: &'a str,
    axis: usize,
    #[serde(serialize_with = "short")]
    values: Vec<Option<f64>>,
}

/// Whole numbers without a point.
fn short<S: serde::Serializer>(values: &[Option<f64>], serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeSeq as _;
    let mut sequence = serializer.serialize_seq(Some(values.len()))?;
    for value in values {
        match value {
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
            Some(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                sequence.serialize_element(&(*value as i64))?;
            }
            other => sequence.serialize_element(other)?,
        }
    }
    sequence.end()
}

fn text_of(trial: i64, mut document: TrialDocument, points_max: usize) -> Result<String, Unwritten> {
    let mut columns = std::mem::take(&mut document.series);
    if points_max < usize::MAX {
        columns
            .iter_mut()
            .for_each(|column| thin::column(column, points_max));
        if let Some(waits) = &mut document.waits {
            thin::waits(waits, points_max);
        }
        if let Some(heat) = &mut document.latency_heat {
            heat.thin(points_max / POINTS_PER_STRETCH);
        }
    }
    let mut axes: Vec<&[u32]> = Vec::new();
    let shared: Vec<SharedColumn<'_>> = columns
        .iter()
        .map(|column| {
            let known = axes.iter().position(|axis| *axis == column.t_ms);
            let axis = known.unwrap_or_else(|| {
                axes.push(&column.t_ms);
                axes.len() - 1
            });
            SharedColumn {
                metric: &column.metric,
                label: column.label.as_deref(),
                unit: column.unit,
                layer: column.layer,
                title: &column.title,
                axis,
                values: column.values.clone(),
            }
        })
        .collect();
    let whole = Shared {
        axes: axes.into_iter().map(steps).collect(),
        columns: shared,
        document: &document,
    };
    let write = |source| Unwritten(trial, source);
    let json = serde_json::to_vec(&whole).map_err(|error| write(error.into()))?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(4));
    encoder.write_all(&json).map_err(write)?;
    Ok(STANDARD.encode(encoder.finish().map_err(write)?))
}

/// The first, then how much later each next one is.
fn steps(times: &[u32]) -> Vec<u32> {
    let before = std::iter::once(0).chain(times.iter().copied());
    times
        .iter()
        .zip(before)
        .map(|(at, before)| at.saturating_sub(before))
        .collect()
}
