//! Servers that take turns within a load: for a moment the clients of one begin their transactions,
//! then those of another. What disturbs the host for longer than a moment meets all of them alike.

use crate::random::{Purpose, stream_seed};
use std::time::Duration;

/// Shortest turn: a shorter one is not much longer than the time in which a thread wakes up.
pub const TURN_MIN: Duration = Duration::from_millis(2);
/// Longest turn.
pub const TURN_MAX: Duration = Duration::from_secs(60);

/// The turns of one server among several: in each round all of them have one, in random order.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    slice_ns: u64,
    server: u32,
    servers: u32,
    seed: u64,
    /// Begin and end of the turn that was found last.
    found: (u64, u64),
}

impl Turns {
    pub(crate) fn new(slice_ns: u64, (server, servers): (u32, u32), seed: u64) -> Turns {
        let mut turns = Turns {
            slice_ns,
            server,
            servers,
            seed,
            found: (0, 0),
        };
        turns.found = turns.of_round(0);
        turns
    }

    /// Whether turns can be so long.
    pub(crate) fn check(slice: Duration) -> Result<(), String> {
        match (TURN_MIN..=TURN_MAX).contains(&slice) {
            true => Ok(()),
            false => Err(format!(
                "a turn must take {} ms to {} s, not {} ms",
                TURN_MIN.as_millis(),
                TURN_MAX.as_secs(),
                slice.as_millis()
            )),
        }
    }

    /// When a transaction of the server may begin: at once in its turn, else with the next one.
    pub(crate) fn next_ns(&mut self, now_ns: u64) -> u64 {
        let round_ns = self.slice_ns * u64::from(self.servers);
        while self.found.1 <= now_ns {
            let next = (self.found.1 - 1) / round_ns + 1;
            self.found = self.of_round(next.max(now_ns / round_ns));
        }
        self.found.0.max(now_ns)
    }

    /// Begin and end of its turn in a round.
    fn of_round(&self, round: u64) -> (u64, u64) {
        let drawn = |server: u32| stream_seed(self.seed ^ round, u64::from(server), Purpose::Turns);
        let own = (drawn(self.server), self.server);
        let before = (0..self.servers).filter(|other| (drawn(*other), *other) < own);
        let place = round * u64::from(self.servers) + before.count() as u64;
        let begins_ns = place * self.slice_ns;
        (begins_ns, begins_ns + self.slice_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn at_each_instant_it_is_the_turn_of_one_server_and_none_is_before_another_more_often() {
        let mut all: Vec<Turns> = (0..3).map(|server| Turns::new(10 * MS, (server, 3), 7)).collect();
        let mut first = [0; 3];
        for round in 0..3000 {
            let mut places = Vec::new();
            for at in 0..3 {
                let now = (round * 3 + at) * 10 * MS + 3 * MS;
                let own: Vec<usize> = (0..3).filter(|&server| all[server].next_ns(now) == now).collect();
                assert_eq!(own.len(), 1, "{now}");
                places.push(own[0]);
            }
            first[places[0]] += 1;
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2]);
        }
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
    }

    #[test]
    fn the_next_turn_is_the_next_whatever_was_missed() {
        let turns = Turns::new(5 * MS, (1, 2), 1);
        let mut seen = turns.clone();
        for now in (0..400 * MS).step_by(700_000) {
            let begins = seen.next_ns(now);
            let mut afresh = turns.clone();
            assert_eq!(afresh.next_ns(now), begins);
            // Not a whole round before it is this server's turn, and within it then.
            assert!((now..=now + 10 * MS).contains(&begins), "{now}");
            assert_eq!(seen.clone().next_ns(begins), begins);
        }
        assert!(Turns::check(Duration::from_millis(1)).is_err());
        assert!(Turns::check(Duration::from_millis(20)).is_ok());
    }
}
