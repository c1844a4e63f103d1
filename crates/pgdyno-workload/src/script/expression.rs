//! The expression language of pgbench's meta commands (PostgreSQL documentation, pgbench, "Built-in
//! Operators" and "Built-in Functions"): how it is read. What it yields is the engine's
//! (`evaluate.rs`).

use pgdyno_engine::expression::{Expr, Function, Variable, is_name_byte, is_name_start};
use pgdyno_engine::value::Value;

/// Name, function, fewest and most arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("abs", Function::Abs, 1, 1),
    ("debug", Function::Debug, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("hash", Function::HashMurmur2, 1, 2),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2),
    ("hash_murmur2", Function::HashMurmur2, 1, 2),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Modulo, 2, 2),
    ("permute", Function::Permute, 2, 3),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Pow, 2, 2),
    ("power", Function::Pow, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// Nesting beyond this is refused: the parser and the evaluation go down with it.
const DEPTH_MAX: u32 = 100;
/// A chain of operators goes as deep as it is long.
const OPERATORS_MAX: u32 = 1000;

/// What is wrong in a text, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) at: usize,
    pub(crate) message: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Int(i64),
    /// 9223372036854775808, which is only good behind a minus.
    IntMaxPlusOne,
    Double(f64),
    Variable(String),
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn text(&self) -> String {
        match self {
            Token::Int(number) => format!("{number}"),
            Token::IntMaxPlusOne => "9223372036854775808".into(),
            Token::Double(number) => format!("{number}"),
            Token::Variable(name) => format!(":{name}"),
            Token::Word(word) => word.clone(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::End => "the end of the expression".into(),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(it) if it.eq_ignore_ascii_case(word))
    }
}

/// Longer ones first.
const SYMBOLS: [&str; 21] = [
    "<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "|", "&", "#", "~", "(", ")",
    ",",
];

/// Reads an expression; `variable` gives the number of a variable by its name.
pub(crate) fn parse(text: &str, variable: &mut dyn FnMut(&str) -> Variable) -> Result<Expr, Wrong> {
    let mut parser = Parser {
        text,
        at: 0,
        token: Token::End,
        token_at: 0,
        depth: 0,
        operators: 0,
        variable,
    };
    parser.advance()?;
    let expr = parser.binary(0)?;
    match parser.token {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected("an operator or the end of the expression")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    token: Token,
    token_at: usize,
    depth: u32,
    operators: u32,
    variable: &'a mut dyn FnMut(&str) -> Variable,
}

/// Precedences, weakest first; as in pgbench's grammar.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const UNARY: u8 = 9;

impl Parser<'_> {
    fn unexpected(&self, expected: &str) -> Wrong {
        Wrong {
            at: self.token_at,
            message: format!("unexpected {}; expected {expected}", self.token.text()),
        }
    }

    fn advance(&mut self) -> Result<Token, Wrong> {
        let next = self.read()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn read(&mut self) -> Result<Token, Wrong> {
        let bytes = self.text.as_bytes();
        // A backslash at the end of a line continues it.
        loop {
            match bytes.get(self.at) {
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                Some(b'\\') if bytes[self.at + 1..].starts_with(b"\n") => self.at += 2,
                Some(b'\\') if bytes[self.at + 1..].starts_with(b"\r\n") => self.at += 3,
                _ => break,
            }
        }
        let start = self.at;
        self.token_at = start;
        let Some(&first) = bytes.get(start) else {
            return Ok(Token::End);
        };
        let run = |from: usize, of: fn(u8) -> bool| {
            from + bytes[from..].iter().take_while(|&&byte| of(byte)).count()
        };
        if first == b':' {
            self.at = run(start + 1, is_name_byte);
            if self.at == start + 1 {
                return Err(self.wrong_here("expected the name of a variable behind the colon"));
            }
            return Ok(Token::Variable(self.text[start + 1..self.at].to_owned()));
        }
        if is_name_start(first) {
            self.at = run(start, is_name_byte);
            return Ok(Token::Word(self.text[start..self.at].to_owned()));
        }
        if first.is_ascii_digit() || (first == b'.' && bytes.get(start + 1).is_some_and(u8::is_ascii_digit)) {
            self.at = number_end(bytes, start);
            let number = &self.text[start..self.at];
            if number.bytes().all(|byte| byte.is_ascii_digit()) {
                return match number.parse() {
                    Ok(number) => Ok(Token::Int(number)),
                    Err(_) if number == "9223372036854775808" => Ok(Token::IntMaxPlusOne),
                    Err(_) => Err(self.wrong_here("the integer does not fit eight bytes")),
                };
            }
            let number = number.parse().ok().filter(|number: &f64| number.is_finite());
            return number
                .map(Token::Double)
                .ok_or_else(|| self.wrong_here("the number is not a double"));
        }
        for symbol in SYMBOLS {
            if bytes[start..].starts_with(symbol.as_bytes()) {
                self.at = start + symbol.len();
                return Ok(Token::Symbol(symbol));
            }
        }
        let character = self.text[start..].chars().next().unwrap_or(' ');
        Err(self.wrong_here(&format!(
            "the character {character:?} has no place in an expression"
        )))
    }

    fn wrong_here(&self, message: &str) -> Wrong {
        Wrong {
            at: self.token_at,
            message: message.to_owned(),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong_here(&format!("the expression is nested deeper than {DEPTH_MAX}")));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Operators that bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Result<Expr, Wrong> {
        self.deeper(|this| this.binary_here(least))
    }

    fn binary_here(&mut self, least: u8) -> Result<Expr, Wrong> {
        let mut left = self.unary()?;
        // Comparisons do not chain, nor do tests.
        let mut most = UNARY;
        loop {
            let Some(strength) = self.operator_strength().filter(|s| *s >= least && *s <= most) else {
                return Ok(left);
            };
            self.operators += 1;
            if self.operators > OPERATORS_MAX {
                return Err(
                    self.wrong_here(&format!("the expression has more than {OPERATORS_MAX} operators"))
                );
            }
            let operator = self.advance()?;
            left = match &operator {
                Token::Word(word) => {
                    let word = word.to_ascii_lowercase();
                    match word.as_str() {
                        "or" => Expr::Or(Box::new([left, self.binary(OR + 1)?])),
                        "and" => Expr::And(Box::new([left, self.binary(AND + 1)?])),
                        "isnull" => call(Function::Is, [left, Expr::Constant(Value::Null)]),
                        "notnull" => not(call(Function::Is, [left, Expr::Constant(Value::Null)])),
                        _ => self.is(left)?,
                    }
                }
                Token::Symbol(symbol) => {
                    let right = self.binary(strength + 1)?;
                    match *symbol {
                        ">" => call(Function::Less, [right, left]),
                        ">=" => call(Function::LessOrEqual, [right, left]),
                        symbol => call(function_of(symbol), [left, right]),
                    }
                }
                _ => return Err(self.unexpected("an operator")),
            };
            if matches!(strength, COMPARE | IS) {
                most = strength - 1;
            }
        }
    }

    fn operator_strength(&self) -> Option<u8> {
        match &self.token {
            Token::Word(word) => match word.to_ascii_lowercase().as_str() {
                "or" => Some(OR),
                "and" => Some(AND),
                "is" | "isnull" | "notnull" => Some(IS),
                _ => None,
            },
            Token::Symbol(symbol) => match *symbol {
                "<" | ">" | "=" | "<>" | "!=" | "<=" | ">=" => Some(COMPARE),
                "|" | "#" | "&" | "<<" | ">>" => Some(BITS),
                "+" | "-" => Some(SUM),
                "*" | "/" | "%" => Some(PRODUCT),
                _ => None,
            },
            _ => None,
        }
    }

    /// Behind `IS`: an optional `NOT`, then `NULL`, `TRUE` or `FALSE`.
    fn is(&mut self, left: Expr) -> Result<Expr, Wrong> {
        let negated = self.token.is_word("not");
        if negated {
            self.advance()?;
        }
        let value = match &self.token {
            word if word.is_word("null") => Value::Null,
            word if word.is_word("true") => Value::Bool(true),
            word if word.is_word("false") => Value::Bool(false),
            _ => return Err(self.unexpected("NULL, TRUE or FALSE")),
        };
        self.advance()?;
        let is = call(Function::Is, [left, Expr::Constant(value)]);
        Ok(if negated { not(is) } else { is })
    }

    fn unary(&mut self) -> Result<Expr, Wrong> {
        let at = self.token_at;
        match self.advance()? {
            Token::Int(number) => Ok(Expr::Constant(Value::Int(number))),
            Token::Double(number) => Ok(Expr::Constant(Value::Double(number))),
            Token::Variable(name) => Ok(Expr::Variable((self.variable)(&name))),
            Token::Symbol("+") => self.binary(UNARY),
            Token::Symbol("-") if self.token == Token::IntMaxPlusOne => {
                self.advance()?;
                Ok(Expr::Constant(Value::Int(i64::MIN)))
            }
            Token::Symbol("-") => {
                let zero = Expr::Constant(Value::Int(0));
                Ok(call(Function::Subtract, [zero, self.binary(UNARY)?]))
            }
            Token::Symbol("~") => {
                let ones = Expr::Constant(Value::Int(-1));
                Ok(call(Function::BitXor, [ones, self.binary(BITS + 1)?]))
            }
            Token::Symbol("(") => {
                let inner = self.binary(0)?;
                self.close()?;
                Ok(inner)
            }
            Token::Word(word) => self.word(at, &word),
            token => Err(Wrong {
                at,
                message: format!(
                    "unexpected {}; expected a number, a variable, a function or \"(\"",
                    token.text()
                ),
            }),
        }
    }

    fn close(&mut self) -> Result<(), Wrong> {
        if self.token != Token::Symbol(")") {
            return Err(self.unexpected("\")\""));
        }
        self.advance().map(drop)
    }

    fn word(&mut self, at: usize, word: &str) -> Result<Expr, Wrong> {
        match word.to_ascii_lowercase().as_str() {
            "null" => Ok(Expr::Constant(Value::Null)),
            "true" => Ok(Expr::Constant(Value::Bool(true))),
            "false" => Ok(Expr::Constant(Value::Bool(false))),
            "not" => Ok(not(self.binary(NOT)?)),
            "case" => self.case(),
            name => self.function(at, name),
        }
    }

    fn case(&mut self) -> Result<Expr, Wrong> {
        let mut pairs = Vec::new();
        while self.token.is_word("when") {
            self.advance()?;
            let condition = self.binary(0)?;
            if !self.token.is_word("then") {
                return Err(self.unexpected("THEN"));
            }
            self.advance()?;
            pairs.push((condition, self.binary(0)?));
        }
        if pairs.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = if self.token.is_word("else") {
            self.advance()?;
            self.binary(0)?
        } else {
            Expr::Constant(Value::Null)
        };
        if !self.token.is_word("end") {
            return Err(self.unexpected("WHEN, ELSE or END"));
        }
        self.advance()?;
        Ok(Expr::Case(pairs.into_boxed_slice(), Box::new(otherwise)))
    }

    fn function(&mut self, at: usize, name: &str) -> Result<Expr, Wrong> {
        if self.token != Token::Symbol("(") {
            return Err(self.unexpected(&format!("\"(\" behind the function name {name}")));
        }
        let Some(&(_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).collect();
            return Err(Wrong {
                at,
                message: format!("there is no function {name}; there are {}", names.join(", ")),
            });
        };
        self.advance()?;
        let mut arguments = Vec::new();
        while self.token != Token::Symbol(")") {
            if !arguments.is_empty() {
                if self.token != Token::Symbol(",") {
                    return Err(self.unexpected("\",\" or \")\""));
                }
                self.advance()?;
            }
            arguments.push(self.binary(0)?);
        }
        self.close()?;
        if !(least..=most).contains(&arguments.len()) {
            let wanted = match (least, most) {
                (least, most) if least == most => format!("{least}"),
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) => format!("{least} or {most}"),
            };
            return Err(Wrong {
                at,
                message: format!("{name} takes {wanted} arguments, not {}", arguments.len()),
            });
        }
        let takes_a_seed = matches!(
            function,
            Function::HashFnv1a | Function::HashMurmur2 | Function::Permute
        );
        if takes_a_seed && arguments.len() < most {
            arguments.push(Expr::Variable((self.variable)("default_seed")));
        }
        Ok(Expr::Call(function, arguments.into_boxed_slice()))
    }
}

/// The end of a number: digits, a fraction, an exponent.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let digits = |from: usize| {
        from + bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut end = digits(start);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digits(signed) > signed {
            end = digits(signed);
        }
    }
    end
}

fn function_of(symbol: &str) -> Function {
    match symbol {
        "+" => Function::Add,
        "-" => Function::Subtract,
        "*" => Function::Multiply,
        "/" => Function::Divide,
        "%" => Function::Modulo,
        "&" => Function::BitAnd,
        "|" => Function::BitOr,
        "#" => Function::BitXor,
        "<<" => Function::ShiftLeft,
        ">>" => Function::ShiftRight,
        "=" => Function::Equal,
        "<" => Function::Less,
        "<=" => Function::LessOrEqual,
        _ => Function::NotEqual,
    }
}

fn call<const N: usize>(function: Function, arguments: [Expr; N]) -> Expr {
    Expr::Call(function, Box::new(arguments))
}

fn not(expr: Expr) -> Expr {
    call(Function::Not, [expr])
}

#[cfg(test)]
mod tests;
