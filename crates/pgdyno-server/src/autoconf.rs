//! The file postgresql.auto.conf, in which ALTER SYSTEM keeps its settings.

use crate::lists::one_spelling;
use pgdyno_host::{Directory, EntryKind, Owner};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "postgresql.auto.conf";

/// Where it is in a data directory.
pub fn path_in(data_directory: &Path) -> PathBuf {
    data_directory.join(NAME)
}

/// Its settings: name and value, that of a list in [one spelling](one_spelling), the last of a name
/// wins. Comments and lines that are no setting are passed over: the server's own parser is the
/// judge of them.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(setting_of).collect()
}

/// The setting of a line as the server's files have it, `name = value # comment` with the sign and
/// the quotes where they are needed, that of a list in [one spelling](one_spelling); `None` of any
/// other line.
pub fn setting_of(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let (name, rest) = line.split_at(line.find(|c| !is_of_name(c))?);
    let starts = name.chars().next()?;
    let is_name = starts.is_ascii_alphabetic() || starts == '_';
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let (value, rest) = match rest.strip_prefix('\'') {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '#' | '\'' | '='));
            let (value, rest) = rest.split_at(end.unwrap_or(rest.len()));
            (Some(value).filter(|value| !value.is_empty())?.to_owned(), rest)
        }
    };
    let rest = rest.trim_start();
    let is_whole = is_name && (rest.is_empty() || rest.starts_with('#'));
    is_whole.then(|| (name.to_owned(), one_spelling(name, &value)))
}

/// The text up to the quote that ends it, and what comes after that. A quote within is doubled or
/// escaped.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => match chars.next_if(|(_, next)| *next == '\'') {
                Some(_) => value.push('\''),
                None => return Some((value, &text[at + 1..])),
            },
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// Settings of a server are some kB; more is not a file of ALTER SYSTEM's.
const BYTES_MAX: u64 = 16 << 20;

/// Reads the file: a regular one that the data directory's owner may read. A symbolic link is not
/// followed, for root would read by it what the server's user may not.
///
/// # Errors
///
/// As [`Directory::read`].
pub fn read(data_directory: &Path) -> io::Result<Vec<u8>> {
    Directory::open(data_directory)?.read(NAME, BYTES_MAX)
}

/// Puts `content` in the file's place in one step, and makes it durable. Owner and mode are those
/// that the server gives the file itself, by its data directory; whatever is there by then has no
/// say in it. For pgdyno-knobs alone.
///
/// # Errors
///
/// As [`Directory::replace`].
pub fn replace(data_directory: &Path, content: &[u8]) -> io::Result<()> {
    let data = Directory::open(data_directory)?;
    match data.kind(NAME)? {
        None | Some(EntryKind::File) => data.replace(NAME, content, owner_in(data.owner())),
        Some(EntryKind::Link) => Err(other_than_a_file("a symbolic link")),
        Some(EntryKind::Directory | EntryKind::Other) => Err(other_than_a_file("no file")),
    }
}

fn other_than_a_file(what: &str) -> io::Error {
    let reason = format!("it is {what} now, which the server never makes of it; expected a regular file");
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// As the server makes its files: readable for the group where the directory is
/// (pg_file_create_mode).
fn owner_in(directory: Owner) -> Owner {
    const GROUP_ENTERS: u32 = 0o050;
    let mode = match directory.mode & GROUP_ENTERS {
        GROUP_ENTERS => 0o640,
        _ => 0o600,
    };
    Owner { mode, ..directory }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    #[test]
    fn settings_are_read_with_quotes_and_comments() {
        let text = "# Do not edit\nshared_buffers = '256MB'\nsearch_path = '\"a''b\",\"c\"'\nshared_buffers = '1GB'\nnonsense\n";
        let found = parse(text);
        assert_eq!(found["shared_buffers"], "1GB");
        assert_eq!(found["search_path"], "\"a'b\", c");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_line_is_a_setting_as_the_server_reads_it() {
        for (line, expected) in [
            ("work_mem = 64MB", Some(("work_mem", "64MB"))),
            ("  work_mem 64MB # per sort", Some(("work_mem", "64MB"))),
            (
                "a.b='it''s \\\\ \\'x\\' # in'#out",
                Some(("a.b", "it's \\ 'x' # in")),
            ),
            ("log_line_prefix = ''", Some(("log_line_prefix", ""))),
            ("work_mem =", None),
            ("work_mem = 64MB 32MB", None),
            ("work_mem = 'open", None),
            ("1st = 2", None),
            ("# work_mem = 64MB", None),
            ("", None),
        ] {
            let found = setting_of(line);
            let found = found
                .as_ref()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(found, expected, "{line}");
        }
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_replaced_file_has_the_mode_that_the_server_gives_it() {
        for (directory, expected) in [(0o700, 0o600), (0o750, 0o640)] {
            let dir = tempfile::tempdir().unwrap();
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(directory)).unwrap();
            fs::write(path_in(dir.path()), "a = '1'\n").unwrap();
            fs::set_permissions(path_in(dir.path()), fs::Permissions::from_mode(0o666)).unwrap();
            replace(dir.path(), b"a = '2'\n").unwrap();
            assert_eq!(read(dir.path()).unwrap(), b"a = '2'\n");
            assert_eq!(mode_of(&path_in(dir.path())), expected);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    /// The server's user exchanges the file before it is read, and between its being read and
    /// written back.
    #[test]
    fn a_link_in_the_files_place_discloses_nothing_and_is_not_written_through() {
        const SERVER: u32 = 12_345;
        let dir = tempfile::tempdir().unwrap();
        let (data, secret) = (dir.path().join("data"), dir.path().join("secret"));
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&secret, "password = 'root only'\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(path_in(&data), "a = '1'\n").unwrap();
        for place in [&data, &path_in(&data)] {
            chown(place, Some(SERVER), Some(SERVER)).unwrap();
        }
        let swap = |link: &dyn Fn()| {
            fs::remove_file(path_in(&data)).unwrap();
            link();
        };
        let captured = read(&data).unwrap();
        swap(&|| symlink(&secret, path_in(&data)).unwrap());
        for refused in [read(&data).map(drop), replace(&data, &captured)] {
            assert!(refused.unwrap_err().to_string().contains("symbolic link"));
        }
        swap(&|| fs::hard_link(&secret, path_in(&data)).unwrap());
        assert!(read(&data).unwrap_err().to_string().contains("belongs to user 0"));
        replace(&data, &captured).unwrap();
        let restored = fs::metadata(path_in(&data)).unwrap();
        assert_eq!(
            (restored.uid(), restored.gid(), restored.mode() & 0o7777),
            (SERVER, SERVER, 0o600)
        );
        assert_eq!(read(&data).unwrap(), captured);
        assert_eq!(mode_of(&secret), 0o600);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "password = 'root only'\n");
    }
}
