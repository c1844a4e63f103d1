//! The segments of a load put together: their seconds while it runs, and their results.

use crate::books::{Second, SecondFigures};
use crate::collect::collect;
use crate::result::LoadResult;
use std::sync::mpsc::Receiver;

/// What a segment reports while it runs: its number, and a second, or that no more will come.
pub type SegmentSecond = (u32, Option<Second>);

/// Puts the seconds of so many segments together: each is reported once every segment has delivered
/// it or has ended before it. Ends when all senders are gone.
pub fn join_seconds(
    receiver: &Receiver<SegmentSecond>,
    segments: u32,
    on_second: &mut dyn FnMut(&Second),
) -> Vec<SecondFigures> {
    collect(receiver, segments, None, on_second)
}

/// The result of a load by those of its segments and by its seconds; `None` without a segment, and
/// where they are not of one load.
pub fn join_results(
    results: impl IntoIterator<Item = LoadResult>,
    seconds: Vec<SecondFigures>,
) -> Option<LoadResult> {
    let mut results = results.into_iter();
    let mut whole = results.next()?;
    let shape = |result: &LoadResult| {
        let kinds: Vec<String> = result.kinds.iter().map(|(kind, _)| kind.clone()).collect();
        (kinds, result.statements.len(), result.servers.len())
    };
    for result in results {
        // Of the same plan they have the same parts.
        if shape(&result) != shape(&whole) {
            return None;
        }
        whole.join(result);
    }
    whole.seconds = seconds;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::{Books, Instants, SqlState};
    use crate::engine::Segment;
    use crate::plan::Plan;
    use crate::result::ServerShare;
    use std::sync::mpsc::channel;

    fn books(mut books: Books, times_ns: &[u64]) -> Books {
        for &ns in times_ns {
            let at = Instants {
                due_ns: 0,
                begun_ns: 1,
                done_ns: ns,
            };
            books.commit(at, u64::MAX, false, false);
        }
        books
    }

    fn second(number: u32, times_ns: &[u64]) -> Second {
        Second {
            number,
            length_s: 1.0,
            measured: true,
            books: books(Books::for_a_second(), times_ns),
            clients: 2,
        }
    }

    #[test]
    fn segments_have_every_client_once() {
        for (clients, threads, among) in [(10, 4, 3), (7, 7, 2), (5, 2, 4), (1, 1, 1), (10_000, 9, 10)] {
            let plan = Plan::closed(clients, threads);
            let segments = Segment::divide(&plan, among);
            let all: u32 = segments.iter().map(|segment| segment.clients(&plan)).sum();
            assert_eq!(all, clients, "{clients} {threads} {among}");
            let threads: u32 = segments.iter().map(|segment| segment.threads).sum();
            assert_eq!(threads, plan.threads);
        }
    }

    #[test]
    fn segments_have_every_client_once_whatever_number_of_threads_each_has() {
        for (clients, hosts) in [(100, vec![1, 16]), (7, vec![2, 1, 9]), (3, vec![4, 4, 4])] {
            let plan = Plan::closed(clients, u32::try_from(hosts.len()).unwrap());
            let segments = Segment::divide(&plan, plan.threads);
            let mut all = 0;
            for (segment, threads) in segments.iter().zip(&hosts) {
                let (spread, segment_there) = segment.spread(&plan, *threads);
                assert_eq!(spread.check(), Ok(()));
                assert_eq!(segment_there.clients(&spread), segment.clients(&plan));
                assert_eq!(segment_there.threads, (*threads).min(clients / plan.threads));
                all += segment_there.clients(&spread);
            }
            assert_eq!(all, clients, "{hosts:?}");
        }
    }

    #[test]
    fn seconds_and_results_of_two_segments_are_those_of_all_their_transactions() {
        let (sender, receiver) = channel();
        for (segment, times) in [(0, [2_000_000, 9_000_000]), (1, [3_000_000, 4_000_000])] {
            let sent = serde_json::to_string(&second(1, &times)).unwrap();
            let received: Second = serde_json::from_str(&sent).unwrap();
            received.check().unwrap();
            sender.send((segment, Some(received))).unwrap();
            sender.send((segment, None)).unwrap();
        }
        drop(sender);
        let mut seen = Vec::new();
        let seconds = join_seconds(&receiver, 2, &mut |second| seen.push(second.books.committed));
        assert_eq!((seen, seconds.len(), seconds[0].clients), (vec![4], 1, 4));

        let result = |times_ns: &[u64]| {
            let mut result = LoadResult::empty();
            result.measured = books(Books::new(true), times_ns);
            result.in_no_second = Books::for_a_second();
            result.measured.fail(SqlState::from_bytes(b"40001"));
            result.measured.skip(700);
            result.measured_s = 1.0;
            result.engine = "epoll".to_owned();
            let sent = serde_json::to_string(&result).unwrap();
            let received: LoadResult = serde_json::from_str(&sent).unwrap();
            received.check(0).unwrap();
            received
        };
        let all: Vec<u64> = (1..2000).map(|n| n * 7_919).collect();
        let (a, b) = all.split_at(600);
        let whole = join_results([result(a), result(b)], seconds).unwrap();
        let expected = books(Books::new(true), &all);
        assert!(whole.measured.add_up());
        assert_eq!((whole.measured.committed, whole.measured.failed), (1999, 2));
        assert_eq!(whole.measured.response_ns, expected.response_ns);
        assert_eq!(whole.engine, "epoll");
    }

    #[test]
    fn what_adds_up_to_nothing_is_refused() {
        let sent = serde_json::to_value(second(1, &[2_000_000])).unwrap();
        let refused = |pointer: &str, value: serde_json::Value| {
            let mut sent = sent.clone();
            *sent.pointer_mut(pointer).unwrap() = value;
            let received = serde_json::from_value::<Second>(sent).map_err(|error| error.to_string());
            assert!(received.and_then(|second| second.check()).is_err(), "{pointer}");
        };
        refused("/books/committed", 2.into());
        refused("/books/late", 2.into());
        refused("/books/all", u64::MAX.into());
        refused("/books/response_ns", "AAAA".into());
        refused("/books/response_ns", serde_json::Value::Null);
        refused("/length_s", 1e9.into());
        refused("/books/errors", serde_json::json!([["40001", u64::MAX]]));
        let other = sent["books"]["response_ns"].clone();
        refused("/books/skipped_wait_ns", other);
        refused("/clients", u32::MAX.into());

        let mut result = LoadResult::empty();
        result.in_no_second = Books::for_a_second();
        result.servers = vec![ServerShare::default()];
        let sent = serde_json::to_value(&result).unwrap();
        assert_eq!(result.check(1), Ok(()));
        for pointer in [
            "/whole/server_commits",
            "/whole/retries",
            "/in_flight_at_end",
            "/notes_skipped",
            "/commits_per_session",
            "/servers/0/server_commits",
        ] {
            let mut sent = sent.clone();
            *sent.pointer_mut(pointer).unwrap() = u64::MAX.into();
            let received: LoadResult = serde_json::from_value(sent).unwrap();
            assert!(received.check(1).is_err(), "{pointer}");
        }
    }
}
