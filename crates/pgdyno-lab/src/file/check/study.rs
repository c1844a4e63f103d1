//! What must hold of a study: tables, charts and findings name what there is.

use super::{Check, Checked};
use crate::file::choices::{ChartForm, Design};
use crate::file::study::{ClaimPart, StudyPart};
use crate::plan::STEP;

impl Check<'_> {
    pub(super) fn study(&self) -> Checked {
        let Some(study) = &self.file.study else {
            return Ok(());
        };
        for (i, table) in study.table.iter().enumerate() {
            let number = i.to_string();
            for metric in &table.values {
                self.shown_metric(metric, &["study", "table", &number, "values"])?;
            }
            self.must(!table.values.is_empty(), &["study", "table", &number], || {
                "values = [] shows nothing".into()
            })?;
            for (key, factor) in [("rows", &table.rows), ("columns", &table.columns)] {
                self.known_factor(factor.as_deref(), &["study", "table", &number, key])?;
            }
        }
        for i in 0..study.chart.len() {
            self.chart(study, i)?;
        }
        for (i, claim) in study.claim.iter().enumerate() {
            self.claim(claim, &i.to_string())?;
        }
        Ok(())
    }

    fn known_factor(&self, factor: Option<&str>, keys: &[&str]) -> Checked {
        let Some(factor) = factor else { return Ok(()) };
        let known = factor == STEP || self.file.factor.iter().any(|f| f.name == factor);
        self.must(known, keys, || format!("there is no factor \"{factor}\""))
    }

    fn chart(&self, study: &StudyPart, place: usize) -> Checked {
        let (chart, number) = (&study.chart[place], place.to_string());
        let keys = |key: &'static str| ["study", "chart", number.as_str(), key];
        let taken = study.chart[..place]
            .iter()
            .any(|other| other.title == chart.title);
        self.must(!taken, &keys("title"), || {
            format!("the title \"{}\" is taken", chart.title)
        })?;
        let lines = chart.lines.list();
        if chart.form.is_whole() {
            return self.whole_chart(study, place);
        }
        self.known_factor(chart.x.as_deref(), &keys("x"))?;
        for factor in lines {
            self.known_factor(Some(factor), &keys("lines"))?;
        }
        if let Some(value) = &chart.value {
            self.shown_metric(value, &keys("value"))?;
        }
        let axes: Vec<&String> = chart.x.iter().chain(lines).collect();
        let twice = (1..axes.len()).find(|&place| axes[..place].contains(&axes[place]));
        self.must(twice.is_none(), &keys("lines"), || {
            "x and lines name a factor twice: expected different ones".into()
        })?;
        let has_factors = !self.file.factor.is_empty();
        self.must(chart.x.is_some() || !has_factors, &keys("x"), || {
            "a chart needs x, the factor along its axis".into()
        })
    }

    /// A chart of the whole experiment, of which there is one at most.
    fn whole_chart(&self, study: &StudyPart, place: usize) -> Checked {
        let (chart, number) = (&study.chart[place], place.to_string());
        let form = chart.form.name();
        let keys = |key: &'static str| ["study", "chart", number.as_str(), key];
        for (key, is_given) in [
            ("x", chart.x.is_some()),
            ("lines", !chart.lines.list().is_empty()),
            ("value", chart.value.is_some()),
        ] {
            self.must(!is_given, &keys(key), || {
                format!("a {form} shows throughput of the whole experiment: it has no {key}")
            })?;
        }
        let (can_be, needs) = match chart.form {
            ChartForm::Timeline => (!self.file.event.is_empty(), "an [[event]]"),
            _ => (
                self.file.design == Design::Cumulative && self.file.metric == "tps",
                "design = \"cumulative\" and metric = \"tps\"",
            ),
        };
        self.must(can_be, &keys("form"), || format!("a {form} needs {needs}"))?;
        let is_first = study.chart[..place].iter().all(|other| other.form != chart.form);
        self.must(is_first, &keys("form"), || format!("there is a {form} already"))
    }

    fn claim(&self, claim: &ClaimPart, number: &str) -> Checked {
        let study = self.file.study.iter();
        let mut charts = study.flat_map(|study| &study.chart);
        let missing = claim
            .chart
            .as_ref()
            .filter(|&title| !charts.any(|chart| chart.title == *title));
        if let Some(title) = missing {
            let message = format!("there is no [[study.chart]] with the title \"{title}\"");
            return Err(self.wrong(&["study", "claim", number, "chart"], message));
        }
        for (side, levels) in [("of", &claim.of), ("against", &claim.against)] {
            for (factor, level) in levels {
                self.known_level(factor, level, &["study", "claim", number, side, factor])?;
            }
        }
        let mut events = self.file.event.iter();
        let unknown = claim
            .event
            .as_ref()
            .filter(|&title| !events.any(|event| event.titled() == *title));
        if let Some(title) = unknown {
            let message = format!("there is no [[event]] \"{title}\"");
            return Err(self.wrong(&["study", "claim", number, "event"], message));
        }
        self.must(claim.event.is_none() || claim.against.is_empty() && claim.metric.is_none(), &["study", "claim", number, "event"], || {
            "a claim about an event compares throughput after it with throughput before: remove against and metric".into()
        })?;
        self.must(
            claim.event.is_some() || !claim.of.is_empty(),
            &["study", "claim", number, "of"],
            || "a claim is of = { factor = \"level\" }, or about an event".into(),
        )?;
        match &claim.metric {
            Some(metric) => self.known_metric(metric, &["study", "claim", number, "metric"]),
            None => Ok(()),
        }
    }
}
