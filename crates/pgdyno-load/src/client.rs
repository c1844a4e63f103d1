//! One client: a simulated session with its own random stream. It moves no bytes itself: it is fed what arrived, and
//! tells what is to be sent.

use crate::actor::Actor;
use crate::books::SqlState;
use crate::machine::{Halt, Trip, Turn};
use crate::message::{ROLLBACK, TERMINATE};
use crate::program::Program;
use crate::random::Stream;
use crate::scanner::{Event, Malformed, Scanner, Tag};
use crate::tls::{Tls, sealed_bytes_max};
use std::io;

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// By a rollback, as it was meant to.
    RolledBack,
    Failed(SqlState),
}

/// The connection is of no more use.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) code: SqlState,
    pub(crate) reason: String,
}

impl From<Malformed> for Lost {
    fn from(error: Malformed) -> Lost {
        Lost {
            code: SqlState::PROTOCOL_VIOLATION,
            reason: error.to_string(),
        }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Lost {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => format!("the connection broke: {error}"),
        };
        Lost {
            code: SqlState::CONNECTION_FAILURE,
            reason,
        }
    }
}

/// What is to be done after bytes arrived, or a transaction went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing: the reply is not whole yet.
    Wait,
    /// The next request of the transaction is to be sent.
    Send,
    /// A connection is to be made for the transaction: see [`Client::connected`].
    Connect,
    /// The transaction goes on after so many nanoseconds: see [`Client::wake`].
    Sleep(u64),
    /// The transaction has ended.
    Done(Outcome),
    /// The load cannot go on.
    Halt(Halt),
    /// The server is within a transaction that has ended.
    Astray,
}

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Between two transactions.
    Idle,
    /// A connection for a transaction.
    Connection,
    /// An instant within a transaction.
    Asleep,
    /// The reply to a round trip.
    Trip(Trip),
    /// The reply to the rollback of a failed transaction.
    Rollback(SqlState),
}

/// What the server said since the last request.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// First error.
    error: Option<SqlState>,
    /// Whether an error came since the last ReadyForQuery, and what the last statement since then did.
    broken: bool,
    last: Option<Tag>,
    /// ReadyForQuery, and the transaction status of the last one.
    syncs: u32,
    status: u8,
    /// Transactions that the server has committed since the client began.
    commits: u64,
}

impl Heard {
    const NOTHING: Heard = Heard {
        error: None,
        broken: false,
        last: None,
        syncs: 0,
        status: IDLE,
        commits: 0,
    };

    fn hear(&mut self, event: Event) {
        match event {
            Event::Ready(status) => {
                // Without a transaction block, what ran since the last one was a transaction of its own.
                self.commits += u64::from(status == IDLE && !self.broken && self.last == Some(Tag::Other));
                (self.broken, self.last) = (false, None);
                self.syncs += 1;
                self.status = status;
            }
            Event::Error(code) => {
                self.error.get_or_insert(code);
                self.broken = true;
            }
            Event::Complete(tag) => {
                self.commits += u64::from(tag == Tag::Commit);
                self.last = Some(tag);
            }
            Event::Row => {}
        }
    }
}

/// ReadyForQuery's status outside of a transaction block.
const IDLE: u8 = b'I';

pub(crate) struct Client {
    scanner: Scanner,
    pub(crate) actor: Actor,
    /// The request at hand, as it goes over the wire. Its memory stays where it is as long as the client lives: one that
    /// is too small is kept beside, because a send may still be under way from it.
    out: Vec<u8>,
    outgrown: Vec<Vec<u8>>,
    tls: Option<Tls>,
    /// The request before it is sealed.
    plain: Vec<u8>,
    waiting: Waiting,
    /// Whether each transaction has a connection of its own.
    connects: bool,
    heard: Heard,
    /// The statement whose round trip has just ended.
    finished: Option<u32>,
    /// How often the transaction at hand was tried.
    pub(crate) tries: u32,
    /// Transactions that it may still begin.
    left: u64,
    /// When the transaction at hand was due and begun, and its last request made, in nanoseconds of the load's clock.
    pub(crate) due_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) sent_ns: u64,
}

impl Client {
    pub(crate) fn new(
        program: &Program,
        stream: Stream,
        number: u32,
        transactions: Option<u64>,
        tls: Option<Tls>,
    ) -> Client {
        Client {
            scanner: Scanner::default(),
            actor: Actor::new(program, stream, number),
            out: Vec::with_capacity(REQUEST_BYTES),
            outgrown: Vec::new(),
            plain: Vec::with_capacity(REQUEST_BYTES),
            tls,
            waiting: Waiting::Idle,
            connects: false,
            heard: Heard::NOTHING,
            finished: None,
            tries: 0,
            left: transactions.unwrap_or(u64::MAX),
            due_ns: 0,
            begun_ns: 0,
            sent_ns: 0,
        }
    }

    /// Lets each transaction have a connection of its own.
    pub(crate) fn connect_each(&mut self) {
        self.connects = true;
    }

    /// Whether it has no use for a connection at the moment.
    pub(crate) fn wants_no_connection(&self) -> bool {
        self.connects && matches!(self.waiting, Waiting::Idle | Waiting::Connection)
    }

    /// Whether it may begin no more transactions.
    pub(crate) fn has_ended(&self) -> bool {
        self.left == 0
    }

    /// A new connection in place of one that was lost.
    pub(crate) fn renew(&mut self, tls: Option<Tls>) {
        self.tls = tls;
        self.scanner = Scanner::default();
        self.waiting = Waiting::Idle;
        self.heard = Heard {
            commits: self.heard.commits,
            ..Heard::NOTHING
        };
        self.actor.renew();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == Waiting::Idle
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.waiting == Waiting::Asleep
    }

    /// Transactions that the server has confirmed to have committed.
    pub(crate) fn server_commits(&self) -> u64 {
        self.heard.commits
    }

    /// The request at hand.
    pub(crate) fn out(&self) -> &[u8] {
        &self.out
    }

    /// The statement whose round trip has just ended, if it was one alone.
    pub(crate) fn take_finished(&mut self) -> Option<u32> {
        self.finished.take()
    }

    /// Begins the next transaction.
    pub(crate) fn begin(&mut self, program: &Program, due_ns: u64, now_ns: u64) -> Progress {
        self.actor.begin(program);
        self.due_ns = due_ns;
        self.begun_ns = now_ns;
        self.sent_ns = now_ns;
        self.left -= 1;
        self.tries = 1;
        if self.connects {
            self.waiting = Waiting::Connection;
            return Progress::Connect;
        }
        self.go_on(program)
    }

    /// Begins the transaction at hand once more, with the same values.
    pub(crate) fn retry(&mut self, program: &Program) -> Progress {
        self.tries += 1;
        self.actor.restart(program);
        self.go_on(program)
    }

    /// Goes on with a transaction whose connection has been made.
    pub(crate) fn connected(&mut self, program: &Program, tls: Option<Tls>) -> Progress {
        self.renew(tls);
        self.go_on(program)
    }

    /// Goes on with a transaction that slept.
    pub(crate) fn wake(&mut self, program: &Program) -> Progress {
        self.go_on(program)
    }

    fn go_on(&mut self, program: &Program) -> Progress {
        match self.actor.run(program, &mut self.plain) {
            Ok(Turn::Send(trip)) => {
                self.scanner.keep_rows(trip.captures);
                self.waiting = Waiting::Trip(trip);
                self.seal();
                Progress::Send
            }
            Ok(Turn::Sleep(ns)) => {
                self.waiting = Waiting::Asleep;
                Progress::Sleep(ns)
            }
            Ok(Turn::End) if self.heard.status == IDLE => self.done(match self.actor.rolls_back() {
                true => Outcome::RolledBack,
                false => Outcome::Committed,
            }),
            // A workload of our own has ended its transaction: it is the server that has not.
            Ok(Turn::End) if !program.scripted => Progress::Astray,
            Ok(Turn::End) => {
                let kind = &program.kinds[self.actor.kind(program) as usize];
                Progress::Halt(Halt(format!("{kind}: the script ends within a transaction")))
            }
            Err(halt) => Progress::Halt(halt),
        }
    }

    fn seal(&mut self) {
        self.heard.syncs = 0;
        let wanted = sealed_bytes_max(self.plain.len());
        if self.out.capacity() < wanted {
            let larger = Vec::with_capacity(wanted.next_power_of_two());
            self.outgrown.push(std::mem::replace(&mut self.out, larger));
        }
        self.out.clear();
        match &mut self.tls {
            Some(tls) => tls.seal(&self.plain, &mut self.out),
            None => self.out.extend_from_slice(&self.plain),
        }
    }

    /// Says good-bye, so that the server's statistics are complete when the connection is gone.
    pub(crate) fn end(&mut self) -> &[u8] {
        self.say(TERMINATE);
        &self.out
    }

    fn say(&mut self, message: &[u8]) {
        self.plain.clear();
        self.plain.extend_from_slice(message);
        self.seal();
    }

    /// The code that the server gave before it closed the connection says more than that it did.
    pub(crate) fn last_error(&self) -> Option<SqlState> {
        self.heard.error
    }

    /// Takes in what arrived.
    pub(crate) fn feed(&mut self, program: &Program, bytes: &[u8]) -> Result<Progress, Lost> {
        let (scanner, heard) = (&mut self.scanner, &mut self.heard);
        let before = heard.syncs;
        let mut unfit = None;
        let mut scan = |bytes: &[u8]| {
            let scanned = scanner.feed(bytes, |event| heard.hear(event));
            unfit = scanned
                .err()
                .filter(|error| matches!(error, Malformed::Copy | Malformed::Rows));
            scanned.map_err(Lost::from)
        };
        let scanned = match &mut self.tls {
            Some(tls) => tls.open(bytes, scan),
            None => scan(bytes),
        };
        // What a script wants and a load does not do is no fault of the connection.
        if let (Some(error), true) = (unfit, program.scripted) {
            let kind = &program.kinds[self.actor.kind(program) as usize];
            return Ok(Progress::Halt(Halt(format!("{kind}: {error}"))));
        }
        scanned?;
        if self.heard.syncs > before {
            self.advance(program)
        } else {
            Ok(Progress::Wait)
        }
    }

    /// The server waits again: the next round trip, a rollback, or the end of the transaction.
    fn advance(&mut self, program: &Program) -> Result<Progress, Lost> {
        let (syncs, status) = (self.heard.syncs, self.heard.status);
        match self.waiting {
            Waiting::Trip(trip) if syncs < trip.syncs => Ok(Progress::Wait),
            Waiting::Trip(trip) if syncs == trip.syncs => match self.heard.error.take() {
                None => {
                    self.finished = trip.statement;
                    let progress = match self.actor.take_reply(program, self.scanner.rows()) {
                        Ok(()) => self.go_on(program),
                        Err(halt) => Progress::Halt(halt),
                    };
                    match progress {
                        Progress::Astray => Err(self.astray()),
                        progress => Ok(progress),
                    }
                }
                Some(code) => {
                    self.actor.fail();
                    if status == IDLE {
                        return Ok(self.failed(code));
                    }
                    self.waiting = Waiting::Rollback(code);
                    self.say(ROLLBACK);
                    Ok(Progress::Send)
                }
            },
            Waiting::Rollback(code) if syncs == 1 && status == IDLE => {
                self.heard.error = None;
                Ok(self.failed(code))
            }
            _ => Err(self.astray()),
        }
    }

    fn astray(&self) -> Lost {
        Lost {
            code: SqlState::PROTOCOL_VIOLATION,
            reason: format!(
                "unexpected ReadyForQuery '{}' while {:?}",
                char::from(self.heard.status),
                self.waiting
            ),
        }
    }

    fn failed(&mut self, code: SqlState) -> Progress {
        self.done(match code == SqlState::NO_DATA_FOUND && self.actor.rolls_back() {
            true => Outcome::RolledBack,
            false => Outcome::Failed(code),
        })
    }

    fn done(&mut self, outcome: Outcome) -> Progress {
        self.waiting = Waiting::Idle;
        Progress::Done(outcome)
    }
}

/// Requests are mostly far below this.
const REQUEST_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::kinds;
    use crate::random::Purpose;
    use crate::script::{Script, Scripts};
    use crate::workload::{Control, Extent, Protocol, Workload};

    const READY: &[u8] = b"Z\0\0\0\x05I";
    const READY_INSIDE: &[u8] = b"Z\0\0\0\x05T";
    const READY_BROKEN: &[u8] = b"Z\0\0\0\x05E";
    const ERROR: &[u8] = b"E\0\0\0\x0cC40001\0\0";
    const SELECTED: &[u8] = b"C\0\0\0\x0dSELECT 1\0";
    const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

    fn program(workload: Workload, protocol: Protocol, control: Control) -> Program {
        let extent = Extent {
            scale: 1,
            tables: 1,
            rows: 1000,
        };
        Program::of_workload(workload, protocol, control, extent)
    }

    fn scripted(text: &str, protocol: Protocol) -> Program {
        let scripts = Scripts {
            scripts: vec![Script {
                name: "test.sql".into(),
                text: text.into(),
                weight: 1,
            }],
            ..Scripts::default()
        };
        scripts.compile(protocol, 1, 1).unwrap()
    }

    fn client(program: &Program) -> Client {
        Client::new(program, Stream::new(1, 1, Purpose::Transactions), 0, None, None)
    }

    /// The kinds of messages of each round trip, with a server that confirms everything.
    fn trips(program: &Program) -> Vec<String> {
        let mut client = client(program);
        let mut trips = Vec::new();
        let mut progress = client.begin(program, 0, 0);
        while progress == Progress::Send {
            trips.push(kinds(client.out()));
            let Waiting::Trip(trip) = client.waiting else {
                panic!("{:?}", client.waiting)
            };
            for _ in 0..trip.syncs {
                progress = client.feed(program, READY).unwrap();
            }
        }
        assert_eq!(progress, Progress::Done(Outcome::Committed));
        trips
    }

    #[test]
    fn requests_are_whole_messages_in_the_order_of_the_protocol() {
        let check = |protocol, control, expected: &[&str]| {
            let found = trips(&program(Workload::SimpleUpdate, protocol, control));
            assert_eq!(found, expected, "{protocol:?} {control:?}");
        };
        check(Protocol::Prepared, Control::Explicit, &["BES"; 5]);
        check(Protocol::Prepared, Control::None, &["BES"; 3]);
        check(Protocol::Prepared, Control::Pipelined, &["BEBEBEBEBES"]);
        check(Protocol::Extended, Control::None, &["PBES"; 3]);
        check(Protocol::Simple, Control::Explicit, &["Q"; 5]);
        check(Protocol::Simple, Control::Pipelined, &["QQQQQ"]);
        for workload in Workload::ALL.into_iter().filter(|workload| !workload.is_tpcc()) {
            let program = program(workload, Protocol::Prepared, Control::Explicit);
            let prepared = kinds(program.prepare().unwrap());
            assert_eq!(prepared, "P".repeat(program.statements.len()) + "S");
            trips(&program);
        }
    }

    #[test]
    fn a_transaction_goes_from_trip_to_trip_to_its_end() {
        let program = program(Workload::SimpleUpdate, Protocol::Prepared, Control::Explicit);
        let mut client = client(&program);
        client.begin(&program, 5, 7);
        for _ in 0..4 {
            assert_eq!(client.feed(&program, &READY_INSIDE[..3]).unwrap(), Progress::Wait);
            assert_eq!(client.feed(&program, &READY_INSIDE[3..]).unwrap(), Progress::Send);
        }
        let done = client.feed(&program, &[COMMITTED, READY].concat()).unwrap();
        assert_eq!(done, Progress::Done(Outcome::Committed));
        assert_eq!(client.server_commits(), 1);
        assert!(client.is_idle());
        let lost = client.feed(&program, READY).unwrap_err();
        assert!(lost.reason.contains("while Idle"), "{}", lost.reason);
    }

    #[test]
    fn a_failed_one_is_rolled_back_and_counted_with_its_code() {
        let program = program(Workload::Tpcb, Protocol::Prepared, Control::Pipelined);
        let mut client = client(&program);
        client.begin(&program, 0, 0);
        let reply = [ERROR, READY_BROKEN].concat();
        assert_eq!(client.feed(&program, &reply).unwrap(), Progress::Send);
        assert_eq!(client.out(), ROLLBACK);
        let failed = Progress::Done(Outcome::Failed(SqlState::from_bytes(b"40001")));
        let rolled_back = [b"C\0\0\0\x0dROLLBACK\0", READY].concat();
        assert_eq!(client.feed(&program, &rolled_back).unwrap(), failed);
        // Without a transaction around it there is nothing to roll back.
        client.begin(&program, 0, 0);
        assert_eq!(client.feed(&program, &[ERROR, READY].concat()).unwrap(), failed);
        assert_eq!(client.server_commits(), 0);
    }

    #[test]
    fn what_the_server_commits_is_counted() {
        let program = scripted(
            "\\startpipeline\nselect 1;\n\\syncpipeline\nbegin;commit;select 2;\n\\endpipeline\nselect 3;",
            Protocol::Prepared,
        );
        let mut client = client(&program);
        assert_eq!(client.begin(&program, 0, 0), Progress::Send);
        assert_eq!(kinds(client.out()), "CPBESCPBECPBECPBES");
        let reply = [SELECTED, READY].concat();
        assert_eq!(client.feed(&program, &reply).unwrap(), Progress::Wait);
        let reply = [SELECTED, COMMITTED, SELECTED, READY].concat();
        assert_eq!(client.feed(&program, &reply).unwrap(), Progress::Send);
        // A commit, and what followed it in the pipeline.
        assert_eq!(client.server_commits(), 3);
        assert_eq!(kinds(client.out()), "CPBES");
        let reply = [SELECTED, READY].concat();
        assert_eq!(
            client.feed(&program, &reply).unwrap(),
            Progress::Done(Outcome::Committed)
        );
        client.begin(&program, 0, 0);
        assert_eq!(kinds(client.out()), "BESBEBEBES", "all are prepared now");
    }

    #[test]
    fn a_sync_alone_commits_nothing() {
        let program = scripted(
            "\\startpipeline\nselect 1;\n\\syncpipeline\n\\endpipeline",
            Protocol::Prepared,
        );
        let mut client = client(&program);
        client.begin(&program, 0, 0);
        let done = client.feed(&program, &[SELECTED, READY, READY].concat()).unwrap();
        assert_eq!(
            (done, client.server_commits()),
            (Progress::Done(Outcome::Committed), 1)
        );
        client.begin(&program, 0, 0);
        // An empty statement is a transaction all the same; a prepared one is not committed yet.
        let empty = [b"I\0\0\0\x04", READY, READY].concat();
        client.feed(&program, &empty).unwrap();
        assert_eq!(client.server_commits(), 2);
        client.begin(&program, 0, 0);
        let prepared = [b"C\0\0\0\x18PREPARE TRANSACTION\0", READY, READY].concat();
        client.feed(&program, &prepared).unwrap();
        assert_eq!(client.server_commits(), 2);
    }

    #[test]
    fn copy_is_no_part_of_a_script() {
        let program = scripted("copy t from stdin;", Protocol::Simple);
        let mut client = client(&program);
        client.begin(&program, 0, 0);
        let Progress::Halt(halt) = client.feed(&program, b"G\0\0\0\x07\0\0\0").unwrap() else {
            panic!("a halt")
        };
        assert_eq!(
            halt.0,
            "test.sql: the server began a COPY from or to the client, which a load does not do"
        );
    }

    #[test]
    fn rows_become_variables_and_a_failed_statement_is_prepared_again() {
        let program = scripted(
            "select 5 as n, 'x' as t \\gset p_\nselect :p_n, :p_t;",
            Protocol::Prepared,
        );
        let mut client = client(&program);
        client.begin(&program, 0, 0);
        assert_eq!(kinds(client.out()), "CPBDES");
        let failed = client.feed(&program, &[ERROR, READY].concat()).unwrap();
        assert!(matches!(failed, Progress::Done(Outcome::Failed(_))));
        client.begin(&program, 0, 0);
        assert_eq!(kinds(client.out()), "CPBDES");
        let columns = [b"T\0\0\0\x2e\0\x02n\0".as_slice(), &[0; 18], b"t\0", &[0; 18]].concat();
        let row = b"D\0\0\0\x10\0\x02\0\0\0\x015\0\0\0\x01x";
        let reply = [&columns[..], row, SELECTED, READY].concat();
        for cut in 0..reply.len() {
            let mut client = Client::new(&program, Stream::new(1, 1, Purpose::Transactions), 0, None, None);
            client.begin(&program, 0, 0);
            client.feed(&program, &reply[..cut]).unwrap();
            assert_eq!(
                client.feed(&program, &reply[cut..]).unwrap(),
                Progress::Send,
                "{cut}"
            );
            assert!(client.out().windows(10).any(|w| w == b"\0\0\0\x015\0\0\0\x01x"));
        }
        let no_row = [&columns[..], SELECTED, READY].concat();
        let Progress::Halt(halt) = client.feed(&program, &no_row).unwrap() else {
            panic!("no row")
        };
        assert_eq!(halt.0, "test.sql:1: \\gset wants one row, not 0");
    }
}
