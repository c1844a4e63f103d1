//! A sheet on which facts are noted while files are read, and the few forms that the kernel's files
//! have.

use crate::access::{HostAccess, HostError};
use crate::choices::chosen;
use crate::fact::Fact;
use crate::list::numbers_of_list;
use serde_json::{Map, Value};

/// Longest text taken over from a file into a fact; files of the kernel that hold one value are far
/// shorter.
const TEXT_MAX: usize = 4096;

/// Facts so far, and the host they are read from.
pub(super) struct Sheet<'h> {
    pub(super) host: &'h dyn HostAccess,
    pub(super) facts: Vec<Fact>,
}

impl<'h> Sheet<'h> {
    pub(super) fn new(host: &'h dyn HostAccess) -> Sheet<'h> {
        let facts = Vec::new();
        Sheet { host, facts }
    }

    /// A value or the reason why there is none.
    pub(super) fn note<V: Into<Value>>(&mut self, name: &str, source: &str, outcome: Result<V, String>) {
        self.facts.push(Fact::new(name, source, outcome));
    }

    /// A file with one value, which is a number where it looks like one.
    pub(super) fn value(&mut self, name: &str, path: &str) {
        let outcome = self.text_of(path).and_then(|text| match scalar(&text) {
            Value::String(text) if is_long_number(&text) => Err(expected(path, "a number of 64 bits", &text)),
            value => Ok(value),
        });
        self.note(name, path, outcome);
    }

    /// A file with one number, which is not negative.
    pub(super) fn number(&mut self, name: &str, path: &str) {
        let outcome = self.number_of(path);
        self.note(name, path, outcome);
    }

    /// A file with a text.
    pub(super) fn text(&mut self, name: &str, path: &str) {
        let outcome = self.text_of(path);
        self.note(name, path, outcome);
    }

    /// A file with a choice in brackets: the one that is chosen.
    pub(super) fn chosen(&mut self, name: &str, path: &str) {
        let outcome = self.choice_of(path);
        self.note(name, path, outcome);
    }

    pub(super) fn choice_of(&self, path: &str) -> Result<String, String> {
        let text = self.text_of(path)?;
        match chosen(&text) {
            None | Some("") => Err(expected(path, "a choice in brackets", &text)),
            Some(choice) => Ok(choice.to_owned()),
        }
    }

    /// A file with a list of CPUs or nodes, such as "0-3,8"; an empty one is none of them.
    pub(super) fn list_of(&self, path: &str) -> Result<String, String> {
        let list = self.host.read_trimmed(path).map_err(why)?;
        match count_of_list(&list) {
            Some(0) => Ok("none".to_owned()),
            Some(_) => Ok(list),
            None => Err(expected(path, "a list of numbers", &list)),
        }
    }

    pub(super) fn text_of(&self, path: &str) -> Result<String, String> {
        text_of(self.host, path)
    }

    /// The whole of a file, however long.
    pub(super) fn text_of_long(&self, path: &str) -> Result<String, String> {
        self.host.read(path).map_err(why)
    }

    pub(super) fn number_of(&self, path: &str) -> Result<u64, String> {
        number_of(self.host, path)
    }

    /// The numbers N of entries "prefixN" in a directory, in order.
    pub(super) fn numbered(&self, directory: &str, prefix: &str) -> Result<Vec<u32>, String> {
        let names = self.host.list(directory).map_err(why)?;
        let mut numbers: Vec<u32> = names
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// An error's message, with what would help.
pub(super) fn why(error: HostError) -> String {
    if error.is_refused() {
        format!("{error}; root may")
    } else {
        error.to_string()
    }
}

/// The content of a file without surrounding white space; an empty one is not a value.
pub(super) fn text_of(host: &dyn HostAccess, path: &str) -> Result<String, String> {
    let text = host.read_trimmed(path).map_err(why)?;
    match text.char_indices().nth(TEXT_MAX) {
        _ if text.is_empty() => Err(format!("{path} is empty")),
        Some(_) => Err(format!("{path} is longer than {TEXT_MAX} characters")),
        // Bytes that are no text were replaced when they were read.
        None if text.contains(|c: char| c == '\u{fffd}' || (c.is_control() && !c.is_ascii_whitespace())) => {
            Err(expected(path, "a text", &text))
        }
        None => Ok(text),
    }
}

/// A file with one number.
pub(super) fn number_of(host: &dyn HostAccess, path: &str) -> Result<u64, String> {
    let text = text_of(host, path)?;
    text.parse().map_err(|_| {
        let what = match text.parse::<i64>() {
            Ok(_) => "a number that is not negative",
            Err(_) => "a number",
        };
        expected(path, what, &text)
    })
}

/// What should be in a file, and what is there.
pub(super) fn expected(path: &str, what: &str, found: &str) -> String {
    format!(
        "{path}: expected {what}, found \"{}\"",
        start_of(found).escape_debug()
    )
}

/// Digits that are too many for any number of the kernel's.
fn is_long_number(text: &str) -> bool {
    text.len() > 18 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// A number where it is one, several numbers as a list, true and false as such, else the text with
/// single blanks.
pub(super) fn scalar(text: &str) -> Value {
    if let Ok(truth) = text.parse::<bool>() {
        return truth.into();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbers: Option<Vec<Value>> = words.iter().map(|word| number(word)).collect();
    match numbers {
        Some(mut numbers) if numbers.len() == 1 => numbers.remove(0),
        Some(numbers) if !numbers.is_empty() => Value::Array(numbers),
        _ => Value::String(words.join(" ")),
    }
}

fn number(word: &str) -> Option<Value> {
    // A leading plus or zero is no way in which the kernel writes numbers.
    if word.starts_with('+') || (word.len() > 1 && word.starts_with('0')) {
        return None;
    }
    word.parse::<u64>()
        .map(Value::from)
        .or_else(|_| word.parse::<i64>().map(Value::from))
        .ok()
}

/// The beginning of a text, for an error.
pub(super) fn start_of(text: &str) -> String {
    text.chars().take(60).collect()
}

/// An object; what is not known of it is null.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields: Map<String, Value> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Value::Object(fields)
}

/// A part of an object, null where it could not be read.
pub(super) fn or_null<V: Into<Value>, E>(outcome: Result<V, E>) -> Value {
    outcome.map_or(Value::Null, Into::into)
}

/// The value of "key : value" in the lines of a text such as /proc/cpuinfo.
pub(super) fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// A line "Name:  123 kB" in bytes; a line without a unit as it is.
pub(super) fn bytes_of_line(text: &str, name: &str) -> Option<u64> {
    let mut words = field(text, name)?.split_whitespace();
    let value: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => value.checked_mul(1024),
        _ => Some(value),
    }
}

/// "32K", "32768K", "2M", "2MB", "1G": powers of 1024.
pub(super) fn bytes_of_size(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches('B');
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" => 1_u64 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// How many numbers a list such as "0-3,8-11" names; `None` if it is no such list.
pub(super) fn count_of_list(text: &str) -> Option<usize> {
    numbers_of_list(text).map(|numbers| numbers.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_kernels_forms() {
        assert_eq!(scalar("60"), json!(60));
        assert_eq!(scalar("-1"), json!(-1));
        assert_eq!(
            scalar("32000\t1024000000\t500\t32000"),
            json!([32000, 1024000000, 500, 32000])
        );
        assert_eq!(
            scalar("18446744073692774399"),
            json!(18_446_744_073_692_774_399_u64)
        );
        assert_eq!(scalar("cubic"), json!("cubic"));
        assert_eq!(scalar("0-3"), json!("0-3"));
        assert_eq!(scalar("007"), json!("007"));
        assert_eq!(scalar("false"), json!(false));
        assert_eq!(bytes_of_size("32768K"), Some(32 << 20));
        assert_eq!(bytes_of_size("1GB"), Some(1 << 30));
        assert_eq!(bytes_of_size("many"), None);
        assert_eq!(
            bytes_of_line("MemTotal:  12 kB\nHugePages_Total: 3\n", "HugePages_Total"),
            Some(3)
        );
        assert_eq!(bytes_of_line("MemTotal:  12 kB", "MemTotal"), Some(12 * 1024));
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "\\PC{0,100}", size in "[0-9]{0,25}[KMGTB]{0,2}") {
            let _ = (scalar(&text), bytes_of_size(&text), bytes_of_size(&size), bytes_of_line(&text, "a"));
        }
    }
}
