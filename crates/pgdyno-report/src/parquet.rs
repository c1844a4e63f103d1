//! Trials and series as Apache Parquet, for programs that read tables by column: DuckDB, Spark,
//! ClickHouse, pandas.

use crate::format::{factors, figures};
use crate::model::{Report, Trial};
use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use pgdyno_record::ColumnRecord;
use std::io::Write;
use std::sync::Arc;

/// Rows that are written together: what a reader takes at once, and what is held until it is
/// written.
const GROUP_ROWS: usize = 122_880;

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("Parquet could not be written: {0}")]
pub struct ParquetFault(#[from] ParquetError);

/// Values of a column, one for each row; what is not known is null.
enum Cells {
    Flag(Vec<Option<bool>>),
    Small(Vec<Option<i32>>),
    Int(Vec<Option<i64>>),
    /// Milliseconds since 1970.
    Instant(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Text(Vec<Option<ByteArray>>),
}

impl Cells {
    fn described(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = match self {
            Cells::Flag(_) => (Physical::BOOLEAN, None),
            Cells::Small(_) => (Physical::INT32, None),
            Cells::Int(_) => (Physical::INT64, None),
            Cells::Instant(_) => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
            ),
            Cells::Number(_) => (Physical::DOUBLE, None),
            Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }

    fn write<W: Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        match self {
            Cells::Flag(cells) => write_cells::<BoolType, W>(group, cells),
            Cells::Small(cells) => write_cells::<Int32Type, W>(group, cells),
            Cells::Int(cells) | Cells::Instant(cells) => write_cells::<Int64Type, W>(group, cells),
            Cells::Number(cells) => write_cells::<DoubleType, W>(group, cells),
            Cells::Text(cells) => write_cells::<ByteArrayType, W>(group, cells),
        }
    }
}

fn write_cells<D: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: Vec<Option<D::T>>,
) -> Result<(), ParquetError> {
    // Of a column that may be null, level 1 is a value.
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<D::T> = cells.into_iter().flatten().collect();
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("the schema has a column less".to_owned()))?;
    column.typed::<D>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

type Table = Vec<(String, Cells)>;

fn writer<W: Write + Send>(out: W, table: &Table) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields: Vec<_> = table
        .iter()
        .map(|(name, cells)| cells.described(name).map(Arc::new))
        .collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("pgdyno").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("pgdyno ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    table: Table,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (_, cells) in table {
        cells.write(&mut group)?;
    }
    group.close().map(drop)
}

fn text(value: &str) -> Option<ByteArray> {
    Some(ByteArray::from(value.as_bytes().to_vec()))
}

fn int(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

/// All trials of these reports, a row each in the order they ran, with what [`crate::csv()`] has:
/// `started` is an instant, a factor's level is in `factor:NAME`, figures have their names. What is
/// not known is null.
pub fn trials_parquet<W: Write + Send>(reports: &[Report], out: W) -> Result<(), ParquetFault> {
    let table = trials_table(reports);
    let mut writer = writer(out, &table)?;
    write_group(&mut writer, table)?;
    writer.close()?;
    Ok(())
}

fn trials_table(reports: &[Report]) -> Table {
    let rows: Vec<(&Report, &Trial)> = reports
        .iter()
        .flat_map(|report| report.trials.iter().map(move |trial| (report, trial)))
        .collect();
    let texts = |of: &dyn Fn(&Report, &Trial) -> Option<String>| {
        let cell = |(report, trial): &(&Report, &Trial)| of(report, trial).and_then(|value| text(&value));
        Cells::Text(rows.iter().map(cell).collect())
    };
    let ints = |of: &dyn Fn(&Report, &Trial) -> Option<i64>| {
        Cells::Int(rows.iter().map(|(report, trial)| of(report, trial)).collect())
    };
    let numbers = |of: &dyn Fn(&Trial) -> Option<f64>| {
        Cells::Number(rows.iter().map(|(_, trial)| of(trial).and_then(finite)).collect())
    };
    let started = rows.iter().map(|(_, trial)| int(trial.started_unix_ms));
    let excluded = rows.iter().map(|(_, trial)| Some(trial.excluded));
    let own: Vec<(&str, Cells)> = vec![
        ("experiment", ints(&|report, _| Some(report.experiment.id))),
        ("name", texts(&|report, _| Some(report.experiment.name.clone()))),
        ("trial", ints(&|_, trial| Some(trial.id))),
        ("block", ints(&|_, trial| Some(trial.block.into()))),
        ("position", ints(&|_, trial| Some(trial.position.into()))),
        ("treatment", texts(&|_, trial| Some(trial.treatment.clone()))),
        (
            "status",
            texts(&|_, trial| Some(format!("{:?}", trial.status).to_lowercase())),
        ),
        ("excluded", Cells::Flag(excluded.collect())),
        ("reason", texts(&|_, trial| trial.reason.clone())),
        (
            "disturbances",
            texts(&|_, trial| Some(trial.disturbances.join("; ")).filter(|joined| !joined.is_empty())),
        ),
        ("server_variant", texts(&|_, trial| trial.server_variant.clone())),
        ("started", Cells::Instant(started.collect())),
        ("warmup_s", numbers(&|trial| Some(trial.warmup_s))),
        ("measured_s", numbers(&|trial| Some(trial.measured_s))),
        ("unsettled_s", numbers(&|trial| trial.unsettled_s)),
        (
            "warm_up",
            texts(&|_, trial| Some(trial.warm_up.word().to_owned())),
        ),
        ("committed", ints(&|_, trial| int(trial.transactions.committed))),
        ("failed", ints(&|_, trial| int(trial.transactions.failed?))),
        ("skipped", ints(&|_, trial| int(trial.transactions.skipped?))),
        ("late", ints(&|_, trial| int(trial.transactions.late?))),
        ("retries", ints(&|_, trial| int(trial.transactions.retries?))),
        (
            "rolled_back",
            ints(&|_, trial| int(trial.transactions.rolled_back?)),
        ),
    ];
    let mut table: Table = own
        .into_iter()
        .map(|(name, cells)| (name.to_owned(), cells))
        .collect();
    for factor in each_once(reports, factors) {
        let level = |report: &Report, trial: &Trial| {
            let treatment = report.treatments.iter().find(|t| t.name == trial.treatment)?;
            let found = treatment.levels.iter().find(|level| level.factor == factor)?;
            Some(found.level.clone())
        };
        table.push((format!("factor:{factor}"), texts(&level)));
    }
    for figure in each_once(reports, figures) {
        let cells = numbers(&|trial| trial.figures.get(&figure).copied());
        table.push((figure, cells));
    }
    table
}

/// What the reports have of something, each once, in their order.
fn each_once(reports: &[Report], of: fn(&Report) -> Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    for name in reports.iter().flat_map(of) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Series as one table, a row for each point: `experiment`, `trial`, `block`, `treatment`,
/// `metric`, `label`, `at_ms`, `value`.
pub struct SeriesParquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: SeriesRows,
    group_rows: usize,
}

#[derive(Default)]
struct SeriesRows {
    experiment: Vec<Option<i64>>,
    trial: Vec<Option<i64>>,
    block: Vec<Option<i64>>,
    treatment: Vec<Option<ByteArray>>,
    metric: Vec<Option<ByteArray>>,
    label: Vec<Option<ByteArray>>,
    at_ms: Vec<Option<i32>>,
    value: Vec<Option<f64>>,
}

impl SeriesRows {
    fn table(self) -> Table {
        let columns = [
            ("experiment", Cells::Int(self.experiment)),
            ("trial", Cells::Int(self.trial)),
            ("block", Cells::Int(self.block)),
            ("treatment", Cells::Text(self.treatment)),
            ("metric", Cells::Text(self.metric)),
            ("label", Cells::Text(self.label)),
            ("at_ms", Cells::Small(self.at_ms)),
            ("value", Cells::Number(self.value)),
        ];
        columns.map(|(name, cells)| (name.to_owned(), cells)).into()
    }
}

impl<W: Write + Send> SeriesParquet<W> {
    /// Begins a file.
    pub fn new(out: W) -> Result<SeriesParquet<W>, ParquetFault> {
        let rows = SeriesRows::default();
        let writer = writer(out, &SeriesRows::default().table())?;
        Ok(SeriesParquet {
            writer,
            rows,
            group_rows: GROUP_ROWS,
        })
    }

    /// Adds a column that was recorded beside a trial of an experiment. Values that are no numbers
    /// are null.
    pub fn add(&mut self, experiment: i64, trial: &Trial, column: &ColumnRecord) -> Result<(), ParquetFault> {
        let mut times = &column.at_ms[..];
        let mut values = &column.values[..];
        while !times.is_empty() && !values.is_empty() {
            let room = self.group_rows.saturating_sub(self.rows.value.len()).max(1);
            let (now, later) = times.split_at(room.min(times.len()).min(values.len()));
            let (values_now, values_later) = values.split_at(now.len());
            self.add_points(experiment, trial, column, (now, values_now));
            (times, values) = (later, values_later);
            if self.rows.value.len() >= self.group_rows {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Adds as many times as values of a column.
    fn add_points(
        &mut self,
        experiment: i64,
        trial: &Trial,
        column: &ColumnRecord,
        (times, values): (&[u32], &[f64]),
    ) {
        let points = values.len();
        let rows = &mut self.rows;
        rows.experiment
            .extend(std::iter::repeat_n(Some(experiment), points));
        rows.trial.extend(std::iter::repeat_n(Some(trial.id), points));
        rows.block
            .extend(std::iter::repeat_n(Some(i64::from(trial.block)), points));
        for (cells, value) in [
            (&mut rows.treatment, &trial.treatment),
            (&mut rows.metric, &column.metric),
            (&mut rows.label, &column.label),
        ] {
            cells.extend(std::iter::repeat_n(text(value), points));
        }
        // 24 days of milliseconds fit; a load ends long before.
        rows.at_ms.extend(times.iter().map(|at| i32::try_from(*at).ok()));
        rows.value.extend(values.iter().map(|value| finite(*value)));
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        match rows.value.is_empty() {
            true => Ok(()),
            false => write_group(&mut self.writer, rows.table()),
        }
    }

    /// Writes the rest, and what shows readers where everything is.
    pub fn close(mut self) -> Result<(), ParquetFault> {
        self.flush()?;
        self.writer.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
