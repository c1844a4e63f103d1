//! The program and options that a server was started with, as it writes them down.

use pgdyno_host::Directory;
use std::io;
use std::path::Path;

/// The file in its data directory, and bytes of it.
pub(crate) const FILE: &str = "postmaster.opts";
const FILE_MAX: u64 = 64 << 10;

/// The text of the file.
pub(crate) fn read(data: &Path) -> io::Result<String> {
    Directory::open(data)?.text(FILE, FILE_MAX)
}

/// A program with its arguments, each in quotation marks, as a server writes them: nothing in them
/// is escaped.
///
/// # Errors
///
/// A text that begins with no program's path.
pub(crate) fn options_in(text: &str) -> io::Result<(&str, Vec<&str>)> {
    let line = text.trim_end_matches('\n');
    let (program, rest) = line.split_once(" \"").unwrap_or((line, ""));
    let rest = rest.strip_suffix('"').unwrap_or(rest);
    let arguments = rest.split("\" \"").filter(|argument| !argument.is_empty());
    match Path::new(program).is_absolute() {
        true => Ok((program, arguments.collect())),
        false => Err(io::Error::other(format!(
            "{FILE}: expected a program with its arguments"
        ))),
    }
}

/// Arguments as a shell takes them.
pub(crate) fn quoted(arguments: &[&str]) -> String {
    let quoted = arguments
        .iter()
        .map(|argument| format!("'{}'", argument.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_server_are_read_with_their_spaces() {
        let text = "/usr/lib/postgresql/17/bin/postgres \"-D\" \"/srv/my data\" \"-c\" \"config_file=/etc/a b.conf\"\n";
        let expected = ["-D", "/srv/my data", "-c", "config_file=/etc/a b.conf"];
        assert_eq!(
            options_in(text).unwrap(),
            ("/usr/lib/postgresql/17/bin/postgres", expected.to_vec())
        );
        assert_eq!(
            options_in("/bin/postgres\n").unwrap(),
            ("/bin/postgres", Vec::new())
        );
        for other in ["postgres \"-D\" \"x\"\n", ""] {
            let why = options_in(other).unwrap_err().to_string();
            assert_eq!(why, "postmaster.opts: expected a program with its arguments");
        }
    }

    #[test]
    fn no_argument_means_anything_to_a_shell() {
        assert_eq!(quoted(&["-c", "a=$(b) 'c'"]), r"'-c' 'a=$(b) '\''c'\'''");
        assert_eq!(quoted(&[]), "");
    }
}
