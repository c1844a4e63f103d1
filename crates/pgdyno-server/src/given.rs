//! What a user named as a target or a store, shown without what may be a password.

use crate::libpq::is_known;
use std::borrow::Cow;
use std::fmt;

const SANDBOX_NAME_BYTES_MAX: usize = 40;
/// Longer texts are not repeated: no sandbox, role or usual path is longer.
const SHOWN_MAX: usize = 100;
/// Beginnings that are shown of a text that is otherwise hidden, so that the user recognises it.
const BEGINNINGS: [&str; 3] = ["postgresql", "postgres", "sandbox"];

/// Words of libpq whose values may have a colon: an address, settings, names that are free.
const WITH_COLONS: [&str; 5] = [
    "host",
    "hostaddr",
    "options",
    "application_name",
    "fallback_application_name",
];

/// A text from outside that was meant as a target or a store. Displays in quotation marks if it
/// cannot hold a password, else as its known beginning or not at all.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a>(pub &'a str);

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (is_plain(self.0), beginning(self.0)) {
            (true, _) => write!(f, "\"{}\"", self.0),
            (false, "") => f.write_str("the given text (not shown: it may hold a password)"),
            (false, known) => write!(
                f,
                "\"{known}\u{2026}\" (the rest is not shown: it may hold a password)"
            ),
        }
    }
}

/// The text itself if it cannot hold a password, else what is known of it, and an ellipsis.
pub fn without_secret(text: &str) -> String {
    match may_hold_password(text) || !is_plain(text) {
        true => format!("{}\u{2026}", beginning(text)),
        false => text.to_owned(),
    }
}

/// What others named or wrote as a part of one line of ours: its new lines and returns are shown as
/// `\n` and `\r`, so that none of its lines passes for one of ours.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\r']) {
        true => Cow::Owned(text.replace('\n', "\\n").replace('\r', "\\r")),
        false => Cow::Borrowed(text),
    }
}

/// Whether a text looks as if it held a password: `user:password@host` with any scheme or none,
/// `password=`, a port that is not a number, a sandbox with an impossible name. Mistyped connection
/// strings count, so it errs on the safe side.
pub fn may_hold_password(text: &str) -> bool {
    has_user_info(text) || names_password(text) || has_strange_port(text) || is_strange_sandbox(text)
}

/// Whether SQL seems to hold a password: a text behind the word, as in CREATE ROLE ... PASSWORD
/// '...' and OPTIONS (password '...').
pub fn sql_may_hold_password(sql: &str) -> bool {
    const WORD: &str = "password";
    let sql = sql.to_ascii_lowercase();
    let mut behind = sql
        .match_indices(WORD)
        .map(|(at, _)| sql[at + WORD.len()..].trim_start());
    behind.any(|behind| behind.starts_with('\'') || behind.starts_with("e'") || behind.starts_with('$'))
}

/// A word, a name or a path: nothing that separates a user from a password.
fn is_plain(text: &str) -> bool {
    let name = text.strip_prefix("sandbox:").unwrap_or(text);
    !name.is_empty()
        && name.chars().count() <= SHOWN_MAX
        && name.chars().all(|c| c.is_alphanumeric() || "_.-/~+".contains(c))
}

fn beginning(text: &str) -> &'static str {
    let lower = text.to_ascii_lowercase();
    let found = BEGINNINGS.iter().find(|known| lower.starts_with(**known));
    found.copied().unwrap_or_default()
}

/// A colon before the last `@`, or a slash behind `//`: a password with a slash. The colon of
/// `scheme://` is none.
fn has_user_info(text: &str) -> bool {
    let Some((before, _)) = text.rsplit_once('@') else {
        return false;
    };
    match before.split_once("//") {
        Some((scheme, rest)) => rest.contains([':', '/']) || scheme.trim_end_matches(':').contains(':'),
        None => before.contains(':'),
    }
}

/// `password=`, also mistyped and as other programs spell it, with blanks around the sign; and a
/// colon in a value of libpq's that has none, as `user=ann:password`.
fn names_password(text: &str) -> bool {
    named_values(text, |key, sign, value| {
        is_of_passwords(key) || sign == '=' && is_colon_in(key, value)
    })
}

/// Whether a command of the shell looks as if it held a password: what names one and is neither
/// taken from a variable nor a file, or a user with a password in an address.
pub fn command_may_hold_password(command: &str) -> bool {
    const QUOTES: [char; 3] = ['"', '\'', '`'];
    let by_name = named_values(command, |key, _, value| {
        let value = value.trim_start_matches(QUOTES);
        let is_given = !value.is_empty() && !value.starts_with('$');
        is_given && is_of_passwords(key) && !key.ends_with("file")
    });
    let words: Vec<&str> = command.split_whitespace().collect();
    let by_option = words.windows(2).any(|pair| {
        let name = pair[0]
            .strip_prefix("--")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_switch = name.starts_with("no-") || name.ends_with("file") || name.contains('=');
        is_of_passwords(&name) && !is_switch && !pair[1].starts_with(['-', '$'])
    });
    let by_address = command
        .split(|c: char| c.is_whitespace() || QUOTES.contains(&c))
        .any(|word| word.contains("//") && has_user_info(word) && !word.contains(":$"));
    by_name || by_option || by_address
}

fn is_of_passwords(key: &str) -> bool {
    key.starts_with("pas")
        || key.starts_with("pw")
        || ["passw", "secret", "scram_"]
            .iter()
            .any(|part| key.contains(part))
}

/// A colon in a value of libpq's that has none.
fn is_colon_in(key: &str, value: &str) -> bool {
    is_known(key) && !WITH_COLONS.contains(&key) && value.contains(':')
}

/// Whether something holds of a key before an equals sign or a colon, of the sign, and of the word
/// behind it, in lower case.
fn named_values(text: &str, holds: impl Fn(&str, char, &str) -> bool) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut signs = lower.char_indices().filter(|(_, c)| matches!(c, '=' | ':'));
    signs.any(|(at, sign)| {
        let before = lower[..at].trim_end();
        let key = before
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next();
        let key = key.unwrap_or_default();
        let value = lower[at + 1..].split_whitespace().next().unwrap_or_default();
        holds(key, sign, value)
    })
}

/// `//user:password` without an `@`: what follows the colon is not a port.
fn has_strange_port(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("//") else {
        return false;
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = authority.split(',').map(|host| match host.rsplit_once(']') {
        Some((_, port)) => port,
        None => host,
    });
    hosts
        .filter_map(|host| host.split_once(':'))
        .any(|(_, port)| !port.is_empty() && port.parse::<u16>().is_err())
}

fn is_strange_sandbox(text: &str) -> bool {
    text.strip_prefix("sandbox:")
        .is_some_and(|name| !is_sandbox_name(name))
}

/// Whether a text is a connection string or was most likely meant as one, so that it must not be
/// taken for the name of a file. A file that is called so is named as `./NAME`.
pub fn is_meant_as_server(text: &str) -> bool {
    if ["/", "./", "../", "~/"]
        .iter()
        .any(|start| text.starts_with(start))
        && !text.starts_with("//")
    {
        return false;
    }
    let key = text.split_once('=').map(|(key, _)| key.trim());
    let pairs = text.matches('=').count() > 1 && text.contains(char::is_whitespace);
    may_hold_password(text)
        || text.contains("//")
        || text.contains('@')
        || text.starts_with("sandbox:")
        || pairs
        || key.is_some_and(is_known)
}

/// Whether a sandbox may be called so.
pub fn is_sandbox_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= SANDBOX_NAME_BYTES_MAX
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn command_with_a_password_is_distinguished_from_one_without() {
        for command in [
            "PGPASSWORD=hunter2 psql",
            "sh -c 'PGPASSWORD=\"hunter2\" pg_ctlcluster 17 main restart'",
            "sysbench --pgsql-password=hunter2 run",
            "client --password hunter2 -h x",
            "pgbench postgres://u:hunter2@h/d",
            "curl -d secret=hunter2 http://h/",
            "psql 'host=h password = hunter2'",
            "host=h passwd='hunter2'",
        ] {
            assert!(command_may_hold_password(command), "{command}");
        }
        for command in [
            "systemctl restart postgresql@17-main",
            "PGPASSFILE=/root/.pgpass psql --passfile=/root/.pgpass",
            "psql --passfile /root/.pgpass --no-password bench",
            "PGPASSWORD=$PW psql; PGPASSWORD=\"$(cat /root/pw)\" psql",
            "pgbench postgres://{user}@{host}:{port}/{dbname}",
            "pgbench postgres://u:$PW@h:5432/d",
            "rsync -a x root@db:/y && ssh -p 22 root@db: ls",
            "psql --password -c 'SELECT 1'",
            "%t:%r:%u@%d:[%p]: ",
            "stress --cpu 2 # pass the time",
        ] {
            assert!(!command_may_hold_password(command), "{command}");
        }
    }

    /// Ways to mistype a target with a password, `hunter2` in each.
    const MISTYPED: [&str; 27] = [
        "postgres//u:hunter2@h",
        "postgress://u:hunter2@h/d",
        "postgre://u:hunter2@h/d",
        "postgresql:/u:hunter2@h/d",
        "postgres:u:hunter2@h",
        "postgres://u:hunter2",
        "postgres//u:hunter2/d",
        "POSTGRES://u:hunter2@h",
        "//u:hunter2@h/d",
        "u:hunter2@h",
        "u:hunter2@h:5432/d",
        ":hunter2@h",
        "jdbc:postgresql://h/d?user=u&password=hunter2",
        "mysql://u:hunter2@h/d",
        "sandbox:u:hunter2@h",
        "sandbox:hunter2 x",
        "sandbox: hunter2",
        "host=h pasword=hunter2",
        "host=h passwd = 'hunter2",
        "host=h PASSWORD='hunter2",
        "pwd=hunter2",
        "password: hunter2",
        "host:h user:u password:hunter2",
        "postgres://u:a@b:hunter2@h",
        "postgres://u/hunter2@h/d",
        "user=u:hunter2 host=h",
        "host=h sslmode=require:hunter2",
    ];

    #[test]
    fn a_mistyped_target_is_shown_without_its_password() {
        for text in MISTYPED {
            assert!(may_hold_password(text), "{text}");
            for shown in [Given(text).to_string(), without_secret(text)] {
                assert!(!shown.contains("hunter2"), "{shown}");
            }
        }
        assert_eq!(without_secret("postgress://u:hunter2@h"), "postgres\u{2026}");
    }

    #[test]
    fn a_mistyped_store_is_not_taken_for_a_file() {
        for text in MISTYPED {
            assert!(is_meant_as_server(text), "{text}");
        }
        for text in [
            "a.sqlite",
            "./host=x",
            "a=b",
            "/x/dbname=y",
            "/x/a@b",
            "nights 2026.sqlite",
            "a-b_c~1",
        ] {
            assert!(!is_meant_as_server(text), "{text}");
        }
    }

    #[test]
    fn names_and_paths_are_shown_whole() {
        for text in [
            "demo",
            "sandbox:main",
            "/var/lib/pgdyno/x.sqlite",
            "~/a-b_c.toml",
            "d\u{e9}mo",
        ] {
            assert_eq!(Given(text).to_string(), format!("\"{text}\""));
            assert!(!may_hold_password(text), "{text}");
        }
        for text in [
            "host=::1 user=u options=-c:x",
            "postgres://u@h:5432/d?sslmode=require",
            "3:memory",
            "load.measure_s=60",
        ] {
            assert!(!may_hold_password(text), "{text}");
        }
        assert!(
            !may_hold_password("postgres://u@[::1]:5432,b/d") && !may_hold_password("http://127.0.0.1:8080/")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), more in "[a-z:@/=\u{e9}\u{fc5}\\[\\]]{0,20}") {
            for text in [&text, &more] {
                let _ = (Given(text).to_string(), without_secret(text), is_meant_as_server(text));
            }
        }

        #[test]
        fn no_text_with_a_user_and_a_password_is_shown(
            scheme in "(|postgres|postgresql|pg|jdbc:postgresql)(|:|/|//|://)", user in "[a-z]{1,8}",
            host in "[a-z.]{0,8}(|:[0-9]{1,5})(|/[a-z]{1,5})",
        ) {
            let text = format!("{scheme}{user}:Q7secretQ7@{host}");
            prop_assert!(!Given(&text).to_string().contains("Q7"));
            prop_assert!(!without_secret(&text).contains("Q7"));
            // With one slash it is a path.
            prop_assert!(is_meant_as_server(&text) || !text.starts_with("//") && text.starts_with('/'));
        }
    }
}
