//! The experiment of a gate, as a file.

use super::sides::{Kind, Side, Sides};
use crate::cli::GateArgs;
use crate::commands::drafts::{NamedLoad, table};
use crate::failure::{Failure, Result};
use pgdyno_knobs::Catalogue;
use pgdyno_record::{Better, Metric};
use pgdyno_report::REFERENCE_AGAIN;
use toml::Value;

/// The factor, and its levels: the reference, what is compared with it, and the reference once
/// more.
pub(super) const SIDE: &str = "side";
pub(super) const BASE: &str = "base";
pub(super) const HEAD: &str = "head";
pub(super) const AGAIN: &str = REFERENCE_AGAIN;

/// The metric that decides where none is named.
const METRIC: &str = "tps";

/// The smallest effect that a loss of the limit is, to a hundredth of a percent: a loss of 20 % is
/// a ratio of 0.8 = 1 / 1.25 where more is better, and of 1.2 where less is.
pub(super) fn smallest_effect(limit: f64, metric: Option<&str>) -> f64 {
    match Metric::named(metric.unwrap_or(METRIC)).map(|metric| metric.better) {
        Some(Better::Higher) => ((limit / (1.0 - limit) * 1e4).round() / 1e4).max(limit),
        Some(Better::Lower) | None => limit,
    }
}

/// How the sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Each has a server of its own, and these take turns within one load.
    InTurns,
    /// Each has trials of its own.
    Separate,
}

impl Way {
    /// Servers of their own are sandboxes, and share the host with its settings.
    fn of(args: &GateArgs, sides: &Sides, catalogue: &Catalogue, target: &str) -> Way {
        let of_host = |name: &String| catalogue.find(name).is_some_and(|knob| knob.kind.is_of_host());
        let changes_host = |side: &Side| match &side.kind {
            Kind::Settings(settings) => settings.keys().any(of_host),
            Kind::Build(_) | Kind::Schema(_) => false,
        };
        let is_sandbox = crate::target::sandbox_named(target).is_some();
        let is_apart = args.separate || !is_sandbox || changes_host(&sides.base) || changes_host(&sides.head);
        if is_apart { Way::Separate } else { Way::InTurns }
    }
}

/// The text of the experiment for a target; `has_again`: with the reference once more.
pub(super) fn text(
    args: &GateArgs,
    sides: &Sides,
    load: &NamedLoad,
    (target, catalogue): (&str, &Catalogue),
    has_again: bool,
) -> Result<String> {
    let way = Way::of(args, sides, catalogue, target);
    let is_build = matches!(sides.base.kind, Kind::Build(_));
    let mut data = vec![("scale", i64::from(args.scale).into())];
    // No trial finds what the one before has left; what is new in each block is so anyway.
    if way == Way::Separate && !args.keep_data && crate::target::sandbox_named(target).is_some() {
        data.push(("reset", "recreate".into()));
    }
    if let Some(dataset) = args.of_load.dataset {
        data.push(("dataset", dataset.name().into()));
    }
    let of_load = table(vec![
        (load.key, load.value.as_str().into()),
        ("clients", i64::from(args.clients).into()),
        ("warmup_s", args.warmup.as_secs_f64().into()),
        ("measure_s", args.duration.as_secs_f64().into()),
    ]);
    let mut levels = vec![
        level((BASE, "BASE"), &sides.base, 1, way),
        level((HEAD, "HEAD"), &sides.head, 2, way),
    ];
    if has_again {
        levels.push(level((AGAIN, "BASE again"), &sides.base, 3, way));
    }
    let factor = table(vec![("name", SIDE.into()), ("level", levels.into())]);
    let design = match way {
        Way::InTurns => "switchback",
        Way::Separate => "one-at-a-time",
    };
    let mut file = vec![
        ("name", "gate".into()),
        ("question", "Is HEAD slower than BASE?".into()),
        ("design", design.into()),
        ("blocks", i64::from(args.blocks).into()),
        ("stop", "when-decided".into()),
        (
            "smallest_effect",
            smallest_effect(args.limit, args.metric.as_deref()).into(),
        ),
        // Without one of the sides there is no answer.
        ("untested", "refuse".into()),
        ("data", table(data)),
        ("load", of_load),
        ("factor", vec![factor].into()),
    ];
    // Two servers that were made alike may differ by a percent: each block has new ones.
    if is_build || way == Way::InTurns {
        file.push(("target", table(vec![("instances", "per-block".into())])));
    }
    if way == Way::InTurns {
        let slice_s = Value::from(args.slice.as_secs_f64());
        file.push(("switch", table(vec![("slice_s", slice_s)])));
    }
    if let Some(metric) = &args.metric {
        file.push(("metric", metric.as_str().into()));
    }
    toml::to_string(&table(file)).map_err(Failure::new)
}

/// A side as a level, in the place of this number, from 1.
fn level((name, title): (&str, &str), side: &Side, place: u32, way: Way) -> Value {
    let title = format!("{title} ({})", side.shown);
    let mut level = vec![("name", name.into()), ("title", title.into())];
    let mut server = Vec::new();
    match &side.kind {
        Kind::Build(bin) => server.push(("bin", bin.display().to_string().into())),
        Kind::Settings(settings) => {
            let settings = settings
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().into()));
            level.push(("settings", Value::Table(settings.collect())));
        }
        Kind::Schema(sql) => {
            // What makes a database of the same schema another one.
            let once_more = "\n-- once more\n".repeat(usize::from(place > 2));
            level.push(("data", table(vec![("sql", format!("{sql}{once_more}").into())])));
        }
    }
    if way == Way::InTurns || matches!(side.kind, Kind::Build(_)) {
        server.push(("instance", i64::from(place).into()));
    }
    if !server.is_empty() {
        level.push(("server", table(server)));
    }
    table(level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use pgdyno_host::given_text;
    use pgdyno_lab::{Design, ExperimentFile};
    use std::path::Path;

    fn parsed(
        kind: impl Fn(&str) -> Kind,
        options: &[&str],
        target: &str,
        has_again: bool,
    ) -> ExperimentFile {
        let words = ["pgdyno", "gate", "base", "head"].iter().chain(options);
        let Command::Gate(args) = Cli::parse_from(words).command else {
            panic!("no gate");
        };
        let side = |name: &str| Side {
            shown: name.to_owned(),
            kind: kind(name),
        };
        let sides = Sides {
            base: side("base"),
            head: side("head"),
        };
        let load = NamedLoad::of(&args.of_load, &given_text).expect("a load");
        let catalogue = Catalogue::shipped().expect("the catalogue");
        let text = text(&args, &sides, &load, (target, &catalogue), has_again).expect("a file");
        ExperimentFile::parse(&text, Path::new("gate"), &catalogue)
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn each_kind_is_an_experiment_of_three_treatments_and_its_confirmation_of_two() {
        let names = |file: &ExperimentFile| -> Vec<String> {
            let levels = file.factor[0].levels().expect("levels");
            levels.into_iter().map(|level| level.name).collect()
        };
        let build = |name: &str| Kind::Build(format!("/opt/{name}/bin").into());
        let settings = |name: &str| {
            let buffers = if name == "base" { "64MB" } else { "128MB" };
            Kind::Settings([("shared_buffers".to_owned(), buffers.to_owned())].into())
        };
        let schema =
            |name: &str| Kind::Schema(format!("CREATE TABLE \"{name}\" (a text DEFAULT 'it''s');\n"));
        let kinds: [&dyn Fn(&str) -> Kind; 3] = [&build, &settings, &schema];
        for kind in kinds {
            for (way, design) in [
                (&[][..], Design::Switchback),
                (&["--separate"], Design::OneAtATime),
            ] {
                let options = [way, &["--limit", "3%"]].concat();
                let file = parsed(kind, &options, "sandbox:x", true);
                assert_eq!(names(&file), [BASE, HEAD, AGAIN]);
                assert_eq!((file.smallest_effect, file.design), (0.0309, design));
                assert_eq!(names(&parsed(kind, way, "sandbox:x", false)), [BASE, HEAD]);
            }
        }
        let levels = parsed(schema, &[], "sandbox:x", true).factor[0]
            .levels()
            .expect("levels");
        let sql: Vec<_> = levels
            .iter()
            .map(|level| level.data.sql.clone().unwrap_or_default())
            .collect();
        assert!(sql[2].starts_with(&sql[0]) && sql[2] != sql[0], "{sql:?}");
        // Tables are made again on sandboxes alone, and servers of their own are there alone.
        let separate = |options: &[&str], target| parsed(settings, options, target, true);
        assert!(separate(&["--separate"], "sandbox:x").data.reset.is_some());
        let keeps = separate(&["--separate", "--keep-data"], "sandbox:x");
        assert!(keeps.data.reset.is_none());
        let elsewhere = separate(&[], "host=db");
        assert_eq!(
            (elsewhere.design, elsewhere.data.reset),
            (Design::OneAtATime, None)
        );
        // What is of the host is of all servers.
        let of_host = |_: &str| Kind::Settings([("vm.swappiness".to_owned(), "1".to_owned())].into());
        assert_eq!(parsed(of_host, &[], "sandbox:x", true).design, Design::OneAtATime);
    }
}
