//! Commands as a shell takes them, to be repeated or followed.

use crate::target;
use pgdyno_server::may_hold_password;
use std::ffi::OsString;

/// The command as it was given. A connection string may hold a password, and so may a store's: of
/// targets only a sandbox is named, and what looks like a password is not.
pub(crate) fn repeated(arguments: impl Iterator<Item = OsString>, target: &str) -> String {
    const NOT_SHOWN: &str = "\"...\"";
    let arguments = arguments.map(|argument| {
        let argument = argument.to_string_lossy().into_owned();
        let option = argument
            .split_once('=')
            .filter(|(name, _)| name.starts_with("--"));
        match option {
            Some((name, value)) if may_hold_password(value) => format!("{name}={NOT_SHOWN}"),
            Some(_) => shell_word(&argument),
            None if argument == target && target::sandbox_named(target).is_none() => NOT_SHOWN.to_owned(),
            None if may_hold_password(&argument) => NOT_SHOWN.to_owned(),
            None => shell_word(&argument),
        }
    });
    let words: Vec<String> = std::iter::once("pgdyno".to_owned()).chain(arguments).collect();
    words.join(" ")
}

/// As a shell takes it for one word.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@,+%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_repeated_without_what_may_be_a_password() {
        let check = |arguments: &[&str], target: &str, expected: &str| {
            let given = arguments.iter().map(OsString::from);
            assert_eq!(repeated(given, target), expected);
        };
        let load = ["bench", "sandbox:x", "-w", "tpcb", "-D", "a b=it's", "--store"];
        check(
            &load,
            "sandbox:x",
            "pgdyno bench sandbox:x -w tpcb -D 'a b=it'\\''s' --store",
        );
        let url = "postgres://joe:hunter2@host/db";
        check(&["bench", url, "--store"], url, "pgdyno bench \"...\" --store");
        check(
            &["bench", "host=h user=joe"],
            "host=h user=joe",
            "pgdyno bench \"...\"",
        );
        let store = format!("--store={url}");
        check(
            &["bench", "sandbox:x", &store],
            "sandbox:x",
            "pgdyno bench sandbox:x --store=\"...\"",
        );
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(shell_word("sandbox:main"), "sandbox:main");
        assert_eq!(shell_word("host=db user=postgres"), "'host=db user=postgres'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
