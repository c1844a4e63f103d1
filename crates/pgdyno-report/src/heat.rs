//! Response times over time: of a trial as it is stored, and of several together.

use pgdyno_record::{HeatRecord, TrialRecord};
use serde::Serialize;

/// How many transactions of a stretch of time had a response time between two edges.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Heat {
    /// Where the first stretch begins: the end of the warm-up.
    #[cfg_attr(feature = "typescript", ts(as = "Option<_>", optional))]
    pub from_s: f64,
    /// Ends of the stretches, after the start of the load.
    pub t_s: Vec<f64>,
    /// Lower edges of the classes, and the upper one of the last.
    pub edges_ms: Vec<f64>,
    /// For each stretch a count for each class.
    pub counts: Vec<Vec<u64>>,
}

/// Of trials together, over the time since the load began; `None` where none of them has it. What
/// cannot be read is left to `pgdyno check-store`.
pub(crate) fn of_trials<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Option<Heat> {
    let records = trials.into_iter().filter_map(|trial| trial.heat.as_ref());
    let known: Vec<(&HeatRecord, Vec<Vec<u64>>)> = records
        .filter_map(|record| Some((record, record.counts().ok()?)))
        .collect();
    let from_s = known.iter().map(|(record, _)| record.begins_s).reduce(f64::min)?;
    let until_s = known.iter().map(|(record, _)| record.ends_s).reduce(f64::max)?;
    let stretch_s = f64::from(known.iter().map(|(record, _)| record.stretch_s).max()?);
    let mut edges_ns: Vec<u64> = known
        .iter()
        .flat_map(|(record, _)| &record.edges_ns)
        .copied()
        .collect();
    edges_ns.sort_unstable();
    edges_ns.dedup();
    let stretches = place(until_s - from_s, stretch_s)?.checked_add(1)?;
    // The longest trial has a day of 300 stretches.
    if stretches > 10_000 {
        return None;
    }
    let mut counts = vec![vec![0; edges_ns.len() - 1]; stretches];
    for (record, own) in &known {
        let classes: Vec<usize> = record
            .edges_ns
            .iter()
            .map(|edge| edges_ns.partition_point(|known| known < edge))
            .collect();
        for (number, row) in (1_u32..).zip(own) {
            let end_s =
                (record.begins_s + f64::from(number) * f64::from(record.stretch_s)).min(record.ends_s);
            let Some(stretch) = place(end_s - from_s, stretch_s).and_then(|at| counts.get_mut(at)) else {
                continue;
            };
            for (class, count) in classes.iter().zip(row) {
                stretch[*class] += count;
            }
        }
    }
    let t_s = (1_u32..)
        .take(stretches)
        .map(|number| (from_s + f64::from(number) * stretch_s).min(until_s));
    Some(Heat {
        from_s,
        t_s: t_s.collect(),
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds within an hour")]
        edges_ms: edges_ns.iter().map(|ns| *ns as f64 / 1e6).collect(),
        counts,
    })
}

/// The number of the stretch that ends at a time, or holds it; `None` before the first one.
fn place(after_s: f64, stretch_s: f64) -> Option<usize> {
    // What is added up of seconds may be a hair behind the end.
    let stretches = (after_s / stretch_s - 1e-6).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and `as` saturates"
    )]
    (stretches >= 1.0).then(|| stretches as usize - 1)
}

impl Heat {
    /// Joins neighbours until there are no more stretches than so many.
    pub(crate) fn thin(&mut self, stretches_max: usize) {
        let width = self.t_s.len().div_ceil(stretches_max.max(1));
        if width <= 1 {
            return;
        }
        self.t_s = self
            .t_s
            .chunks(width)
            .filter_map(|chunk| chunk.last().copied())
            .collect();
        let join = |chunk: &[Vec<u64>]| {
            let of_class = |class: usize| chunk.iter().filter_map(|row| row.get(class)).sum();
            (1..self.edges_ms.len())
                .map(|class| of_class(class - 1))
                .collect()
        };
        self.counts = self.counts.chunks(width).map(join).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(begins_s: f64, stretch_s: u32, edges_ns: &[u64], counts: &[&[u64]]) -> TrialRecord {
        let counts: Vec<Vec<u64>> = counts.iter().map(|row| row.to_vec()).collect();
        #[expect(clippy::cast_precision_loss, reason = "a few stretches")]
        let ends_s = begins_s + counts.len() as f64 * f64::from(stretch_s) - 0.5;
        TrialRecord {
            heat: HeatRecord::packed((begins_s, ends_s), stretch_s, edges_ns.to_vec(), &counts),
            ..TrialRecord::begun(1, 1, "a")
        }
    }

    #[test]
    fn a_trial_comes_back_as_it_was() {
        let heat = of_trials([&trial(
            2.0,
            1,
            &[1_000_000, 2_000_000, 4_000_000],
            &[&[1, 2], &[0, 0], &[0, 3]],
        )])
        .unwrap();
        let expected = Heat {
            from_s: 2.0,
            t_s: vec![3.0, 4.0, 4.5],
            edges_ms: vec![1.0, 2.0, 4.0],
            counts: vec![vec![1, 2], vec![0, 0], vec![0, 3]],
        };
        assert_eq!(heat, expected);
        assert_eq!(of_trials([&TrialRecord::begun(1, 1, "a")]), None);
        let mut broken = trial(2.0, 1, &[1, 2], &[&[1]]);
        broken.heat.as_mut().unwrap().counts = "?".to_owned();
        assert_eq!(of_trials([&broken]), None);
    }

    #[test]
    fn trials_of_other_classes_times_and_stretches_are_added_up() {
        let one = trial(2.0, 1, &[1000, 2000], &[&[1], &[10], &[100], &[1000]]);
        let other = trial(3.0, 2, &[2000, 4000], &[&[5], &[7]]);
        let mut heat = of_trials([&one, &other]).unwrap();
        assert_eq!((heat.from_s, &heat.t_s[..]), (2.0, &[4.0, 6.0, 6.5][..]));
        // A stretch that spans two is counted where it ends.
        assert_eq!(heat.counts, [[11, 0], [1100, 5], [0, 7]].map(Vec::from));
        heat.thin(2);
        assert_eq!(
            (&heat.t_s[..], &heat.counts[..]),
            (&[6.0, 6.5][..], &[vec![1111, 5], vec![0, 7]][..])
        );
    }
}
