//! Requests: encoded once per client, patched in place per transaction.
//!
//! Message layouts: PostgreSQL documentation, "Message Formats" (protocol 3.0).

use crate::workload::{Statement, Variable};
use std::ops::Range;

/// Type number of int4 in pg_type.
const INT4_OID: u32 = 23;
const BINARY: u16 = 1;

/// The requests of one client's transaction, one after the other in one buffer.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    statements: Vec<Range<usize>>,
    /// Where each drawn value stands: (variable, offset).
    holes: Vec<(Variable, usize)>,
}

impl Requests {
    /// Bind, Execute and Sync for each statement.
    pub(crate) fn new(statements: &[Statement]) -> Requests {
        let mut requests = Requests {
            bytes: Vec::new(),
            statements: Vec::new(),
            holes: Vec::new(),
        };
        for (number, statement) in statements.iter().enumerate() {
            let start = requests.bytes.len();
            requests.bind(number, &statement.parameters);
            // Execute the unnamed portal to its end, then Sync.
            requests
                .bytes
                .extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
            requests.statements.push(start..requests.bytes.len());
        }
        requests
    }

    fn bind(&mut self, number: usize, parameters: &[Variable]) {
        let bytes = &mut self.bytes;
        bytes.push(b'B');
        let length_at = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.push(0); // the unnamed portal
        bytes.extend_from_slice(statement_name(number).as_bytes());
        bytes.push(0);
        for part in [1, BINARY, count(parameters.len())] {
            bytes.extend_from_slice(&part.to_be_bytes());
        }
        for &variable in parameters {
            bytes.extend_from_slice(&4_u32.to_be_bytes());
            self.holes.push((variable, bytes.len()));
            bytes.extend_from_slice(&[0; 4]);
        }
        for part in [1, BINARY] {
            bytes.extend_from_slice(&part.to_be_bytes());
        }
        let length = u32::try_from(bytes.len() - length_at).unwrap_or(u32::MAX);
        bytes[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Puts the values of the next transaction in.
    pub(crate) fn patch(&mut self, values: &[i32; Variable::COUNT]) {
        for &(variable, offset) in &self.holes {
            self.bytes[offset..offset + 4].copy_from_slice(&values[variable as usize].to_be_bytes());
        }
    }

    pub(crate) fn statement(&self, number: usize) -> &[u8] {
        &self.bytes[self.statements[number].clone()]
    }

    pub(crate) fn len(&self) -> usize {
        self.statements.len()
    }
}

fn count(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

pub(crate) fn statement_name(number: usize) -> String {
    format!("s{number}")
}

/// Parse for every statement, and one Sync.
pub(crate) fn prepare(statements: &[Statement]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, statement) in statements.iter().enumerate() {
        let mut body = Vec::new();
        body.extend_from_slice(statement_name(number).as_bytes());
        body.push(0);
        body.extend_from_slice(statement.sql.as_bytes());
        body.push(0);
        body.extend_from_slice(&count(statement.parameters.len()).to_be_bytes());
        for _ in &statement.parameters {
            body.extend_from_slice(&INT4_OID.to_be_bytes());
        }
        bytes.push(b'P');
        bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(&body);
    }
    bytes.extend_from_slice(SYNC);
    bytes
}

const SYNC: &[u8] = b"S\0\0\0\x04";
/// Says good-bye.
pub(crate) const TERMINATE: &[u8] = b"X\0\0\0\x04";
/// Ends a failed transaction, as a simple query.
pub(crate) const ROLLBACK: &[u8] = b"Q\0\0\0\x0dROLLBACK\0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

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

    #[test]
    fn requests_are_whole_messages() {
        for workload in Workload::ALL {
            let statements = workload.statements();
            let requests = Requests::new(&statements);
            assert_eq!(requests.len(), statements.len());
            for number in 0..requests.len() {
                assert_eq!(kinds(requests.statement(number)), "BES");
            }
            assert_eq!(kinds(&prepare(&statements)), "P".repeat(statements.len()) + "S");
        }
        assert_eq!(kinds(ROLLBACK), "Q");
        assert_eq!(kinds(TERMINATE), "X");
    }

    #[test]
    fn patching_puts_big_endian_values_where_the_variables_stand() {
        let mut requests = Requests::new(&Workload::Tpcb.statements());
        requests.patch(&[0x0102_0304, 5, 6, -7]);
        let update = requests.statement(1);
        let at = |needle: &[u8]| update.windows(needle.len()).position(|w| w == needle);
        let delta = at(&(-7_i32).to_be_bytes()).unwrap();
        assert_eq!(at(&[1, 2, 3, 4]).unwrap(), delta + 8, "delta, a length, then aid");
    }
}
