//! Round trips of a client with a server made up, byte by byte.

use super::*;
use crate::message::{Part, Statement, Type, kinds};
use crate::program::{Capture, Op, Program, Routine};
use crate::protocol::Protocol;
use crate::random::Purpose;

const READY: &[u8] = b"Z\0\0\0\x05I";
const READY_INSIDE: &[u8] = b"Z\0\0\0\x05T";
const READY_BROKEN: &[u8] = b"Z\0\0\0\x05E";
const ERROR: &[u8] = b"E\0\0\0\x0cC40001\0\0";
const SELECTED: &[u8] = b"C\0\0\0\x0dSELECT 1\0";
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

/// A program of one transaction in the making.
struct Making {
    program: Program,
    routine: Routine,
}

impl Making {
    fn of(protocol: Protocol, by_user: bool) -> Making {
        let mut program = Program::new(protocol, by_user);
        program.outline.kinds.push("test.sql".into());
        let routine = Routine::default();
        Making { program, routine }
    }

    /// A user's transaction.
    fn script(protocol: Protocol) -> Making {
        Making::of(protocol, true)
    }

    fn op(mut self, op: Op) -> Making {
        self.routine.push(1, op);
        self
    }

    fn put(mut self, parts: Vec<Part>, capture: Option<Capture>) -> Making {
        let by_user = self.program.outline.by_user;
        let statement = Statement {
            parts,
            described: capture.is_some(),
            binary: !by_user,
        };
        let number = self.program.name_statement(0, &statement.sql());
        let say = self.program.say(&statement, number, by_user, capture);
        self.op(Op::Say(say))
    }

    /// A statement in the request at hand.
    fn say(self, sql: &str) -> Making {
        self.put(vec![Part::Sql(sql.into())], None)
    }

    /// A statement and the wait for its reply, where it is in no pipeline.
    fn trip(self, sql: &str) -> Making {
        self.say(sql).op(Op::Trip)
    }

    /// A statement whose one row becomes variables.
    fn row(self, sql: &str, prefix: &str) -> Making {
        let capture = Capture {
            word: "\\gset",
            prefix: prefix.into(),
            single: true,
        };
        self.put(vec![Part::Sql(sql.into())], Some(capture)).op(Op::Trip)
    }

    /// A statement of nothing but variables.
    fn variables(mut self, names: &[&str]) -> Making {
        let part =
            |name: &&str| Part::Variable(self.program.variable(name), Type::Unknown, format!(":{name}"));
        let parts = names.iter().map(part).collect();
        self.put(parts, None).op(Op::Trip)
    }

    fn done(self) -> Program {
        let Making { mut program, routine } = self.op(Op::End);
        program.add(routine, 1);
        program
    }
}

fn client(program: &Program) -> Client<'_> {
    Client::new(program, Stream::new(1, 1, Purpose::Transactions), 0, None, None)
}

#[test]
fn a_transaction_goes_from_trip_to_trip_to_its_end() {
    let program = [
        "BEGIN",
        "UPDATE a SET b = 1",
        "SELECT 1",
        "INSERT INTO a VALUES (1)",
        "COMMIT",
    ]
    .into_iter()
    .fold(Making::of(Protocol::Prepared, false), Making::trip)
    .done();
    let mut client = client(&program);
    client.begin(5, 7);
    for _ in 0..4 {
        assert_eq!(client.feed(&READY_INSIDE[..3]).unwrap(), Progress::Wait);
        assert_eq!(client.feed(&READY_INSIDE[3..]).unwrap(), Progress::Send);
    }
    let done = client.feed(&[COMMITTED, READY].concat()).unwrap();
    assert_eq!(done, Progress::Done(Outcome::Committed));
    assert_eq!(client.server_commits(), 1);
    assert!(client.is_idle());
    let lost = client.feed(READY).unwrap_err();
    assert!(lost.reason.contains("while Idle"), "{}", lost.reason);
}

#[test]
fn a_failed_one_is_rolled_back_and_counted_with_its_code() {
    let program = Making::of(Protocol::Prepared, false)
        .say("BEGIN")
        .say("UPDATE a SET b = 1")
        .trip("COMMIT")
        .done();
    let mut client = client(&program);
    client.begin(0, 0);
    let reply = [ERROR, READY_BROKEN].concat();
    assert_eq!(client.feed(&reply).unwrap(), Progress::Send);
    assert_eq!(client.out(), ROLLBACK);
    let failed = Progress::Done(Outcome::Failed(SqlState::from_bytes(b"40001")));
    let rolled_back = [b"C\0\0\0\x0dROLLBACK\0", READY].concat();
    assert_eq!(client.feed(&rolled_back).unwrap(), failed);
    // Without a transaction around it there is nothing to roll back.
    client.begin(0, 0);
    assert_eq!(client.feed(&[ERROR, READY].concat()).unwrap(), failed);
    assert_eq!(client.server_commits(), 0);
}

#[test]
fn what_the_server_commits_is_counted() {
    let program = Making::script(Protocol::Prepared)
        .op(Op::StartPipeline)
        .trip("select 1")
        .op(Op::SyncPipeline)
        .trip("begin")
        .trip("commit")
        .trip("select 2")
        .op(Op::EndPipeline)
        .trip("select 3")
        .done();
    let mut client = client(&program);
    assert_eq!(client.begin(0, 0), Progress::Send);
    assert_eq!(kinds(client.out()), "CPBESCPBECPBECPBES");
    let reply = [SELECTED, READY].concat();
    assert_eq!(client.feed(&reply).unwrap(), Progress::Wait);
    let reply = [SELECTED, COMMITTED, SELECTED, READY].concat();
    assert_eq!(client.feed(&reply).unwrap(), Progress::Send);
    // A commit, and what followed it in the pipeline.
    assert_eq!(client.server_commits(), 3);
    assert_eq!(kinds(client.out()), "CPBES");
    let reply = [SELECTED, READY].concat();
    assert_eq!(client.feed(&reply).unwrap(), Progress::Done(Outcome::Committed));
    client.begin(0, 0);
    assert_eq!(kinds(client.out()), "BESBEBEBES", "all are prepared now");
}

#[test]
fn a_sync_alone_commits_nothing() {
    let program = Making::script(Protocol::Prepared)
        .op(Op::StartPipeline)
        .trip("select 1")
        .op(Op::SyncPipeline)
        .op(Op::EndPipeline)
        .done();
    let mut client = client(&program);
    client.begin(0, 0);
    let done = client.feed(&[SELECTED, READY, READY].concat()).unwrap();
    assert_eq!(
        (done, client.server_commits()),
        (Progress::Done(Outcome::Committed), 1)
    );
    client.begin(0, 0);
    // An empty statement is a transaction all the same; a prepared one is not committed yet.
    let empty = [b"I\0\0\0\x04", READY, READY].concat();
    client.feed(&empty).unwrap();
    assert_eq!(client.server_commits(), 2);
    client.begin(0, 0);
    let prepared = [b"C\0\0\0\x18PREPARE TRANSACTION\0", READY, READY].concat();
    client.feed(&prepared).unwrap();
    assert_eq!(client.server_commits(), 2);
}

#[test]
fn copy_is_no_part_of_a_script() {
    let program = Making::script(Protocol::Simple).trip("copy t from stdin").done();
    let mut client = client(&program);
    client.begin(0, 0);
    let Progress::Halt(halt) = client.feed(b"G\0\0\0\x07\0\0\0").unwrap() else {
        panic!("a halt")
    };
    assert_eq!(
        halt.0,
        "test.sql: the server began a COPY from or to the client, which a load does not do"
    );
}

#[test]
fn rows_become_variables_and_a_failed_statement_is_prepared_again() {
    let program = Making::script(Protocol::Prepared)
        .row("select 5 as n, 'x' as t", "p_")
        .variables(&["p_n", "p_t"])
        .done();
    let mut client = client(&program);
    client.begin(0, 0);
    assert_eq!(kinds(client.out()), "CPBDES");
    let failed = client.feed(&[ERROR, READY].concat()).unwrap();
    assert!(matches!(failed, Progress::Done(Outcome::Failed(_))));
    client.begin(0, 0);
    assert_eq!(kinds(client.out()), "CPBDES");
    let columns = [b"T\0\0\0\x2e\0\x02n\0".as_slice(), &[0; 18], b"t\0", &[0; 18]].concat();
    let row = b"D\0\0\0\x10\0\x02\0\0\0\x015\0\0\0\x01x";
    let reply = [&columns[..], row, SELECTED, READY].concat();
    for cut in 0..reply.len() {
        let mut client = Client::new(&program, Stream::new(1, 1, Purpose::Transactions), 0, None, None);
        client.begin(0, 0);
        client.feed(&reply[..cut]).unwrap();
        assert_eq!(client.feed(&reply[cut..]).unwrap(), Progress::Send, "{cut}");
        assert!(client.out().windows(10).any(|w| w == b"\0\0\0\x015\0\0\0\x01x"));
    }
    let no_row = [&columns[..], SELECTED, READY].concat();
    let Progress::Halt(halt) = client.feed(&no_row).unwrap() else {
        panic!("no row")
    };
    assert_eq!(halt.0, "test.sql:1: \\gset expects one row, not 0");
}

#[test]
fn a_column_of_gset_that_is_no_variable_ends_the_client() {
    let program = Making::script(Protocol::Simple)
        .row("select 5", "")
        .trip("select 6")
        .done();
    for name in ["?column?", "bad name!", "a-b"] {
        let mut client = client(&program);
        client.begin(0, 0);
        let mut columns = vec![b'T'];
        let length = u32::try_from(4 + 2 + name.len() + 1 + 18).unwrap();
        columns.extend(length.to_be_bytes());
        columns.extend([0, 1]);
        columns.extend(name.as_bytes());
        columns.extend([0; 19]);
        let reply = [&columns[..], b"D\0\0\0\x0b\0\x01\0\0\0\x015", SELECTED, READY].concat();
        let Progress::Halt(halt) = client.feed(&reply).unwrap() else {
            panic!("{name}")
        };
        let expected =
            format!("test.sql:1: the column \"{name}\" of \\gset is not a name of a variable: name it by AS");
        assert_eq!(halt.0, expected);
    }
}
