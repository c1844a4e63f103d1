//! Values of a transaction's variables and expressions.

use std::io::Write as _;

/// Why a transaction cannot go on: the reason as text; the caller adds the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble(pub String);

impl Trouble {
    /// Trouble with that reason.
    pub fn new(reason: impl Into<String>) -> Trouble {
        Trouble(reason.into())
    }
}

/// A value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// No value, as of NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer of eight bytes.
    Int(i64),
    /// A number of double precision.
    Double(f64),
}

impl Value {
    /// Kind of the value as text: "an integer".
    pub fn kind(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Double(_) => "a double",
        }
    }

    /// As a condition: null and zero are false.
    pub fn is_true(self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(truth) => truth,
            Value::Int(number) => number != 0,
            Value::Double(number) => number != 0.0,
        }
    }

    /// Appends it as a statement has it.
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(number) => push_decimal(out, number),
            Value::Double(number) => push_double(out, number),
        }
    }
}

/// Digits of an integer of eight bytes, and its sign.
const DECIMAL_BYTES: usize = 20;

fn push_decimal(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = [0_u8; DECIMAL_BYTES];
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

/// Digits of a double that are the same on every machine, as C's DBL_DIG.
const DOUBLE_DIGITS: i32 = 15;

/// As C's `%.15g`: the shorter of the two notations, without zeros at the end.
fn push_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() || value.is_infinite() {
        let text: &[u8] = match (value.is_nan(), value > 0.0) {
            (true, _) => b"nan",
            (_, true) => b"inf",
            (_, false) => b"-inf",
        };
        out.extend_from_slice(text);
        return;
    }
    let start = out.len();
    // Rounding to the digits may raise the exponent, so it is read from what was rounded.
    let _ = write!(out, "{value:.*e}", (DOUBLE_DIGITS - 1).unsigned_abs() as usize);
    let exponent_at = out[start..].iter().position(|&byte| byte == b'e').unwrap_or(0) + start;
    let exponent: i32 = std::str::from_utf8(&out[exponent_at + 1..])
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    if (-4..DOUBLE_DIGITS).contains(&exponent) {
        out.truncate(start);
        let decimals = usize::try_from(DOUBLE_DIGITS - 1 - exponent).unwrap_or(0);
        let _ = write!(out, "{value:.decimals$}");
        trim_zeros(out, start);
    } else {
        out.truncate(exponent_at);
        trim_zeros(out, start);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    }
}

fn trim_zeros(out: &mut Vec<u8>, start: usize) {
    if out[start..].contains(&b'.') {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
}

/// The content of a variable.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Held {
    Nothing,
    Value(Value),
    /// Text that came from outside; it becomes a value when an expression needs one.
    Text,
}

/// A variable of a client; its text keeps its memory.
#[derive(Debug)]
pub struct Slot {
    held: Held,
    text: Vec<u8>,
}

impl Clone for Slot {
    fn clone(&self) -> Slot {
        Slot {
            held: self.held,
            text: self.text.clone(),
        }
    }

    /// Into the memory that is there.
    fn clone_from(&mut self, source: &Slot) {
        self.held = source.held;
        if self.held == Held::Text {
            self.text.clone_from(&source.text);
        }
    }
}

impl Slot {
    /// A slot that was never set.
    pub const EMPTY: Slot = Slot {
        held: Held::Nothing,
        text: Vec::new(),
    };

    /// A slot that holds a text.
    pub fn of_text(text: &str) -> Slot {
        Slot {
            held: Held::Text,
            text: text.as_bytes().to_vec(),
        }
    }

    /// Takes a value.
    pub fn set(&mut self, value: Value) {
        self.held = Held::Value(value);
    }

    /// Takes a text: what `fill` appends.
    pub fn set_text(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        fill(&mut self.text);
        self.held = Held::Text;
    }

    /// Whether it holds a value or a text.
    pub fn is_set(&self) -> bool {
        self.held != Held::Nothing
    }

    /// Whether it has no text: never set, or null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.held, Held::Nothing | Held::Value(Value::Null))
    }

    /// The integer that it holds; 0 if it is none.
    pub(crate) fn int(&self) -> i64 {
        match self.held {
            Held::Value(Value::Int(number)) => number,
            _ => 0,
        }
    }

    /// Appends the value as a statement has it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self.held {
            Held::Nothing => {}
            Held::Value(value) => value.write(out),
            Held::Text => out.extend_from_slice(&self.text),
        }
    }

    /// Its value for an expression. Text is read as pgbench reads it: null, a boolean (`true`,
    /// `yes`, `on`, `false`, `no`, `off`, or the start of one), an integer, a double.
    pub fn value(&self, name: &str) -> Result<Value, Trouble> {
        match self.held {
            Held::Value(value) => Ok(value),
            Held::Nothing => Err(Trouble::new(format!("the variable \"{name}\" is not set"))),
            Held::Text => value_of_text(&self.text).ok_or_else(|| {
                Trouble::new(format!(
                    "the variable \"{name}\" holds no value of an expression: \"{}\"",
                    String::from_utf8_lossy(&self.text)
                ))
            }),
        }
    }
}

fn value_of_text(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?.trim_start();
    if text.is_empty() {
        return None;
    }
    let word = text.as_bytes();
    let starts = |whole: &str| {
        whole
            .as_bytes()
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    if word.eq_ignore_ascii_case(b"null") {
        return Some(Value::Null);
    }
    // "o" alone could be on or off.
    if starts("true") || starts("yes") || word.eq_ignore_ascii_case(b"on") {
        return Some(Value::Bool(true));
    }
    if starts("false") || starts("no") || (word.len() >= 2 && starts("off")) {
        return Some(Value::Bool(false));
    }
    let number = text.trim_end();
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse().ok().map(Value::Int);
    }
    text.parse().ok().map(Value::Double)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_look_as_c_prints_them() {
        let text = |value: f64| {
            let mut out = Vec::new();
            Value::Double(value).write(&mut out);
            String::from_utf8(out).unwrap()
        };
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (1e15, "1e+15"),
            (999_999_999_999_999.0, "999999999999999"),
            (999_999_999_999_999.9, "1e+15"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (std::f64::consts::PI, "3.14159265358979"),
            (-1.5e300, "-1.5e+300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn text_becomes_a_value_when_one_is_wanted() {
        for (text, expected) in [
            ("NULL", Some(Value::Null)),
            ("y", Some(Value::Bool(true))),
            ("on", Some(Value::Bool(true))),
            ("of", Some(Value::Bool(false))),
            ("o", None),
            ("-17", Some(Value::Int(-17))),
            ("9223372036854775808", None),
            ("1e3", Some(Value::Double(1000.0))),
            ("", None),
            ("abc", None),
        ] {
            assert_eq!(Slot::of_text(text).value("x").ok(), expected, "{text}");
        }
        assert!(Slot::EMPTY.value("x").is_err());
    }

    #[test]
    fn integers_of_any_size_are_written() {
        for number in [0, 7, -1, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
