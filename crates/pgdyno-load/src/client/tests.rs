//! Round trips of a client with a server made up, byte by byte.

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

#[test]
fn a_column_of_gset_that_is_no_variable_ends_the_client() {
    let program = scripted("select 5 \\gset\nselect 6;", Protocol::Simple);
    for name in ["?column?", "bad name!", "a-b"] {
        let mut client = client(&program);
        client.begin(&program, 0, 0);
        let mut columns = vec![b'T'];
        let length = u32::try_from(4 + 2 + name.len() + 1 + 18).unwrap();
        columns.extend(length.to_be_bytes());
        columns.extend([0, 1]);
        columns.extend(name.as_bytes());
        columns.extend([0; 19]);
        let reply = [&columns[..], b"D\0\0\0\x0b\0\x01\0\0\0\x015", SELECTED, READY].concat();
        let Progress::Halt(halt) = client.feed(&program, &reply).unwrap() else {
            panic!("{name}")
        };
        let expected =
            format!("test.sql:1: the column \"{name}\" of \\gset is no name of a variable: name it by AS");
        assert_eq!(halt.0, expected);
    }
}
