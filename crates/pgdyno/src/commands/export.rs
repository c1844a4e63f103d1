//! `pgdyno export`: what is stored of an experiment, for other programs.

use crate::cli::{SaveArgs, SaveFormat};
use crate::commands::{report, stored};
use crate::context::Context;
use crate::exit;
use crate::failure::{Failure, InContext as _, Result, Usage};
use crate::output;
use crate::paths::absolute;
use jiff::Timestamp;
use pgdyno_engine::{Protocol, StoredHistogram, write_stored_log};
use pgdyno_record::StoredExperiment;
use pgdyno_report::{
    Report, SERIES_HEAD, SeriesParquet, bmf, csv, github_benchmark, junit, otava, postgresbench, series_csv,
    trials_parquet,
};
use pgdyno_store::{Filter, Store};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

pub(crate) fn run(context: &Context, args: &SaveArgs) -> Result<u8> {
    let usage = |text: &str| Failure::from(Usage(text.to_owned()));
    let several = args.id.len() > 1 || args.name.is_some();
    let is_parquet = args.format == SaveFormat::Parquet;
    let of_treatment = [SaveFormat::Otava, SaveFormat::Postgresbench].contains(&args.format);
    if several && args.format != SaveFormat::Otava && !is_parquet || args.treatment.is_some() && !of_treatment
    {
        return Err(usage(
            "several numbers and --name are for --format otava and parquet, --treatment for otava and postgresbench",
        ));
    }
    if args.series && args.format != SaveFormat::Csv && !is_parquet {
        return Err(usage(
            "--series is for --format csv and parquet; json has the series with it",
        ));
    }
    if is_parquet && args.output.is_none() && output::data_is_seen() {
        return Err(usage("Parquet is a binary format: name a file with -o"));
    }
    let store = stored::store(context, args.store.place())?;
    let ids = numbers(&store, args)?;
    let reports: Vec<Report> = ids
        .iter()
        .map(|id| report::build(context, &store, *id))
        .collect::<Result<_>>()?;
    if let Some(name) = &args.treatment {
        let known = |report: &Report| report.treatments.iter().any(|t| t.name == *name);
        if !reports.iter().any(known) {
            return Err(usage(&format!("no experiment of these has a treatment {name:?}")));
        }
    }
    let write = |mut out: &mut (dyn Write + Send)| -> Result<()> {
        let (report, id) = (&reports[0], ids[0]);
        match args.format {
            SaveFormat::Csv if args.series => series(&store, report, out)?,
            SaveFormat::Csv => out.write_all(csv(report).as_bytes())?,
            SaveFormat::Json => json(&store, report, out)?,
            SaveFormat::Otava => {
                let text = otava(&reports, args.treatment.as_deref(), iso);
                out.write_all(text.as_bytes())?;
            }
            SaveFormat::Postgresbench => {
                let day = report.trials.first().map_or(0, |trial| trial.started_unix_ms);
                let protocol = protocol_of(&store.experiment(id)?.record.file);
                let text = postgresbench(report, args.treatment.as_deref(), &date(day), protocol.as_deref());
                out.write_all(text.as_bytes())?;
            }
            SaveFormat::Hdr => hdr(&store.experiment(id)?, out)?,
            SaveFormat::Parquet if args.series => series_parquet(&store, &reports, &mut out)?,
            SaveFormat::Parquet => trials_parquet(&reports, &mut out)?,
            SaveFormat::Bmf => out.write_all(bmf(report).as_bytes())?,
            SaveFormat::GhBenchmark => out.write_all(github_benchmark(report).as_bytes())?,
            SaveFormat::Junit => out.write_all(junit(report)?.as_bytes())?,
        }
        Ok(out.flush()?)
    };
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let failed = || format!("{} could not be written", path.display());
            let file = output::private_file(path).with_context(failed)?;
            write(&mut BufWriter::new(file)).with_context(failed)?;
            err!("written: {}", absolute(path).display());
        }
        None => {
            let mut out = BufWriter::new(UntilClosed::over(match args.format {
                SaveFormat::Json | SaveFormat::Postgresbench | SaveFormat::Bmf | SaveFormat::GhBenchmark => {
                    output::json_data()
                }
                _ => output::data(),
            }));
            match write(&mut out) {
                // Nobody reads on: `| head` has what it needs.
                Err(_) if out.get_ref().is_closed => {}
                other => other?,
            }
        }
    }
    Ok(exit::FINE)
}

/// A writer that remembers that its reader is gone.
struct UntilClosed<W> {
    inner: W,
    is_closed: bool,
}

impl<W: Write> UntilClosed<W> {
    fn over(inner: W) -> UntilClosed<W> {
        let is_closed = false;
        UntilClosed { inner, is_closed }
    }

    fn noting<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.is_closed |= done.as_ref().err().is_some_and(broken);
        done
    }
}

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.inner.write(bytes);
        self.noting(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.inner.flush();
        self.noting(done)
    }
}

fn numbers(store: &Store, args: &SaveArgs) -> Result<Vec<i64>> {
    let Some(name) = &args.name else {
        let number = |reference| {
            stored::whole(Some(reference))?;
            stored::number(store, Some(reference))
        };
        return args.id.iter().map(number).collect();
    };
    let all = store.find(&Filter::default())?;
    let ids: Vec<i64> = all.iter().filter(|e| e.name == *name).map(|e| e.id).collect();
    match ids.is_empty() {
        true => Err(Usage(format!(
            "no experiment is named {name:?}; `pgdyno list` shows those there are"
        ))
        .into()),
        false => Ok(ids),
    }
}

fn series(store: &Store, report: &Report, out: &mut dyn Write) -> Result<()> {
    out.write_all(SERIES_HEAD.as_bytes())?;
    for trial in &report.trials {
        store.each_column(trial.id, |column| {
            out.write_all(series_csv(trial.id, &column).as_bytes())
                .map_err(Failure::from)
        })?;
    }
    Ok(())
}

fn series_parquet(store: &Store, reports: &[Report], out: &mut (dyn Write + Send)) -> Result<()> {
    let mut file = SeriesParquet::new(out)?;
    for report in reports {
        for trial in &report.trials {
            store.each_column(trial.id, |column| {
                file.add(report.experiment.id, trial, &column)
                    .map_err(Failure::from)
            })?;
        }
    }
    Ok(file.close()?)
}

/// The report's JSON with a key "series" more; one trial's series are held at a time.
fn json(store: &Store, report: &Report, out: &mut dyn Write) -> Result<()> {
    let text = serde_json::to_string(report)?;
    let open = text.strip_suffix('}').unwrap_or(&text);
    write!(out, "{open},\"series\":[")?;
    for (at, trial) in report.trials.iter().enumerate() {
        let series = store.series(trial.id)?;
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}\n{{\"trial\":{},\"columns\":", trial.id)?;
        serde_json::to_writer(&mut *out, &series.columns)?;
        write!(out, ",\"gaps\":")?;
        serde_json::to_writer(&mut *out, &series.gaps)?;
        write!(out, "}}")?;
    }
    Ok(writeln!(out, "]}}")?)
}

fn hdr(stored: &StoredExperiment, out: &mut dyn Write) -> Result<()> {
    let with = || {
        stored
            .trials
            .iter()
            .filter(|(_, trial)| trial.histogram.is_some())
    };
    let Some(start_ms) = with().map(|(_, trial)| trial.started_unix_ms).min() else {
        return Err(Usage(format!("no trial of experiment {} has a histogram", stored.id)).into());
    };
    let histograms = with().filter_map(|(_, trial)| {
        Some(StoredHistogram {
            tag: &trial.treatment,
            begins: Duration::from_millis(trial.started_unix_ms - start_ms),
            length: Duration::try_from_secs_f64(trial.measured_s).unwrap_or_default(),
            encoded: trial.histogram.as_deref()?,
        })
    });
    Ok(write_stored_log(
        out,
        UNIX_EPOCH + Duration::from_millis(start_ms),
        histograms,
    )?)
}

/// How statements were sent, by the text of an experiment's file; unknown of a load without one or
/// of another program, and where a step or level may vary it.
fn protocol_of(file: &str) -> Option<String> {
    let table: toml::Table = file
        .parse()
        .ok()
        .filter(|table: &toml::Table| !table.is_empty())?;
    let of_all = table.get("load").and_then(|load| load.get("protocol")?.as_str());
    let of_all = of_all.map(str::to_owned);
    let file = toml::Value::Table(table);
    if ["program", "command"].iter().any(|key| places(&file, key) > 0) {
        return None;
    }
    match (of_all, places(&file, "protocol")) {
        (None, 0) => Some(Protocol::Prepared.name().to_owned()),
        (Some(protocol), 1) => Some(protocol),
        _ => None,
    }
}

/// In how many places a key of a load is given, or varied by a factor.
fn places(value: &toml::Value, key: &str) -> usize {
    let of_load = format!("load.{key}");
    match value {
        toml::Value::Table(table) => {
            let each = table.iter();
            each.map(|(name, value)| usize::from(name == key || *name == of_load) + places(value, key))
                .sum()
        }
        toml::Value::Array(values) => values.iter().map(|value| places(value, key)).sum(),
        toml::Value::String(text) => usize::from(*text == of_load),
        _ => 0,
    }
}

/// The day of an instant, in UTC: "2026-11-26".
fn date(unix_ms: u64) -> String {
    iso(unix_ms).chars().take_while(|&c| c != ' ').collect()
}

/// An instant with its zone, as Otava reads it.
fn iso(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).map_or_else(
        |_| unix_ms.to_string(),
        |t| t.strftime("%Y-%m-%d %H:%M:%S +0000").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_is_known_where_all_have_one() {
        let check = |file: &str, expected: Option<&str>| {
            assert_eq!(protocol_of(file).as_deref(), expected, "{file}");
        };
        let load = "# a program's protocol\n[target]\nrestart_command = \"x\"\n[load]\nclients = 2\n";
        check("", None);
        check(load, Some("prepared"));
        check(&format!("{load}protocol = \"simple\"\n"), Some("simple"));
        check(&format!("{load}program = \"pgbench\"\n"), None);
        check(
            &format!("{load}[[step]]\nname = \"a\"\nload.protocol = \"simple\"\n"),
            None,
        );
        check(
            &format!("{load}[[factor]]\nname = \"a\"\nof = \"load.protocol\"\n"),
            None,
        );
        check(
            &format!("{load}[[step]]\nname = \"a\"\nload = {{ command = \"x\" }}\n"),
            None,
        );
    }
}
