//! What an expression or a sentence may hold of the engine's language, and a check of each factor
//! of a product: the engine repeats a text or a list that is multiplied, up to gigabytes. Reads the
//! text and evaluates nothing.

use super::TEXT_MAX;

/// The filter that lets numbers pass; it is added behind each factor.
pub(super) const FACTOR: &str = "_factor";
/// Statements of a sentence. Others keep values (`set`), whose joins double with each line, or have
/// a syntax of their own.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// The text with its factors checked. Refused are slices, maps, powers, comments and statements
/// that it has no use for.
pub(super) fn guarded(text: &str, is_expression: bool) -> Result<String, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("longer than {TEXT_MAX} bytes"));
    }
    let mut checks = checks(text.as_bytes(), is_expression)?;
    checks.sort_unstable();
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for at in checks {
        out += &text[from..at];
        out += "|";
        out += FACTOR;
        out += " ";
        from = at;
    }
    Ok(out + &text[from..])
}

/// Where factors end. Reads what is outside of quotes, and of a sentence what is in braces.
fn checks(bytes: &[u8], is_expression: bool) -> Result<Vec<usize>, String> {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut ends = Vec::new();
    let mut in_tag = is_expression;
    let mut at = 0;
    while at < bytes.len() {
        let pair = (bytes[at], byte(at + 1));
        match pair {
            (b'{', b'{' | b'%') if !in_tag => {
                in_tag = true;
                at += 2;
                if pair.1 == b'%' {
                    at = statement(bytes, at)?;
                }
                continue;
            }
            (b'{', b'#') if !in_tag => return Err("\"{#\" has no meaning in it".into()),
            _ if !in_tag => {}
            (b'"' | b'\'', _) => {
                at = after_text(bytes, at);
                continue;
            }
            (b'}' | b'%', b'}') if !is_expression => {
                in_tag = false;
                at += 2;
                continue;
            }
            (b':', _) => return Err("\":\" has no meaning in it".into()),
            (b'{', _) => return Err("\"{\" has no meaning in it".into()),
            (b'*', b'*') => {
                return Err("\"**\" has no meaning in it; write the factors out".into());
            }
            (b'*', _) => ends.extend([at, operand_end(bytes, at + 1)]),
            (first, _) if is_letter(first) => {
                let end = after_word(bytes, at);
                if &bytes[at..end] == b"recursive" {
                    return Err("\"recursive\" has no meaning in it".into());
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(ends)
}

/// Behind a statement's word, where it is one of those that there are.
fn statement(bytes: &[u8], at: usize) -> Result<usize, String> {
    let signs = bytes[at..].iter().take_while(|byte| b"-+".contains(byte)).count();
    let begin = after_space(bytes, at + signs);
    let end = after_word(bytes, begin);
    let word = String::from_utf8_lossy(&bytes[begin..end]);
    match STATEMENTS.contains(&&*word) {
        true => Ok(end),
        false => Err(format!(
            "\"{word}\" is not a statement; there are if, elif, else and for"
        )),
    }
}

/// Where the operand that begins here ends: signs, a value, and what is taken of it. Of what is not
/// an operand, anywhere: the engine refuses it.
fn operand_end(bytes: &[u8], at: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut at = after_space(bytes, at);
    while b"-+".contains(&byte(at)) {
        at = after_space(bytes, at + 1);
    }
    at = match byte(at) {
        b'"' | b'\'' => after_text(bytes, at),
        b'(' | b'[' => after_bracket(bytes, at),
        b'0'..=b'9' => after_number(bytes, at),
        _ => after_word(bytes, at),
    };
    loop {
        let next = after_space(bytes, at);
        at = match byte(next) {
            b'.' | b'|' => after_word(bytes, after_space(bytes, next + 1)),
            b'(' | b'[' => after_bracket(bytes, next),
            _ => return at,
        };
    }
}

fn after_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Letters, digits, and all that is not ASCII.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn after_word(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| is_letter(**byte)).count()
}

/// 1, 1.5, 1e308, 1.5e-3, 1_000.
fn after_number(bytes: &[u8], at: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut at = after_word(bytes, at);
    if byte(at) == b'.' && byte(at + 1).is_ascii_digit() {
        at = after_word(bytes, at + 1);
    }
    if b"eE".contains(&byte(at.wrapping_sub(1))) && b"-+".contains(&byte(at)) {
        at = after_word(bytes, at + 1);
    }
    at
}

/// Behind the quote that ends the text which begins here.
fn after_text(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            byte if byte == bytes[begin] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Behind the bracket that ends what begins here with one.
fn after_bracket(bytes: &[u8], begin: usize) -> usize {
    let (mut at, mut depth) = (begin, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = after_text(bytes, at);
                continue;
            }
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}
