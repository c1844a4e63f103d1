//! The tables of sysbench's oltp tests, so that sysbench itself can run against the same data:
//! names, columns and the distribution of values are those of sysbench 1.0.

use super::jobs::{Job, KEYS, ROWS, Work};
use super::rows::{Fields, Filling};
use super::verify::{Question, has_indexes};
use super::{Condition, DataError, DataPlan, Recipe, Shape};
use crate::session::Session;
use pgdyno_engine::random::{Purpose, Stream};

/// Rows of a table per unit of scale.
pub(super) const ROWS_PER_SCALE: u32 = 100_000;
/// The table that carries the mark of unfinished data.
pub(super) const MARKED: &str = "sbtest1";

pub(super) fn recipe(plan: &DataPlan) -> Recipe {
    let rows = (plan.scale * ROWS_PER_SCALE).cast_signed();
    let mut recipe = Recipe {
        tables: String::new(),
        jobs: Vec::new(),
        rows_total: u64::from(plan.tables) * u64::from(rows.unsigned_abs()),
        sorts: plan.tables,
        finish: Vec::new(),
    };
    for number in 1..=plan.tables {
        recipe.tables.push_str(&format!(
            "CREATE TABLE sbtest{number} (id serial, k integer NOT NULL DEFAULT 0,
               c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT '')"
        ));
        recipe.tables.push_str(&match plan.partitions {
            None => ";".to_owned(),
            Some(partitions) => partitions.create(&format!("sbtest{number}"), "id", rows.into()),
        });
        let mut stream = Stream::new(plan.seed, number.into(), Purpose::Data);
        let filling = recipe.jobs.len();
        recipe.jobs.push(Job {
            what: format!("filling sbtest{number}"),
            step: ROWS,
            after: Vec::new(),
            work: Work::Rows(Filling {
                table: format!("sbtest{number}"),
                whole: plan.partitions.is_none(),
                constants: Vec::new(),
                columns: "id, k, c, pad",
                send: Box::new(move |sender| {
                    (1..=rows).try_for_each(|id| {
                        sender.row(|row| {
                            row.int(id);
                            row.int(skewed(&mut stream, rows));
                            row.text(|text| stream.push_digits(text, 10));
                            row.text(|text| stream.push_digits(text, 5));
                        })
                    })
                }),
            }),
        });
        recipe.jobs.push(Job {
            what: format!("making the keys of sbtest{number}"),
            step: KEYS,
            after: vec![filling],
            work: Work::Sql(vec![
                format!("ALTER TABLE sbtest{number} ADD PRIMARY KEY (id)"),
                format!("CREATE INDEX k_{number} ON sbtest{number} (k)"),
                format!("SELECT setval(pg_get_serial_sequence('sbtest{number}', 'id'), {rows})"),
                format!("VACUUM (ANALYZE) sbtest{number}"),
            ]),
        });
    }
    recipe
}

/// sysbench's default, "special": of four values three are spread evenly over the middle hundredth
/// of `1..=end`, the fourth is the mean of twelve.
fn skewed(stream: &mut Stream, end: i32) -> i32 {
    const MEAN_OF: i32 = 12;
    if stream.between(1, 4) == 1 {
        let sum: i64 = (0..MEAN_OF).map(|_| i64::from(stream.between(1, end))).sum();
        i32::try_from(sum / i64::from(MEAN_OF)).unwrap_or(end)
    } else {
        let special = (end / 100).max(1);
        let first = (end - special) / 2 + 1;
        stream.between(first, first + special - 1)
    }
}

pub(super) fn check(client: &mut Session, shape: Shape) -> Result<Vec<Condition>, DataError> {
    let mut conditions = Vec::new();
    let mut indexes = Vec::new();
    for number in 1..=shape.tables {
        let table = format!("sbtest{number}");
        conditions.push(Question::new(client).holds(
            &format!("rows of {table} are no more than its last id"),
            &format!(
                "SELECT coalesce(count(*) <= max(id) AND min(id) > 0, true), format('%s rows, ids %s to %s', count(*), coalesce(min(id), 0), coalesce(max(id), 0))
                 FROM {table}"
            ),
        )?);
        conditions.push(Question::new(client).holds(
            &format!("texts of {table} have their lengths"),
            &format!(
                "SELECT count(*) = 0, format('%s rows with another length than 119 and 59', count(*))
                 FROM {table} WHERE length(c) <> 119 OR length(pad) <> 59"
            ),
        )?);
        indexes.extend([format!("{table}_pkey"), format!("k_{number}")]);
    }
    conditions.push(has_indexes(client, &indexes)?);
    Ok(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_groups_of_digits() {
        let mut stream = Stream::new(1, 1, Purpose::Data);
        let mut text = Vec::new();
        stream.push_digits(&mut text, 10);
        assert_eq!(text.len(), 119);
        for (at, &c) in text.iter().enumerate() {
            assert_eq!(c == b'-', at % 12 == 11);
            assert!(c == b'-' || c.is_ascii_digit());
        }
    }

    #[test]
    fn keys_gather_in_the_middle() {
        let mut stream = Stream::new(1, 1, Purpose::Data);
        let mut special = 0;
        for _ in 0..10_000 {
            let key = skewed(&mut stream, 100_000);
            assert!((1..=100_000).contains(&key));
            special += u32::from((49_501..=50_500).contains(&key));
        }
        assert!((7_300..8_000).contains(&special), "{special}");
        assert_eq!(skewed(&mut stream, 1), 1);
    }
}
