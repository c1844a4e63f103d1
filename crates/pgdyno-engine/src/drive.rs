//! What one thread of a load does, whatever moves its bytes: begins transactions when they are due,
//! follows them to their end, keeps the books. Nothing in it waits, and nothing per transaction
//! allocates.

mod lost;
mod pause;
mod setup;

pub(crate) use pause::{Pause, Step};
pub(crate) use setup::Setup;

use crate::actor::Outline;
use crate::books::{Books, ERROR_KINDS_MAX, Instants, Second, SqlState};
use crate::client::{Client, Lost, Outcome, Progress};
use crate::collect::ThreadSecond;
use crate::part::Part;
use crate::reconnect::Reconnector;
use crate::schedule::Schedule;
use crate::tls::Tls;
use crate::turns::Turns;
use rustix::time::{ClockId, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Transactions under way at the end get this long to finish.
const DRAIN_NS: u64 = 10 * SECOND_NS;
/// Somebody who asks for the end does not wait for that.
const STOPPED_DRAIN_NS: u64 = SECOND_NS / 2;
/// A stop request is seen within this time.
const STOP_CHECK_NS: u64 = 100_000_000;
/// New connections are looked for so often, while some are missing.
const RECONNECT_CHECK_NS: u64 = 10_000_000;
/// Arrivals of an open loop wake the thread at most so often; those due in between are begun
/// together. A lone one is begun when it is due.
const WAKES_APART_NS: u64 = 500_000;
/// A load of a number of transactions is given up after so long without any connection.
const GIVE_UP_NS: u64 = 60 * SECOND_NS;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// What is shorter has a rate of chance only: it is no second of its own.
const SLIVER_NS: u64 = SECOND_NS / 10;

/// The limits of a load; times in nanoseconds of its clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// `u64::MAX` until the load has settled, then also `end_ns`.
    pub(crate) warmup_ns: u64,
    pub(crate) measure_ns: u64,
    pub(crate) end_ns: u64,
    /// Pause between two transactions of a client, in a closed loop.
    pub(crate) think_ns: u64,
    /// Between two batches of arrivals; 0: each is begun as soon as it is seen to be due.
    pub(crate) batch_ns: u64,
    pub(crate) latency_limit_ns: u64,
    /// Whether the clients' transactions are counted, so that no time ends the load.
    pub(crate) by_count: bool,
    /// Of transactions that fail where trying again may help.
    pub(crate) max_tries: u32,
}

pub(crate) struct Drive<'a> {
    outline: &'a Outline,
    limits: Limits,
    schedule: Option<Schedule>,
    turns: Option<Turns>,
    clients: Vec<Client<'a>>,
    /// Clients that wait for an arrival.
    free: Vec<u32>,
    /// When clients go on that wait for an instant.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Clients whose transaction has no connection yet.
    to_connect: Vec<u32>,
    /// Clients with a request that nobody has taken for sending yet.
    to_send: Vec<u32>,
    busy: u32,
    alive: u32,
    /// Clients that have begun all of their transactions.
    ended: u32,
    reconnector: Reconnector,
    stop: &'a AtomicBool,
    halt: &'a AtomicBool,
    settled_s: &'a AtomicU32,
    sender: &'a Sender<ThreadSecond>,
    thread: u32,
    start: Instant,
    begun: bool,
    /// When arrivals were begun last.
    woken_ns: u64,
    /// When the last connection was lost.
    gone_ns: u64,
    /// Length of the first second. The others are whole ones, so that one of them begins with the
    /// measured time.
    first_ns: u64,
    /// The second at hand, 1-based, and its books.
    second: u32,
    second_books: Books,
    cpu_at_warmup_us: Option<f64>,
    cpu_us: Option<f64>,
    part: Part,
}

impl Drive<'_> {
    /// When the load's clock began, by the monotonic one of the kernel (clock_gettime(2)); not
    /// before it, or a timer would go off before what it is for.
    pub(crate) fn began_ns(&self) -> u64 {
        let now_ns = self.now_ns();
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec.cast_unsigned() * SECOND_NS + now.tv_nsec.cast_unsigned()).saturating_sub(now_ns)
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.start.elapsed())
    }

    /// How many clients there are; they are numbered from 0.
    pub(crate) fn clients(&self) -> u32 {
        u32::try_from(self.clients.len()).unwrap_or(u32::MAX)
    }

    /// Whether a client only ever waits for a reply, never for an instant.
    pub(crate) fn waits_for_replies_alone(&self) -> bool {
        let is_free = self.schedule.is_none() && self.turns.is_none();
        is_free && self.limits.think_ns == 0 && !self.outline.sleeps
    }

    /// Whether a client may send a whole request before it looks for replies, and waits for nothing
    /// but them.
    pub(crate) fn may_block(&self) -> bool {
        self.waits_for_replies_alone() && !self.outline.pipelines
    }

    /// Whether a client waits for the server, not for an instant within its transaction or before
    /// its next one.
    pub(crate) fn hears(&self, client: u32) -> bool {
        let client = &self.clients[client as usize];
        !client.is_asleep() && !client.is_idle()
    }

    /// The next client whose transaction needs a connection: make one, and call
    /// [`Drive::connected`] or [`Drive::lose`].
    pub(crate) fn next_to_connect(&mut self) -> Option<u32> {
        self.to_connect.pop()
    }

    /// Whether a client's connection is to be closed: its transaction has ended, and the next one
    /// makes its own.
    pub(crate) fn wants_no_connection(&self, client: u32) -> bool {
        self.clients[client as usize].wants_no_connection()
    }

    /// A transaction's connection was made.
    pub(crate) fn connected(&mut self, client: u32, tls: Option<Tls>, took: Duration) {
        if let Some(times) = &mut self.part.connections {
            times.record(nanoseconds(took));
        }
        self.part.sessions += 1;
        let now = self.now_ns();
        let progress = self.clients[client as usize].connected(tls);
        self.follow(client, progress, now);
    }

    /// The next client with a request to send.
    pub(crate) fn next_to_send(&mut self) -> Option<u32> {
        self.to_send.pop()
    }

    /// The request of a client; its memory stays where it is as long as the drive lives.
    pub(crate) fn request(&self, client: u32) -> &[u8] {
        self.clients[client as usize].out()
    }

    /// Does what is due now and returns how long to wait for bytes.
    pub(crate) fn step(&mut self) -> Step {
        let now = self.now_ns();
        self.turn_seconds(now);
        if self.limits.warmup_ns == u64::MAX
            && !self.part.stopped_early
            && let settled_s @ 1.. = self.settled_s.load(Ordering::Relaxed)
        {
            // It is reported a moment after that second: all threads begin to measure with the end
            // of the next one.
            self.limits.warmup_ns = u64::from(settled_s + 1) * SECOND_NS;
            self.limits.end_ns = self.limits.warmup_ns + self.limits.measure_ns;
        }
        if self.cpu_at_warmup_us.is_none() && now >= self.limits.warmup_ns {
            self.cpu_at_warmup_us = Some(thread_cpu_us());
        }
        let stopped = self.stop.load(Ordering::Relaxed) || self.halt.load(Ordering::Relaxed);
        if now < self.limits.end_ns && stopped {
            self.part.stopped_early = true;
            self.limits.end_ns = now;
        }
        if self.limits.by_count && self.alive == 0 && now > self.gone_ns + GIVE_UP_NS {
            self.part.stopped_early = true;
            self.limits.end_ns = self.limits.end_ns.min(now);
        }
        let end_ns = self.limits.end_ns;
        if now >= end_ns {
            // The CPU of the measured time ends with it, not with the transactions that are still
            // under way.
            if let (Some(before), None) = (self.cpu_at_warmup_us, self.cpu_us) {
                self.cpu_us = Some(thread_cpu_us() - before);
            }
            let drain_ns = if stopped || self.part.stopped_early {
                STOPPED_DRAIN_NS
            } else {
                DRAIN_NS
            };
            self.wake_what_is_due(now);
            let over = self.busy == 0 || now >= end_ns + drain_ns;
            return if over {
                Step::End
            } else {
                Step::Wait(Pause {
                    now_ns: now,
                    until_ns: self.next_wake_ns(now + STOP_CHECK_NS),
                })
            };
        }
        if !self.begun {
            self.begun = true;
            for client in 0..self.clients() {
                self.go_on(client, now);
            }
        }
        self.begin_what_is_due(now);
        let mut until = self.second_ends_ns().min(end_ns).min(now + STOP_CHECK_NS);
        if self.alive < self.clients() {
            until = until.min(now + RECONNECT_CHECK_NS);
        }
        until = self.next_wake_ns(until);
        if let Some(schedule) = &self.schedule
            && !self.free.is_empty()
        {
            let apart_ns = WAKES_APART_NS.max(self.limits.batch_ns);
            until = until.min(schedule.next_ns().max(self.woken_ns + apart_ns));
        }
        Step::Wait(Pause {
            now_ns: now,
            until_ns: until,
        })
    }

    /// When the first client needs to go on that waits for an instant, if that is before `until`.
    fn next_wake_ns(&self, until: u64) -> u64 {
        match self.waiting.peek() {
            Some(Reverse((wake_ns, _))) => until.min(*wake_ns),
            None => until,
        }
    }

    fn wake_what_is_due(&mut self, now: u64) {
        while let Some(&Reverse((wake_ns, client))) = self.waiting.peek()
            && wake_ns <= now
        {
            self.waiting.pop();
            let at = client as usize;
            if self.clients[at].is_asleep() {
                let progress = self.clients[at].wake();
                self.follow(client, progress, now);
            } else if self.schedule.is_some() || self.turns.is_some() {
                self.go_on(client, now);
            } else if now < self.limits.end_ns {
                self.begin(client, wake_ns, now);
            }
        }
    }

    fn begin_what_is_due(&mut self, now: u64) {
        self.wake_what_is_due(now);
        let horizon_ns = self.horizon_ns(now);
        if let Some(mut schedule) = self.schedule.take() {
            if schedule.next_ns() <= horizon_ns {
                self.woken_ns = horizon_ns;
            }
            while schedule.next_ns() <= horizon_ns
                && let Some(client) = self.free.pop()
            {
                self.begin(client, schedule.next_ns(), now);
                schedule.advance();
            }
            self.schedule = Some(schedule);
        }
    }

    /// Up to when arrivals are begun that are due: all, or where they are begun in batches, those
    /// of the last one.
    fn horizon_ns(&self, now: u64) -> u64 {
        match now >= self.woken_ns + self.limits.batch_ns {
            true => now,
            false => self.woken_ns,
        }
    }

    fn begin(&mut self, client: u32, due_ns: u64, now: u64) {
        let progress = self.clients[client as usize].begin(due_ns, now);
        self.busy += 1;
        self.follow(client, progress, now);
    }

    /// Does what a client's transaction needs next. What ends without anything to wait for lets the
    /// client rest until the next step, so that nobody is kept from their turn.
    fn follow(&mut self, client: u32, progress: Progress, now: u64) {
        if self.settle(client, progress, now) {
            if self.clients[client as usize].has_ended() {
                self.count_ended(now);
            } else {
                let pause_ns = match self.schedule.is_some() || self.turns.is_some() {
                    true => 0,
                    false => self.pause_ns(client),
                };
                // Not now: whoever wakes what is due now would never come to an end.
                self.waiting.push(Reverse((now + pause_ns.max(1), client)));
            }
        }
    }

    /// The same; whether the transaction has ended is returned.
    fn settle(&mut self, client: u32, progress: Progress, now: u64) -> bool {
        let at = client as usize;
        match progress {
            Progress::Wait | Progress::Astray => {}
            Progress::Send => {
                self.clients[at].sent_ns = now;
                self.to_send.push(client);
            }
            Progress::Connect => self.to_connect.push(client),
            Progress::Sleep(ns) => self
                .waiting
                .push(Reverse((now.saturating_add(ns.max(1)), client))),
            Progress::Done(Outcome::Failed(code)) if self.is_worth_a_retry(at, code) => {
                let progress = self.clients[at].retry();
                // What has failed once has sent something: this goes no deeper.
                return self.settle(client, progress, now);
            }
            Progress::Done(outcome) => {
                let instants = Instants {
                    due_ns: self.clients[at].due_ns,
                    begun_ns: self.clients[at].begun_ns,
                    done_ns: now,
                };
                let tries = self.clients[at].tries;
                self.busy -= 1;
                if let Outcome::Failed(code) = outcome {
                    self.note_error(at, code, None);
                }
                self.book(at, instants, outcome, tries);
                return true;
            }
            // What a request to stop has ended is not a fault of the transaction's.
            Progress::Halt(_) if self.stop.load(Ordering::Relaxed) => {}
            Progress::Halt(halt) => {
                self.part.halted.get_or_insert(halt.0);
                self.halt.store(true, Ordering::Relaxed);
            }
        }
        false
    }

    /// How long a client of a closed load waits before its next transaction.
    fn pause_ns(&mut self, client: u32) -> u64 {
        self.limits.think_ns + self.clients[client as usize].actor.pause_ns()
    }

    /// A client without a transaction takes the next one, or waits for one.
    fn go_on(&mut self, client: u32, now: u64) {
        if now >= self.limits.end_ns {
            return;
        }
        if self.clients[client as usize].has_ended() {
            self.count_ended(now);
            return;
        }
        let horizon_ns = self.horizon_ns(now);
        match &mut self.schedule {
            Some(schedule) if schedule.next_ns() <= horizon_ns => {
                let due_ns = schedule.next_ns();
                schedule.advance();
                self.begin(client, due_ns, now);
            }
            Some(_) => self.free.push(client),
            None => {
                let pause_ns = self.pause_ns(client);
                let begins_ns = match &mut self.turns {
                    Some(turns) => turns.next_ns(now),
                    None => now + pause_ns,
                };
                match begins_ns == now {
                    true => self.begin(client, now, now),
                    false => self.waiting.push(Reverse((begins_ns, client))),
                }
            }
        }
    }

    /// One more client has begun all of its transactions; the last one ends the load.
    fn count_ended(&mut self, now: u64) {
        self.ended += 1;
        if self.ended == self.clients() {
            self.limits.end_ns = self.limits.end_ns.min(now);
        }
    }

    /// Takes in what arrived for a client. After an error its connection is of no more use: close
    /// it, and call [`Drive::lose`].
    pub(crate) fn feed(&mut self, client: u32, bytes: &[u8]) -> Result<(), Lost> {
        let at = client as usize;
        let progress = self.clients[at].feed(bytes)?;
        // Where nobody asks for the instant, no clock is read.
        let finished = self.clients[at].take_finished();
        let now = match progress {
            Progress::Wait => return Ok(()),
            Progress::Send if self.part.statements.is_empty() => self.clients[at].sent_ns,
            _ => self.now_ns(),
        };
        if let Some(statement) = finished
            && (self.limits.warmup_ns..self.limits.end_ns).contains(&now)
            && let Some(times) = self.part.statements.get_mut(statement as usize)
        {
            times.record(now - self.clients[at].sent_ns);
        }
        if self.settle(client, progress, now) {
            self.go_on(client, now);
        }
        Ok(())
    }

    fn is_worth_a_retry(&self, client: usize, code: SqlState) -> bool {
        [SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED].contains(&code)
            && self.clients[client].tries < self.limits.max_tries
            // Those that the end has cut off go on as well, unless somebody waits for it.
            && !self.part.stopped_early
            && !self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the first error of each SQLSTATE; the second and all others find it here and cost
    /// nothing.
    fn note_error(&mut self, client: usize, code: SqlState, reason: Option<&str>) {
        let known = &mut self.part.first_errors;
        let is_known = known.iter().any(|error| error.sqlstate == code.as_str());
        if !is_known && known.len() < ERROR_KINDS_MAX {
            known.push(self.clients[client].first_error(code, reason));
        }
    }

    fn book(&mut self, client: usize, at: Instants, outcome: Outcome, tries: u32) {
        self.turn_seconds(at.done_ns);
        let kind = self.clients[client].actor.kind() as usize;
        let limit_ns = self.limits.latency_limit_ns;
        let counts = &mut self.part.whole;
        counts.all += 1;
        counts.retries += u64::from(tries - 1);
        match outcome {
            Outcome::Committed | Outcome::RolledBack => counts.committed += 1,
            Outcome::Failed(_) => counts.failed += 1,
        }
        let inside = at.done_ns < self.limits.end_ns;
        // What was begun in time belongs to the books however long it takes: the longest are those
        // that the end cuts off.
        let is_measured = at.done_ns >= self.limits.warmup_ns && self.has_measured();
        let measured = Some(&mut self.part.measured).filter(|_| is_measured);
        let second = match inside {
            true => Some(&mut self.second_books),
            false => Some(&mut self.part.in_no_second).filter(|_| measured.is_some()),
        };
        if inside && measured.is_some() {
            self.part.busy_ns += at.done_ns - at.begun_ns;
        }
        let of_kind = self.part.kinds.get_mut(kind).filter(|_| measured.is_some());
        for books in [measured, second, of_kind].into_iter().flatten() {
            books.retries += u64::from(tries - 1);
            match outcome {
                Outcome::Committed | Outcome::RolledBack => {
                    books.commit(at, limit_ns, outcome == Outcome::RolledBack, !inside);
                }
                Outcome::Failed(code) => books.fail(code),
            }
        }
    }

    /// Whether the load has a measured time: nobody has ended it in its warm-up.
    fn has_measured(&self) -> bool {
        self.limits.warmup_ns < self.limits.end_ns
    }

    fn second_begins_ns(&self) -> u64 {
        match self.second {
            1 => 0,
            later => self.first_ns + u64::from(later - 2) * SECOND_NS,
        }
    }

    fn second_ends_ns(&self) -> u64 {
        self.first_ns + u64::from(self.second - 1) * SECOND_NS
    }

    /// Delivers every second that has ended.
    fn turn_seconds(&mut self, now_ns: u64) {
        let now_ns = now_ns.min(self.limits.end_ns);
        while self.second_ends_ns() <= now_ns {
            self.deliver(self.second_ends_ns());
        }
    }

    fn deliver(&mut self, ends_ns: u64) {
        let begins_ns = self.second_begins_ns();
        #[expect(clippy::cast_precision_loss, reason = "about a second")]
        let length_s = ends_ns.saturating_sub(begins_ns) as f64 / 1e9;
        let second = Second {
            number: self.second,
            length_s,
            measured: begins_ns >= self.limits.warmup_ns,
            books: self.second_books.clone(),
            clients: self.alive,
        };
        let _ = self.sender.send((self.thread, Some(second)));
        self.second_books.clear();
        self.second += 1;
    }

    /// What a client says last.
    pub(crate) fn good_bye(&mut self, client: u32) -> &[u8] {
        self.clients[client as usize].end()
    }

    /// Closes the books; the connections may be closed then.
    pub(crate) fn finish(mut self, engine: String) -> Part {
        let end = self.limits.end_ns;
        self.turn_seconds(end);
        let begins_ns = self.second_begins_ns();
        let rest_ns = end.saturating_sub(begins_ns);
        // A sliver is reported where it is all there is.
        if rest_ns > SLIVER_NS || (self.second == 1 && rest_ns > 0) {
            self.deliver(end);
        } else if begins_ns >= self.limits.warmup_ns {
            self.part.in_no_second.add(&self.second_books);
        }
        let _ = self.sender.send((self.thread, None));
        if self.has_measured() {
            let mut skip = |waited_ns| {
                self.part.measured.skip(waited_ns);
                self.part.whole.all += 1;
                self.part.whole.skipped += 1;
            };
            // What was due and found no client is in the books all the same.
            while let Some(schedule) = self.schedule.as_mut().filter(|schedule| schedule.next_ns() < end) {
                skip(end - schedule.next_ns());
                schedule.advance();
            }
            // So is what was begun and not seen to its end.
            let now = nanoseconds(self.start.elapsed());
            for client in self.clients.iter().filter(|client| !client.is_idle()) {
                skip(now.saturating_sub(client.due_ns));
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a load")]
        let measured_ns = end.saturating_sub(self.limits.warmup_ns) as f64;
        self.part.measured_s = measured_ns / 1e9;
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a load")]
        let warmup_ns = self.limits.warmup_ns.min(end) as f64;
        self.part.warmup_s = warmup_ns / 1e9;
        self.part.in_flight_at_end += u64::from(self.busy);
        for client in &mut self.clients {
            self.part.whole.server_commits += client.server_commits();
            self.part.notes.append(&mut client.actor.take_notes());
        }
        self.part.cpu_us = self.cpu_us.unwrap_or(0.0);
        self.part.engine = engine;
        debug_assert!(self.part.whole.add_up() && self.part.measured.add_up());
        self.part
    }
}

/// Length of the first second where a warm-up (`u64::MAX`: not known yet) takes so long: what it
/// has beyond whole ones.
fn first_second_ns(warmup_ns: u64) -> u64 {
    match warmup_ns % SECOND_NS {
        _ if warmup_ns == u64::MAX => SECOND_NS,
        0 => SECOND_NS,
        sliver if sliver <= SLIVER_NS && warmup_ns > SECOND_NS => SECOND_NS + sliver,
        part => part,
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "CPU time of a thread")]
fn thread_cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_begins_where_the_warm_up_ends() {
        const MS: u64 = SECOND_NS / 1000;
        let check = |warmup_ms: u64, first_ms: u64| {
            let (warmup_ns, first_ns) = (warmup_ms * MS, first_second_ns(warmup_ms * MS));
            assert_eq!(first_ns, first_ms * MS, "{warmup_ms}");
            assert_eq!(warmup_ns.saturating_sub(first_ns) % SECOND_NS, 0, "{warmup_ms}");
        };
        check(0, 1000);
        check(20, 20);
        check(300, 300);
        check(1000, 1000);
        check(1050, 1050);
        check(2400, 400);
        check(60_000, 1000);
        assert_eq!(first_second_ns(u64::MAX), SECOND_NS);
    }
}
