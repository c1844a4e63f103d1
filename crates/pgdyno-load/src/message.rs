//! Requests: what a transaction sends, laid out once; per transaction only the values are put in.
//!
//! Message layouts: PostgreSQL documentation, "Message Formats" (protocol 3.0).

use crate::workload::{Control, Protocol, Statement, Values, Variable, Workload};
use std::ops::Range;

/// Type number of int4 in pg_type.
const INT4_OID: u32 = 23;
const BINARY: u16 = 1;
/// The request_bytes_max four-byte integer as text: "-2147483648".
const INT4_TEXT_MAX: usize = 11;

const SYNC: &[u8] = b"S\0\0\0\x04";
/// Execute the unnamed portal to its end.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
/// Says good-bye.
pub(crate) const TERMINATE: &[u8] = b"X\0\0\0\x04";
/// Ends a failed transaction, as a simple query.
pub(crate) const ROLLBACK: &[u8] = b"Q\0\0\0\x0dROLLBACK\0";

/// A piece of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Bytes of the program that are the same each time.
    Fixed(Range<usize>),
    /// A variable as four bytes, big-endian.
    Binary(Variable),
    /// A variable as decimal text.
    Text(Variable),
    /// The length of a message stands here and counts from here.
    Begin,
    /// The message ends here.
    End,
}

/// The transactions of a load, ready to be sent: shared by all clients.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    fixed: Vec<u8>,
    /// What is sent in one go, up to a Sync or a simple query.
    trips: Vec<Vec<Piece>>,
    prepare: Option<Vec<u8>>,
    request_bytes_max: usize,
    /// Transactions of the server in one of the load.
    pub(crate) commits: u32,
}

impl Program {
    pub(crate) fn new(workload: Workload, protocol: Protocol, control: Control) -> Program {
        let mut statements = workload.statements();
        let commits = match control {
            Control::None => u32::try_from(statements.len()).unwrap_or(u32::MAX),
            Control::Explicit | Control::Pipelined => 1,
        };
        if control != Control::None {
            statements.insert(0, Statement::new("BEGIN", &[]));
            statements.push(Statement::new("COMMIT", &[]));
        }
        let mut program = Program {
            fixed: Vec::new(),
            trips: Vec::new(),
            prepare: (protocol == Protocol::Prepared).then(|| prepare(&statements)),
            request_bytes_max: ROLLBACK.len(),
            commits,
        };
        let mut trip = Vec::new();
        for (number, statement) in statements.iter().enumerate() {
            match protocol {
                Protocol::Simple => program.query(&mut trip, statement),
                Protocol::Extended | Protocol::Prepared => {
                    program.bind(&mut trip, statement, number, protocol == Protocol::Prepared);
                }
            }
            if control != Control::Pipelined || number + 1 == statements.len() {
                if protocol != Protocol::Simple {
                    program.fix(&mut trip, SYNC);
                }
                program.trips.push(std::mem::take(&mut trip));
            }
        }
        let request_bytes_max = program.trips.iter().map(|trip| length_of(trip)).max();
        program.request_bytes_max = program.request_bytes_max.max(request_bytes_max.unwrap_or(0));
        program
    }

    fn fix(&mut self, trip: &mut Vec<Piece>, bytes: &[u8]) {
        let start = self.fixed.len();
        self.fixed.extend_from_slice(bytes);
        if let Some(Piece::Fixed(range)) = trip.last_mut()
            && range.end == start
        {
            range.end = self.fixed.len();
        } else {
            trip.push(Piece::Fixed(start..self.fixed.len()));
        }
    }

    /// A simple query; values stand in its text.
    fn query(&mut self, trip: &mut Vec<Piece>, statement: &Statement) {
        // In one round trip, BEGIN to COMMIT are one message of several statements.
        let goes_on = trip.last() == Some(&Piece::End);
        if goes_on {
            trip.pop();
            // Over the zero that ended it.
            if let Some(Piece::Fixed(range)) = trip.last_mut() {
                range.end -= 1;
            }
            self.fix(trip, b";");
        } else {
            self.fix(trip, b"Q");
            trip.push(Piece::Begin);
        }
        let mut rest = statement.sql;
        while let Some(at) = rest.find('$') {
            self.fix(trip, &rest.as_bytes()[..at]);
            let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let number: usize = rest[at + 1..=at + digits].parse().unwrap_or(1);
            trip.push(Piece::Text(statement.parameters[number - 1]));
            rest = &rest[at + 1 + digits..];
        }
        self.fix(trip, rest.as_bytes());
        self.fix(trip, b"\0");
        trip.push(Piece::End);
    }

    /// Bind and Execute of a prepared statement, or with Parse before them.
    fn bind(&mut self, trip: &mut Vec<Piece>, statement: &Statement, number: usize, prepared: bool) {
        let name = if prepared {
            statement_name(number)
        } else {
            self.fix(trip, &parse("", statement));
            String::new()
        };
        // All values have one width, so that the length is known.
        let length = 4 + 1 + name.len() + 1 + 2 + 2 + 2 + 8 * statement.parameters.len() + 2 + 2;
        self.fix(trip, b"B");
        self.fix(trip, &u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        self.fix(trip, b"\0"); // the unnamed portal
        self.fix(trip, name.as_bytes());
        self.fix(trip, b"\0");
        for part in [1, BINARY, count(statement.parameters.len())] {
            self.fix(trip, &part.to_be_bytes());
        }
        for &variable in &statement.parameters {
            self.fix(trip, &4_u32.to_be_bytes());
            trip.push(Piece::Binary(variable));
        }
        for part in [1, BINARY] {
            self.fix(trip, &part.to_be_bytes());
        }
        self.fix(trip, EXECUTE);
    }

    /// How many round trips a transaction takes.
    pub(crate) fn trips(&self) -> usize {
        self.trips.len()
    }

    /// No request is longer than this.
    pub(crate) fn request_bytes_max(&self) -> usize {
        self.request_bytes_max
    }

    /// What a new connection sends to be ready; ends with a Sync.
    pub(crate) fn prepare(&self) -> Option<&[u8]> {
        self.prepare.as_deref()
    }

    /// Puts the request of a round trip into `out`, which keeps its memory.
    pub(crate) fn encode(&self, trip: usize, values: &Values, out: &mut Vec<u8>) {
        out.clear();
        let mut begin = 0;
        for piece in &self.trips[trip] {
            match piece {
                Piece::Fixed(range) => out.extend_from_slice(&self.fixed[range.clone()]),
                Piece::Binary(variable) => {
                    out.extend_from_slice(&values[*variable as usize].to_be_bytes());
                }
                Piece::Text(variable) => push_decimal(out, values[*variable as usize]),
                Piece::Begin => {
                    begin = out.len();
                    out.extend_from_slice(&[0; 4]);
                }
                Piece::End => {
                    let length = u32::try_from(out.len() - begin).unwrap_or(u32::MAX);
                    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
                }
            }
        }
    }
}

fn length_of(trip: &[Piece]) -> usize {
    let length = |piece: &Piece| match piece {
        Piece::Fixed(range) => range.len(),
        Piece::Binary(_) | Piece::Begin => 4,
        Piece::Text(_) => INT4_TEXT_MAX,
        Piece::End => 0,
    };
    trip.iter().map(length).sum()
}

fn push_decimal(out: &mut Vec<u8>, value: i32) {
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = [0_u8; INT4_TEXT_MAX];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn count(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

fn statement_name(number: usize) -> String {
    format!("s{number}")
}

fn parse(name: &str, statement: &Statement) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(name.as_bytes());
    body.push(0);
    body.extend_from_slice(statement.sql.as_bytes());
    body.push(0);
    body.extend_from_slice(&count(statement.parameters.len()).to_be_bytes());
    for _ in &statement.parameters {
        body.extend_from_slice(&INT4_OID.to_be_bytes());
    }
    let mut bytes = vec![b'P'];
    bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Parse for every statement, and one Sync.
fn prepare(statements: &[Statement]) -> Vec<u8> {
    let mut bytes: Vec<u8> = statements
        .iter()
        .enumerate()
        .flat_map(|(number, statement)| parse(&statement_name(number), statement))
        .collect();
    bytes.extend_from_slice(SYNC);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks over the messages: type, length, and nothing left over.
    fn kinds(mut bytes: &[u8]) -> String {
        let mut kinds = String::new();
        while let Some((&kind, rest)) = bytes.split_first() {
            kinds.push(char::from(kind));
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            bytes = &rest[length..];
        }
        kinds
    }

    fn trips(workload: Workload, protocol: Protocol, control: Control) -> Vec<Vec<u8>> {
        let program = Program::new(workload, protocol, control);
        let values = [i32::MIN, i32::MIN, i32::MIN, i32::MIN];
        (0..program.trips())
            .map(|trip| {
                let mut out = Vec::with_capacity(program.request_bytes_max());
                program.encode(trip, &values, &mut out);
                assert!(out.len() <= program.request_bytes_max());
                out
            })
            .collect()
    }

    #[test]
    fn requests_are_whole_messages_in_the_order_of_the_protocol() {
        let check = |protocol, control, expected: &[&str]| {
            let found: Vec<String> = trips(Workload::SimpleUpdate, protocol, control)
                .iter()
                .map(|trip| kinds(trip))
                .collect();
            assert_eq!(found, expected, "{protocol:?} {control:?}");
        };
        check(Protocol::Prepared, Control::Explicit, &["BES"; 5]);
        check(Protocol::Prepared, Control::None, &["BES"; 3]);
        check(Protocol::Prepared, Control::Pipelined, &["BEBEBEBEBES"]);
        check(Protocol::Extended, Control::None, &["PBES"; 3]);
        check(Protocol::Simple, Control::Explicit, &["Q"; 5]);
        check(Protocol::Simple, Control::Pipelined, &["Q"]);
        assert_eq!(kinds(ROLLBACK), "Q");
        assert_eq!(kinds(TERMINATE), "X");
        for workload in Workload::ALL {
            let program = Program::new(workload, Protocol::Prepared, Control::Explicit);
            let statements = workload.statements().len() + 2;
            assert_eq!(kinds(program.prepare().unwrap()), "P".repeat(statements) + "S");
        }
    }

    #[test]
    fn values_stand_where_the_statement_wants_them() {
        let program = Program::new(Workload::Tpcb, Protocol::Prepared, Control::Explicit);
        let values = [0x0102_0304, 5, 6, -7];
        let mut out = Vec::new();
        program.encode(1, &values, &mut out);
        let at = |needle: &[u8]| out.windows(needle.len()).position(|w| w == needle);
        let delta = at(&(-7_i32).to_be_bytes()).unwrap();
        assert_eq!(at(&[1, 2, 3, 4]).unwrap(), delta + 8, "delta, a length, then aid");

        let program = Program::new(Workload::Write, Protocol::Simple, Control::Pipelined);
        program.encode(0, &[17, 0, 0, -2_147_483_648], &mut out);
        let expected =
            "BEGIN;UPDATE pgbench_accounts SET abalance = abalance + -2147483648 WHERE aid = 17;COMMIT";
        assert_eq!(&out[5..], [expected.as_bytes(), b"\0"].concat());
    }

    #[test]
    fn what_the_server_counts_per_transaction_is_known() {
        let commits = |control| Program::new(Workload::Tpcb, Protocol::Prepared, control).commits;
        assert_eq!(
            [Control::None, Control::Explicit, Control::Pipelined].map(commits),
            [5, 1, 1]
        );
    }
}
