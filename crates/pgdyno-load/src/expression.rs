//! Expressions that a transaction evaluates, compiled.

use crate::value::Value;

/// Why a transaction cannot go on: what is wrong, in words. Where is added by whoever knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble(pub(crate) String);

impl Trouble {
    pub(crate) fn new(words: impl Into<String>) -> Trouble {
        Trouble(words.into())
    }
}

/// A variable, by its number.
pub(crate) type Variable = u16;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Constant(Value),
    Variable(Variable),
    Call(Function, Box<[Expr]>),
    And(Box<[Expr; 2]>),
    Or(Box<[Expr; 2]>),
    /// Pairs of a condition and a result, then what holds otherwise.
    Case(Box<[(Expr, Expr)]>, Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
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
pub(crate) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Whether a byte may be in the name of a variable.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}
