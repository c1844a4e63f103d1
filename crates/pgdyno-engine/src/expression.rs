//! Expressions that a transaction evaluates, compiled.

mod evaluate;
mod functions;

pub use evaluate::Scene;

use crate::value::Value;

/// A variable, by its number.
pub type Variable = u16;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// The same value each time.
    Constant(Value),
    /// The present value of a variable.
    Variable(Variable),
    /// An operator or a function with its arguments.
    Call(Function, Box<[Expr]>),
    /// The right side is evaluated where the left one is true.
    And(Box<[Expr; 2]>),
    /// The right side is evaluated where the left one is false.
    Or(Box<[Expr; 2]>),
    /// Pairs of a condition and a result, then what holds otherwise.
    Case(Box<[(Expr, Expr)]>, Box<Expr>),
}

/// An operator or a function of expressions (source: PostgreSQL documentation, pgbench).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says, as pgbench has it")]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Pow,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Whether the name of a variable may begin with a byte.
pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Whether a byte may be in the name of a variable.
pub fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}
