//! Queries and bodies of requests, and the arguments of the command line that mean the same: text
//! in, values or an error out.
//!
//! It does no I/O but for the system's time zone; the fuzz targets call it (fuzz/bodies/serve.rs).

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use pgdyno_lab::capacity::Question;
use pgdyno_lab::compare::Reference;
use pgdyno_stats::Price;
use pgdyno_store::{Filter, Life};
use serde::Deserialize;

/// Of an instant since 1973.
const MS_DIGITS_MIN: usize = 12;
/// Each experiment of the store is compared with each tag.
pub const TAGS_MAX: usize = 50;
/// More figures than that nobody compares.
pub const METRICS_MAX: usize = 50;

/// A status by its name.
///
/// # Errors
///
/// What was expected instead.
pub fn life(text: &str) -> Result<Life, String> {
    let named = Life::ALL.into_iter().find(|life| life.word() == text);
    named
        .filter(|life| *life != Life::RunningOrKilled)
        .ok_or_else(|| "expected running, killed, finished or interrupted".to_owned())
}

/// A day in the reader's zone, or an instant, as milliseconds since 1970.
///
/// # Errors
///
/// What was expected instead.
pub fn since(text: &str) -> Result<u64, String> {
    // An instant's text is a day's too, and its time would be lost.
    let is_day = !text.contains(['T', 't', ' ', ':', '[']);
    let day = text.parse::<civil::Date>().ok().filter(|_| is_day);
    let begins = |day: civil::Date| {
        day.to_zoned_datetime(TimeZone::system())
            .ok()
            .map(|zoned| zoned.timestamp())
    };
    let instant = text.parse::<Timestamp>().ok();
    instant
        .or_else(|| day.and_then(begins))
        .and_then(|instant| u64::try_from(instant.as_millisecond()).ok())
        .ok_or_else(|| {
            "expected a day, e.g. 2026-11-01, or an instant with its zone, e.g. 2026-11-01T08:00:00Z"
                .to_owned()
        })
}

/// The filter of a list of experiments; an empty value filters nothing.
///
/// # Errors
///
/// What was expected instead.
pub fn filter(query: &str) -> Result<Filter, String> {
    let mut filter = Filter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = value.trim().to_owned();
        if value.is_empty() {
            continue;
        }
        let wrong = |expected: String| format!("{name}: {expected}");
        match &*name {
            "tag" if filter.tags.len() == TAGS_MAX => {
                return Err(wrong(format!("expected at most {TAGS_MAX} tags")));
            }
            "tag" => filter.tags.push(value),
            "name" => filter.name = Some(value),
            "search" => filter.search = Some(value),
            "status" if value == Life::RunningOrKilled.word() => filter.life = Some(Life::RunningOrKilled),
            "status" => filter.life = Some(life(&value).map_err(wrong)?),
            "since" => filter.since_unix_ms = Some(instant(&value).map_err(wrong)?),
            _ => {
                return Err(format!(
                    "there is no filter {name:?}: expected tag, name, status, since or search"
                ));
            }
        }
    }
    Ok(filter)
}

/// A day, an instant, or milliseconds since 1970; a year alone is none of them.
fn instant(text: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return since(text);
    }
    let ms = text.parse().ok().filter(|_| text.len() >= MS_DIGITS_MIN);
    ms.ok_or_else(|| format!("milliseconds since 1970 have {MS_DIGITS_MIN} digits or some more"))
}

/// The question of a capacity; `usual_tps` where the query names no throughput.
///
/// # Errors
///
/// What was expected instead.
pub fn question(query: &str, usual_tps: f64) -> Result<Question, String> {
    let positive = |name: &str| -> Result<Option<f64>, String> {
        let Some(text) = value_of(query, name).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        number
            .map(Some)
            .ok_or_else(|| format!("{name}: expected a number above 0"))
    };
    let price = match (positive("price_per_cpu_hour")?, positive("price_per_host_hour")?) {
        (Some(_), Some(_)) => {
            return Err("there are two prices: give that of a CPU or that of the host".to_owned());
        }
        (Some(cpu), None) => Some(Price::PerCpuHour(cpu)),
        (None, host) => host.map(Price::PerHostHour),
    };
    Ok(Question {
        tps: positive("tps")?.unwrap_or(usual_tps),
        p99_ms: positive("p99_ms")?,
        price,
        cpus: positive("cpus")?,
    })
}

/// The two sides of a comparison, and the metrics that are asked for.
///
/// # Errors
///
/// What was expected instead.
pub fn comparison(query: &str) -> Result<(Reference, Reference, Vec<String>), String> {
    let reference = |name: &str| -> Result<Reference, String> {
        let text = value_of(query, name).ok_or_else(|| format!("{name} is missing: what is compared?"))?;
        text.parse().map_err(|error| format!("{name}: {error}"))
    };
    let metrics: Vec<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "metric")
        .map(|(_, value)| value.into_owned())
        .take(METRICS_MAX + 1)
        .collect();
    if metrics.len() > METRICS_MAX {
        return Err(format!("metric: expected at most {METRICS_MAX} of them"));
    }
    Ok((reference("a")?, reference("b")?, metrics))
}

/// The first value of a name in a query.
pub fn value_of(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.into_owned())
}

/// The text of a new note, by the body that it is sent in.
///
/// # Errors
///
/// What was expected instead.
pub fn new_note(body: &[u8]) -> Result<String, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NewNote {
        text: String,
    }
    let new: NewNote =
        serde_json::from_slice(body).map_err(|error| format!("expected {{\"text\": \"...\"}}: {error}"))?;
    Ok(new.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(query in "((tag|name|status|since|search|x)=?.{0,20}&?){0,4}") {
            let _ = filter(&query);
        }
    }

    #[test]
    fn days_and_instants_are_read() {
        assert_eq!(since("1970-01-02T00:00:00Z"), Ok(86_400_000));
        assert!(since("2026-11-01").is_ok());
        for bad in [
            "",
            "yesterday",
            "2026-13-01",
            "1960-01-01",
            "2026-11-01T08:00:00",
            "2026-11-01 08:00",
        ] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn filters_are_those_of_the_command_line() {
        let found =
            filter("tag=a&tag=b%20&name=&status=killed&since=1970-01-02T00:00:00Z&search=x+y").unwrap();
        assert_eq!(found.tags, ["a", "b"]);
        assert_eq!((found.name, found.search.as_deref()), (None, Some("x y")));
        assert_eq!(
            (found.life, found.since_unix_ms),
            (Some(Life::Killed), Some(86_400_000))
        );
        assert_eq!(
            filter("since=123456789012").unwrap().since_unix_ms,
            Some(123_456_789_012)
        );
        assert_eq!(
            filter("status=running+or+killed").unwrap().life,
            Some(Life::RunningOrKilled)
        );
        assert_eq!(filter("").unwrap(), Filter::default());
        for bad in [
            "status=x",
            "since=soon",
            "since=2026",
            "since=2026-11-01T08:00",
            "tga=x",
            "%ff=1",
        ] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn filter_with_more_tags_than_its_limit_is_refused() {
        let with = |tags: usize| filter(&"tag=a&".repeat(tags));
        assert_eq!(with(TAGS_MAX).unwrap().tags.len(), TAGS_MAX);
        assert_eq!(
            with(TAGS_MAX + 1),
            Err("tag: expected at most 50 tags".to_owned())
        );
    }

    #[test]
    fn a_question_is_read_from_the_query() {
        const USUAL_TPS: f64 = 60_000.0;
        let check = |query: &str, expected: Result<(f64, Option<f64>, Option<Price>), &str>| {
            let found = question(query, USUAL_TPS);
            let found = found.map(|question| (question.tps, question.p99_ms, question.price));
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{query}"),
                Err(word) => assert!(found.is_err_and(|error| error.contains(word)), "{query}"),
            }
        };
        check("", Ok((USUAL_TPS, None, None)));
        check("tps=1000&p99_ms=20", Ok((1000.0, Some(20.0), None)));
        check(
            "price_per_cpu_hour=0.04",
            Ok((USUAL_TPS, None, Some(Price::PerCpuHour(0.04)))),
        );
        check(
            "price_per_host_hour=2&p99_ms=",
            Ok((USUAL_TPS, None, Some(Price::PerHostHour(2.0)))),
        );
        assert_eq!(question("cpus=8", USUAL_TPS).unwrap().cpus, Some(8.0));
        check("cpus=-1", Err("cpus"));
        check("tps=0", Err("tps"));
        check("tps=many", Err("tps"));
        check("p99_ms=inf", Err("p99_ms"));
        check("price_per_host_hour=2&price_per_cpu_hour=1", Err("two prices"));
    }
}
