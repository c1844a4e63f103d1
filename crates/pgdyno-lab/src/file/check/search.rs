//! What must hold of a search: factors of settings, starts and limits that name them, figures to
//! hold to.

use super::{Check, Checked};
use crate::file::choices::{Design, Instances, StopRule};
use crate::file::parts::{DataPart, LoadPart, ServerPart, StepPart};
use crate::file::search::{Bound, MethodWord, SearchPart};
use crate::plan::{BESIDE_S, REFERENCE, measure_s};
use pgdyno_engine::duration;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_workload::command_words;

/// A search with fewer trials than this chooses nothing.
const TRIALS_MIN: u32 = 3;
/// Each treatment has a trial at least, and every trial is kept in mind.
const TRIALS_MAX: u32 = 200;

impl Check<'_> {
    pub(super) fn search(&self) -> Checked {
        let file = self.file;
        let is_search = file.design == Design::Search;
        let Some(search) = &file.search else {
            return self.must(!is_search, &["design"], || {
                "design = \"search\" needs [search] with trials = ...".into()
            });
        };
        self.must(is_search, &["search"], || {
            format!(
                "[search] applies to design = \"search\" only, and this design is \"{}\"",
                file.design.name()
            )
        })?;
        self.must(
            (TRIALS_MIN..=TRIALS_MAX).contains(&search.trials),
            &["search", "trials"],
            || {
                format!(
                    "trials = {}: expected {TRIALS_MIN} to {TRIALS_MAX}",
                    search.trials
                )
            },
        )?;
        self.must(file.blocks <= search.trials, &["blocks"], || {
            format!(
                "blocks = {}: expected at most the number of trials, {}",
                file.blocks, search.trials
            )
        })?;
        self.must(file.stop == StopRule::AfterBlocks, &["stop"], || {
            "design = \"search\" ends with its trials or its budget; leave stop at \"after-blocks\"".into()
        })?;
        self.must(file.event.is_empty(), &["event"], || {
            "design = \"search\" cannot have events: their effect would not belong to a treatment".into()
        })?;
        self.must(
            file.target.instances == Instances::Once,
            &["target", "instances"],
            || {
                "instances = \"per-block\" needs treatments with their own servers, and a search has one server"
                    .into()
            },
        )?;
        if let Some(command) = &search.optimizer {
            let key = &["search", "optimizer"];
            command_words(command).map_err(|error| self.wrong(key, error.to_string()))?;
            self.must(search.method == MethodWord::default(), key, || {
                "give either method or optimizer, not both".into()
            })?;
        }
        self.searched_factors()?;
        self.reference_is_possible()?;
        for text in &search.subject_to {
            let key = &["search", "subject_to"];
            let bound = Bound::parse(text).map_err(|message| self.wrong(key, message))?;
            self.known_metric(&bound.figure, key)?;
        }
        self.starts(search)?;
        self.limits(search)?;
        self.fits_in_time(search)
    }

    /// Refuses a time that is over before the first block.
    fn fits_in_time(&self, search: &SearchPart) -> Checked {
        let (load, text) = (&self.file.load, self.file.budget.time.as_deref());
        // One that is no time is refused by itself.
        let Some(time) = text.and_then(|text| duration(text).ok()) else {
            return Ok(());
        };
        let trials = search.trials.div_ceil(self.file.blocks);
        let load_s = load.warmup_s.unwrap_or(0.0) + measure_s(load);
        let block_s = f64::from(trials) * (load_s + BESIDE_S);
        self.must(time.as_secs_f64() >= block_s, &["budget", "time"], || {
            format!(
                "the time is over before the first block: {trials} trials of {load_s} s of load and about {BESIDE_S} s beside \
                 each take {block_s} s"
            )
        })
    }

    fn searched_factors(&self) -> Checked {
        for (i, factor) in self.file.factor.iter().enumerate() {
            let number = i.to_string();
            let levels = factor.levels().unwrap_or_default();
            self.must(!factor.condition, &["factor", &number, "condition"], || {
                format!("\"{}\" is a condition, which a search cannot have", factor.name)
            })?;
            let sets_more = levels.iter().find(|level| {
                level.profile.is_some()
                    || level.load != LoadPart::default()
                    || level.data != DataPart::default()
                    || level.server != ServerPart::default()
            });
            self.must(sets_more.is_none(), &["factor", &number], || {
                format!(
                    "the levels of \"{}\" set more than settings; a search varies settings only",
                    factor.name
                )
            })?;
            let count = factor.weights.len();
            self.must(
                count == 0 || count == levels.len(),
                &["factor", &number, "weights"],
                || format!("{count} weights for {} levels", levels.len()),
            )?;
            let mut weights = factor.weights.iter().chain(&factor.relevance);
            let wrong = weights.find(|weight| !(weight.is_finite() && **weight > 0.0));
            self.must(wrong.is_none(), &["factor", &number], || {
                format!("\"{}\" has a weight that is not above 0", factor.name)
            })?;
        }
        Ok(())
    }

    /// A search begins with the reference.
    fn reference_is_possible(&self) -> Checked {
        let is_first = |factor: &str, level: &str| {
            let factor = self.file.factor.iter().find(|own| own.name == factor);
            let levels = factor.and_then(|factor| factor.levels().ok());
            levels.is_some_and(|levels| levels.first().is_some_and(|first| first.name == level))
        };
        for (i, excluded) in self.file.exclude.iter().enumerate() {
            let excludes_it = excluded.iter().all(|(factor, level)| is_first(factor, level));
            self.must(!excludes_it, &["exclude", &i.to_string()], || {
                "it excludes the reference, with which a search begins".into()
            })?;
        }
        Ok(())
    }

    fn starts(&self, search: &SearchPart) -> Checked {
        for (i, start) in search.start.iter().enumerate() {
            let number = i.to_string();
            let mut before = search.start[..i].iter();
            let is_taken = start.name == REFERENCE || before.any(|other| other.name == start.name);
            let key = &["search", "start", &number, "name"];
            self.must(!is_taken, key, || format!("the name \"{}\" is taken", start.name))?;
            let is_generated = start.name.starts_with("candidate ") || start.name.contains('=');
            self.must(!is_generated, key, || {
                format!(
                    "the name \"{}\" is reserved for combinations that a search chooses",
                    start.name
                )
            })?;
            for (factor, level) in &start.levels {
                self.known_level(factor, level, &["search", "start", &number, "levels", factor])?;
            }
        }
        Ok(())
    }

    fn limits(&self, search: &SearchPart) -> Checked {
        for (i, limit) in search.limit.iter().enumerate() {
            let number = i.to_string();
            let key = &["search", "limit", &number];
            let Some((kind, _)) = quantity(&limit.at_most) else {
                let message = format!(
                    "at_most = \"{}\": expected a number or a size, e.g. \"700MB\"",
                    limit.at_most
                );
                return Err(self.wrong(key, message));
            };
            for (name, times) in &limit.sum {
                self.must(times.is_finite() && *times > 0.0, key, || {
                    format!("\"{name}\" counts {times} times: expected a number above 0")
                })?;
                let factor = self.file.factor.iter().find(|factor| factor.name == *name);
                let Some(factor) = factor else {
                    return Err(self.wrong(key, format!("there is no factor \"{name}\"")));
                };
                let levels = factor.levels().unwrap_or_default();
                // Below 0 a number is a word, and 0 is as much in any unit.
                let is_alike = |level: &StepPart| {
                    quantity(&level.name).is_some_and(|(own, number)| own == kind || number <= 0.0)
                };
                let odd = levels.iter().find(|level| !is_alike(level));
                if let Some(level) = odd {
                    let message = format!(
                        "the level \"{}\" of \"{name}\" is not a number to add up to \"{}\"",
                        level.name, limit.at_most
                    );
                    return Err(self.wrong(key, message));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::file::ExperimentFile;
    use pgdyno_knobs::Catalogue;
    use std::path::Path;

    const SEARCH: &str = r#"
name = "x"
question = "?"
design = "search"
blocks = 2
[data]
scale = 1
[load]
workload = "tpcb"
clients = 1
measure_s = 5
[search]
trials = 8
subject_to = ["p99_ms <= 20"]
[[search.start]]
name = "mine"
levels = { buffers = "256MB" }
[[search.limit]]
sum = { buffers = 1, sorts = 4 }
at_most = "700MB"
[[factor]]
name = "buffers"
of = "shared_buffers"
values = ["128MB", "256MB"]
weights = [1, 2]
relevance = 1
[[factor]]
name = "sorts"
of = "work_mem"
values = ["4MB", "64MB"]
"#;

    #[test]
    fn search_that_contradicts_itself_is_refused_with_the_line() {
        let catalogue = Catalogue::shipped().unwrap();
        let parse = |text: &str| ExperimentFile::parse(text, Path::new("x.toml"), &catalogue);
        parse(SEARCH).unwrap();
        let check = |from: &str, to: &str, expected: &str| {
            assert!(SEARCH.contains(from), "{from}");
            let error = parse(&SEARCH.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("x.toml, line "), "{error}");
            assert!(error.contains(expected), "{to}: {error}");
        };
        check(
            "\"search\"",
            "\"full-factorial\"",
            "[search] applies to design = \"search\" only",
        );
        check("trials = 8", "trials = 2", "expected 3 to 200");
        check("trials = 8", "trials = 900", "expected 3 to 200");
        check("trials = 8", "trails = 8", "trials");
        check(
            "blocks = 2",
            "blocks = 9",
            "blocks = 9: expected at most the number of trials, 8",
        );
        check(
            "blocks = 2\n",
            "blocks = 8\nstop = \"when-decided\"\n",
            "leave stop at",
        );
        check("p99_ms <= 20", "p99_ms < 20", "<= or >=");
        check("p99_ms <= 20", "speed <= 20", "\"speed\" is not a metric");
        check(
            "name = \"mine\"",
            "name = \"reference\"",
            "the name \"reference\" is taken",
        );
        check("buffers = \"256MB\"", "buffers = \"1GB\"", "has no level \"1GB\"");
        check(
            "buffers = \"256MB\"",
            "bufers = \"256MB\"",
            "no factor \"bufers\"",
        );
        check("\"700MB\"", "\"much\"", "expected a number or a size");
        check("sorts = 4", "sorts = -4", "a number above 0");
        check("\"700MB\"", "\"700\"", "to add up to \"700\"");
        check(
            "name = \"mine\"",
            "name = \"candidate 1\"",
            "is reserved for combinations",
        );
        check(
            "[search]",
            "[target]\ninstances = \"per-block\"\n[search]",
            "a search has one",
        );
        check(
            "[[search.limit]]",
            "[[exclude]]\nsorts = \"4MB\"\n[[search.limit]]",
            "excludes the reference",
        );
        check("sorts = 4", "sort = 4", "there is no factor \"sort\"");
        check(
            "trials = 8",
            "trials = 8\noptimizer = \"python3 'x\"",
            "a quote without its end",
        );
        check(
            "trials = 8",
            "trials = 8\nmethod = \"forest\"\noptimizer = \"x\"",
            "give either method or optimizer, not both",
        );
        check("weights = [1, 2]", "weights = [1]", "1 weights for 2 levels");
        check("weights = [1, 2]", "weights = [1, 0]", "not above 0");
        check("relevance = 1", "condition = true", "which a search cannot have");
        check("\"work_mem\"", "\"data.scale\"", "data.scale");
        // Four trials of 5 s of load, with a restart each.
        let in_time = |time: &str| SEARCH.replace("[data]", &format!("[budget]\ntime = \"{time}\"\n[data]"));
        parse(&in_time("36s")).unwrap();
        let error = parse(&in_time("35s")).unwrap_err().to_string();
        assert!(error.contains("4 trials of 5 s of load"), "{error}");
        check(
            "values = [\"4MB\", \"64MB\"]",
            "values = [\"4MB\", \"none\"]",
            "is not a number to add up",
        );
        let of_load = SEARCH.replace("of = \"work_mem\"", "of = \"load.clients\"");
        let of_load = of_load.replace("[\"4MB\", \"64MB\"]", "[1, 2]");
        let error = parse(&of_load).unwrap_err().to_string();
        assert!(error.contains("a search varies settings only"), "{error}");
        let without = SEARCH
            .replace("[search]\ntrials = 8\n", "")
            .replace("subject_to = [\"p99_ms <= 20\"]\n", "");
        assert!(parse(&without).is_err());
    }
}
