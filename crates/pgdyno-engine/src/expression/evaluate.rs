//! What an expression yields (PostgreSQL documentation, pgbench, "Built-in Operators" and "Built-in
//! Functions"); nothing is allocated but for `debug` and for errors.

use super::functions;
use crate::expression::{Expr, Function};
use crate::random::Stream;
use crate::value::{Slot, Trouble, Value};
use std::cmp::Ordering;

/// What an expression is evaluated with.
pub struct Scene<'a> {
    /// The variables, by their numbers.
    pub slots: &'a [Slot],
    /// Names of the variables, by their numbers.
    pub names: &'a [String],
    /// Stream that random functions draw from.
    pub stream: &'a mut Stream,
    /// Values that `debug` was called with, as text.
    pub notes: &'a mut Vec<String>,
}

/// More notes of one client than this are not kept.
const NOTES_MAX: usize = 100;

impl Expr {
    /// What it yields.
    ///
    /// # Errors
    ///
    /// It yields nothing: a variable is not set, a value does not fit, or an argument has no place.
    pub fn evaluate(&self, scene: &mut Scene<'_>) -> Result<Value, Trouble> {
        match self {
            Expr::Constant(value) => Ok(*value),
            Expr::Variable(number) => {
                let at = usize::from(*number);
                scene.slots[at].value(&scene.names[at])
            }
            // As pgbench has it, and not SQL: the first null decides.
            Expr::And(sides) => lazily(sides, false, scene),
            Expr::Or(sides) => lazily(sides, true, scene),
            Expr::Case(pairs, otherwise) => {
                for (condition, result) in pairs {
                    if condition.evaluate(scene)?.is_true() {
                        return result.evaluate(scene);
                    }
                }
                otherwise.evaluate(scene)
            }
            Expr::Call(function, arguments) => evaluate_call(*function, arguments, scene),
        }
    }
}

fn boolean(value: Value) -> Result<Option<bool>, Trouble> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(truth) => Ok(Some(truth)),
        value => Err(wrong_kind(value, "a boolean")),
    }
}

/// The left side, where it decides or is null; else the right one.
fn lazily(sides: &[Expr; 2], decides: bool, scene: &mut Scene<'_>) -> Result<Value, Trouble> {
    let value = |truth: Option<bool>| truth.map_or(Value::Null, Value::Bool);
    match boolean(sides[0].evaluate(scene)?)? {
        Some(truth) if truth != decides => Ok(value(boolean(sides[1].evaluate(scene)?)?)),
        decided => Ok(value(decided)),
    }
}

fn wrong_kind(value: Value, wanted: &str) -> Trouble {
    Trouble::new(format!("{} cannot be taken as {wanted}", value.kind()))
}

fn int(value: Value) -> Result<i64, Trouble> {
    match value {
        Value::Int(number) => Ok(number),
        Value::Double(number) => {
            let rounded = number.round_ties_even();
            // 2^63 itself does not fit.
            #[expect(clippy::cast_possible_truncation, reason = "inside the range")]
            if rounded >= -(2_f64.powi(63)) && rounded < 2_f64.powi(63) {
                Ok(rounded as i64)
            } else {
                Err(Trouble::new(format!(
                    "the double {number} does not fit an integer"
                )))
            }
        }
        value => Err(wrong_kind(value, "an integer")),
    }
}

fn double(value: Value) -> Result<f64, Trouble> {
    match value {
        Value::Double(number) => Ok(number),
        #[expect(clippy::cast_precision_loss, reason = "what the language says")]
        Value::Int(number) => Ok(number as f64),
        value => Err(wrong_kind(value, "a double")),
    }
}

fn evaluate_call(function: Function, arguments: &[Expr], scene: &mut Scene<'_>) -> Result<Value, Trouble> {
    // No function but these takes more than three.
    if matches!(function, Function::Greatest | Function::Least) {
        return extreme(function == Function::Greatest, arguments, scene);
    }
    let mut values = [Value::Null; 3];
    let mut any_null = false;
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = argument.evaluate(scene)?;
        any_null |= *value == Value::Null;
    }
    let [a, b, c] = values;
    match function {
        Function::Is => return Ok(Value::Bool(a == b)),
        Function::Debug => {
            if scene.notes.len() < NOTES_MAX {
                let mut text = Vec::new();
                a.write(&mut text);
                let text = String::from_utf8_lossy(&text);
                scene.notes.push(match a {
                    Value::Null => text.into_owned(),
                    a => format!(
                        "{} {text}",
                        a.kind().trim_start_matches("an ").trim_start_matches("a ")
                    ),
                });
            }
            return Ok(a);
        }
        _ if any_null => return Ok(Value::Null),
        _ => {}
    }
    match function {
        Function::Add
        | Function::Subtract
        | Function::Multiply
        | Function::Divide
        | Function::Equal
        | Function::NotEqual
        | Function::Less
        | Function::LessOrEqual => match (a, b) {
            (Value::Double(_), _) | (_, Value::Double(_)) => Ok(of_doubles(function, double(a)?, double(b)?)),
            _ => of_ints(function, int(a)?, int(b)?),
        },
        Function::Modulo
        | Function::BitAnd
        | Function::BitOr
        | Function::BitXor
        | Function::ShiftLeft
        | Function::ShiftRight => of_ints(function, int(a)?, int(b)?),
        Function::Not => match boolean(a)? {
            Some(truth) => Ok(Value::Bool(!truth)),
            None => Ok(Value::Null),
        },
        Function::Abs => match a {
            Value::Double(number) => Ok(Value::Double(number.abs())),
            a => int(a)?
                .checked_abs()
                .map(Value::Int)
                .ok_or_else(|| out_of_range("abs")),
        },
        Function::Double => double(a).map(Value::Double),
        Function::Int => int(a).map(Value::Int),
        Function::Sqrt => Ok(Value::Double(double(a)?.sqrt())),
        Function::Ln => Ok(Value::Double(double(a)?.ln())),
        Function::Exp => Ok(Value::Double(double(a)?.exp())),
        Function::Pi => Ok(Value::Double(std::f64::consts::PI)),
        Function::Pow => Ok(Value::Double(double(a)?.powf(double(b)?))),
        Function::HashFnv1a => Ok(Value::Int(functions::hash_fnv1a(int(a)?, int(b)?))),
        Function::HashMurmur2 => Ok(Value::Int(functions::hash_murmur2(int(a)?, int(b)?))),
        Function::Permute => {
            let (value, size, seed) = (int(a)?, int(b)?, int(c)?);
            if size <= 0 {
                return Err(Trouble::new(format!(
                    "the size of permute must be greater than zero, not {size}"
                )));
            }
            Ok(Value::Int(functions::permute(value, size, seed)))
        }
        Function::Random
        | Function::RandomExponential
        | Function::RandomGaussian
        | Function::RandomZipfian => random(function, int(a)?, int(b)?, c, scene.stream),
        Function::Is | Function::Debug | Function::Greatest | Function::Least => Ok(a),
    }
}

/// The largest or smallest of all; a double if any of them is one, null if any is null.
fn extreme(greatest: bool, arguments: &[Expr], scene: &mut Scene<'_>) -> Result<Value, Trouble> {
    let mut best: Option<Value> = None;
    let mut any_null = false;
    let mut any_double = false;
    for argument in arguments {
        let value = argument.evaluate(scene)?;
        any_null |= value == Value::Null;
        if any_null {
            continue;
        }
        any_double |= matches!(value, Value::Double(_));
        let better = match (best, value) {
            (None, _) => true,
            (Some(Value::Int(best)), Value::Int(value)) => {
                value.cmp(&best)
                    == if greatest {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
            }
            (Some(best), value) => {
                let (value, best) = (double(value)?, double(best)?);
                if greatest { value > best } else { value < best }
            }
        };
        if better {
            best = Some(value);
        }
    }
    match best {
        _ if any_null => Ok(Value::Null),
        Some(value) if any_double => double(value).map(Value::Double),
        Some(value) => int(value).map(Value::Int),
        None => Ok(Value::Null),
    }
}

fn out_of_range(what: &str) -> Trouble {
    Trouble::new(format!("the result of {what} does not fit an integer"))
}

fn of_ints(function: Function, a: i64, b: i64) -> Result<Value, Trouble> {
    let checked = |what: &str, result: Option<i64>| result.map(Value::Int).ok_or_else(|| out_of_range(what));
    let divisor = || match b {
        0 => Err(Trouble::new("division by zero")),
        b => Ok(b),
    };
    // As C shifts on every machine of today.
    let places = (b & 63).unsigned_abs() as u32;
    match function {
        Function::Add => checked("+", a.checked_add(b)),
        Function::Subtract => checked("-", a.checked_sub(b)),
        Function::Multiply => checked("*", a.checked_mul(b)),
        Function::Divide => checked("/", a.checked_div(divisor()?)),
        Function::Modulo => Ok(Value::Int(a.wrapping_rem(divisor()?))),
        Function::BitAnd => Ok(Value::Int(a & b)),
        Function::BitOr => Ok(Value::Int(a | b)),
        Function::BitXor => Ok(Value::Int(a ^ b)),
        Function::ShiftLeft => Ok(Value::Int(a.wrapping_shl(places))),
        Function::ShiftRight => Ok(Value::Int(a.wrapping_shr(places))),
        Function::Equal => Ok(Value::Bool(a == b)),
        Function::NotEqual => Ok(Value::Bool(a != b)),
        Function::Less => Ok(Value::Bool(a < b)),
        _ => Ok(Value::Bool(a <= b)),
    }
}

#[expect(clippy::float_cmp, reason = "what the language says")]
fn of_doubles(function: Function, a: f64, b: f64) -> Value {
    match function {
        Function::Add => Value::Double(a + b),
        Function::Subtract => Value::Double(a - b),
        Function::Multiply => Value::Double(a * b),
        Function::Divide => Value::Double(a / b),
        Function::Equal => Value::Bool(a == b),
        Function::NotEqual => Value::Bool(a != b),
        Function::Less => Value::Bool(a < b),
        _ => Value::Bool(a <= b),
    }
}

/// Bounds of the parameters (source: PostgreSQL documentation, pgbench, "Built-in Functions").
const GAUSSIAN_LEAST: f64 = 2.0;
const ZIPFIAN_LEAST: f64 = 1.001;
const ZIPFIAN_MOST: f64 = 1000.0;

fn random(
    function: Function,
    low: i64,
    high: i64,
    parameter: Value,
    stream: &mut Stream,
) -> Result<Value, Trouble> {
    if low > high {
        return Err(Trouble::new(format!(
            "the range of random is empty: {low} to {high}"
        )));
    }
    if high
        .checked_sub(low)
        .and_then(|length| length.checked_add(1))
        .is_none()
    {
        return Err(Trouble::new(format!(
            "the range of random is too large: {low} to {high}"
        )));
    }
    if function == Function::Random {
        return Ok(Value::Int(stream.between_i64(low, high)));
    }
    let parameter = double(parameter)?;
    let refused = |name: &str, bounds: &str| {
        Err(Trouble::new(format!(
            "the parameter of {name} must be {bounds}, not {parameter}"
        )))
    };
    Ok(Value::Int(match function {
        Function::RandomGaussian if parameter >= GAUSSIAN_LEAST => {
            functions::random_gaussian(stream, low, high, parameter)
        }
        Function::RandomGaussian => return refused("random_gaussian", "at least 2"),
        Function::RandomZipfian if (ZIPFIAN_LEAST..=ZIPFIAN_MOST).contains(&parameter) => {
            functions::random_zipfian(stream, low, high, parameter)
        }
        Function::RandomZipfian => return refused("random_zipfian", "1.001 to 1000"),
        _ if parameter > 0.0 => functions::random_exponential(stream, low, high, parameter),
        _ => return refused("random_exponential", "greater than zero"),
    }))
}
