//! A command as words, and what is put into them. No shell takes part.

/// Longest command, in bytes: a script of a screen or two as one word.
pub(super) const COMMAND_BYTES_MAX: usize = 16 * 1024;

/// What is wrong with a command.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CommandError {
    /// A quote without its end.
    #[error("the command has a quote without its end")]
    Quote,
    /// Longer than it may be.
    #[error(
        "the command has {bytes} bytes, and may have {COMMAND_BYTES_MAX}; a long script goes into a file of its own"
    )]
    TooLong {
        /// Length of the command.
        bytes: usize,
    },
    /// The command has no word.
    #[error("the command is empty")]
    Empty,
    /// A byte that no program can be given.
    #[error("the command has a zero byte, which no argument can have")]
    Zero,
    /// A name in braces that is not a placeholder.
    #[error(
        "{{{name}}} in the command is unknown: known are {known}; for the braces themselves write {{{{{name}}}}}"
    )]
    Unknown {
        /// Name in the braces.
        name: String,
        /// Names of the placeholders, with commas.
        known: String,
    },
    /// In braces, and not known of this server.
    #[error("the command asks for {{{name}}}, and the way to the server does not name it")]
    Missing {
        /// Name in the braces.
        name: &'static str,
    },
}

/// Splits a command into words as a POSIX shell does: at blanks, with quotes and backslashes.
/// Nothing is expanded; for a shell write `sh -c '...'`.
///
/// # Errors
///
/// A quote without its end; an empty command; one that is too long or has a zero byte.
pub fn command_words(text: &str) -> Result<Vec<String>, CommandError> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(CommandError::TooLong { bytes: text.len() });
    }
    if text.contains('\0') {
        return Err(CommandError::Zero);
    }
    let words = shell_words::split(text).map_err(|_| CommandError::Quote)?;
    match words.is_empty() {
        true => Err(CommandError::Empty),
        false => Ok(words),
    }
}

/// What can be in braces, and what is put there; `None` where it is not known.
pub(super) type Values = [(&'static str, Option<String>)];

/// A seed as every program takes it: sysbench's is a positive number of 31 bits.
pub(super) fn seed_value(seed: u64) -> String {
    const MAX: u64 = i32::MAX as u64;
    ((seed.max(1) - 1) % MAX + 1).to_string()
}

/// Puts values into the words of a command. `{{name}}` means `{name}`; braces around anything but a
/// name are left alone.
pub(super) fn fill(words: &[String], values: &Values) -> Result<Vec<String>, CommandError> {
    if words.is_empty() {
        return Err(CommandError::Empty);
    }
    words.iter().map(|word| fill_word(word, values)).collect()
}

fn fill_word(word: &str, values: &Values) -> Result<String, CommandError> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        let (before, braced) = rest.split_at(start);
        filled.push_str(before);
        let doubled = braced.starts_with("{{");
        let inner = &braced[if doubled { 2 } else { 1 }..];
        let length = inner.find(|c: char| !is_of_a_name(c)).unwrap_or(inner.len());
        let (name, behind) = inner.split_at(length);
        let closing = if doubled { "}}" } else { "}" };
        match behind.strip_prefix(closing) {
            Some(behind) if !name.is_empty() => {
                match doubled {
                    true => filled.extend(["{", name, "}"]),
                    false => filled.push_str(value(name, values)?),
                }
                rest = behind;
            }
            // One brace is passed; what follows may still be a name in braces.
            _ => {
                filled.push('{');
                rest = &braced[1..];
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_lowercase() || c == '_'
}

fn value<'a>(name: &str, values: &'a Values) -> Result<&'a str, CommandError> {
    let known = values.iter().find(|(known, _)| *known == name);
    let (name, value) = known.ok_or_else(|| {
        let known: Vec<String> = values.iter().map(|(name, _)| format!("{{{name}}}")).collect();
        CommandError::Unknown {
            name: name.to_owned(),
            known: known.join(" "),
        }
    })?;
    value.as_deref().ok_or(CommandError::Missing { name })
}

/// Whether the program gets its warm-up as an argument, and so excludes it from its figures itself.
pub(super) fn warms_up_itself(words: &[String]) -> bool {
    has_placeholder(words, "warmup_s") || has_placeholder(words, "warmup_minutes")
}

/// Whether a value is put into any of the words.
pub(super) fn has_placeholder(words: &[String], name: &str) -> bool {
    let (braced, doubled) = (format!("{{{name}}}"), format!("{{{{{name}}}}}"));
    words
        .iter()
        .any(|word| word.contains(&braced) && !word.contains(&doubled))
}
