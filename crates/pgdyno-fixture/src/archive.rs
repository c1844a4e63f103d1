//! The format of an archive: lines of text, each file's bytes below its name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;

const FIRST_LINE: &str = "pgdyno machine 1";
/// Before each line of a file.
const BODY: u8 = b'|';
/// The largest captured machine has less than 1 MB.
const BYTES_MAX: usize = 16 << 20;
/// The largest captured machine has less than 2,000.
const ENTRIES_MAX: usize = 100_000;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file with its bytes.
    File(Vec<u8>),
    /// A symbolic link with its target.
    Link(String),
}

/// The files and links of a machine by their paths, which are relative to its root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

/// Why a text is not an archive.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}")]
pub struct ArchiveError {
    /// 1-based.
    pub line: usize,
    /// What should be there.
    pub expected: &'static str,
}

/// How a file's bytes are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines,
    /// Without the end of the last line.
    Unended,
    Base64,
}

impl Archive {
    /// Reads an archive.
    ///
    /// # Errors
    ///
    /// The first line that is not as docs/reference/fixtures.md says, or a text that is too large.
    pub fn parse(text: &[u8]) -> Result<Self, ArchiveError> {
        let fail = |line: usize, expected| Err(ArchiveError { line, expected });
        if text.len() > BYTES_MAX {
            return fail(1, "a text of at most 16 MiB");
        }
        let Some(text) = text.strip_suffix(b"\n") else {
            return fail(
                text.split(|byte| *byte == b'\n').count(),
                "a line feed at the end",
            );
        };
        let mut lines = text.split(|byte| *byte == b'\n').zip(1..).peekable();
        if lines
            .next()
            .is_none_or(|(first, _)| first != FIRST_LINE.as_bytes())
        {
            return fail(1, "\"pgdyno machine 1\"");
        }
        let mut archive = Self::default();
        let mut last = "";
        let mut at = 1;
        while let Some((line, number)) = lines.next() {
            at = number;
            let Ok(line) = std::str::from_utf8(line) else {
                return fail(at, "UTF-8");
            };
            let words: Vec<&str> = line.split(' ').collect();
            let (escaped, form, target) = match words[..] {
                ["file", path] => (path, Form::Lines, None),
                ["file", path, "unended"] => (path, Form::Unended, None),
                ["file", path, "base64"] => (path, Form::Base64, None),
                ["link", path, target] => (path, Form::Lines, Some(target)),
                ["end", count] => {
                    if count != archive.entries.len().to_string() {
                        return fail(at, "\"end\" with the number of files and links above");
                    }
                    return match lines.next() {
                        Some(_) => fail(at + 1, "nothing after \"end\""),
                        None => Ok(archive),
                    };
                }
                _ => {
                    return fail(
                        at,
                        "\"file PATH [unended|base64]\", \"link PATH TARGET\", \"end COUNT\", or \"|\" below a file",
                    );
                }
            };
            if escaped <= last {
                return fail(at, "paths in ascending order of their bytes");
            }
            last = escaped;
            let Some(path) = unescaped(escaped).filter(|path| is_relative(path)) else {
                return fail(
                    at,
                    "a percent-escaped path without a slash at its ends, empty parts, \".\" and \"..\"",
                );
            };
            if archive.is_below_an_entry(&path) {
                return fail(at, "a path that is not below a file or a link");
            }
            if archive.entries.len() == ENTRIES_MAX {
                return fail(at, "at most 100,000 files and links");
            }
            let entry = match target {
                Some(target) => match unescaped(target).filter(|target| !target.is_empty()) {
                    Some(target) => Entry::Link(target),
                    None => return fail(at, "a percent-escaped target"),
                },
                None => {
                    let mut bytes = Vec::new();
                    while let Some((body, number)) = lines.next_if(|(line, _)| line.first() == Some(&BODY)) {
                        at = number;
                        bytes.extend_from_slice(&body[1..]);
                        if form != Form::Base64 {
                            bytes.push(b'\n');
                        }
                    }
                    match form {
                        Form::Lines => {}
                        // A file that ends in a line feed ends its last line.
                        Form::Unended => {
                            if bytes.pop().is_none() || bytes.last().is_none_or(|last| *last == b'\n') {
                                return fail(at, "a last line with bytes in it");
                            }
                        }
                        Form::Base64 => match STANDARD.decode(&bytes) {
                            Ok(decoded) => bytes = decoded,
                            Err(_) => return fail(at, "base64 with its padding"),
                        },
                    }
                    Entry::File(bytes)
                }
            };
            archive.entries.insert(path, entry);
        }
        fail(at + 1, "\"end\" with the number of files and links above")
    }

    /// Paths with what is there, sorted.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// The archive with what each entry becomes; none: it is omitted.
    pub(crate) fn map(&self, change: impl Fn(&str, &Entry) -> Option<Entry>) -> Self {
        let changed = self
            .entries
            .iter()
            .filter_map(|(path, entry)| Some((path.clone(), change(path, entry)?)));
        Self {
            entries: changed.collect(),
        }
    }

    /// Nothing is written through a link when an archive is unpacked.
    fn is_below_an_entry(&self, path: &str) -> bool {
        path.match_indices('/')
            .any(|(at, _)| self.entries.contains_key(&path[..at]))
    }
}

fn is_relative(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Printable ASCII but `%` and space represents itself, `%XX` for a byte.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?)
                    .ok()
                    .filter(|byte| *byte != 0)?
            }
            b'!'..=b'~' => byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[&str]) -> Result<Vec<(String, Entry)>, String> {
        let text = format!("{}\n", lines.join("\n"));
        let archive = Archive::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(archive.entries.into_iter().collect())
    }

    #[test]
    fn an_archive_gives_its_files_and_links() {
        let file = |path: &str, bytes: &[u8]| (path.to_owned(), Entry::File(bytes.to_vec()));
        let expected = vec![
            file("etc/empty", b""),
            file("etc/line", b"\n"),
            file("etc/two lines", b"a |b\t\nc\n"),
            file("proc/1/cmdline", b"init\0-x\0"),
            file("proc/cut", b"a\nb"),
            ("sys/block/vda".to_owned(), Entry::Link("../100 %".to_owned())),
        ];
        assert_eq!(
            parsed(&[
                "pgdyno machine 1",
                "file etc/empty",
                "file etc/line",
                "|",
                "file etc/two%20lines",
                "|a |b\t",
                "|c",
                "file proc/1/cmdline base64",
                "|aW5p",
                "|dAAteAA=",
                "file proc/cut unended",
                "|a",
                "|b",
                "link sys/block/vda ../100%20%25",
                "end 6",
            ]),
            Ok(expected)
        );
        assert_eq!(parsed(&["pgdyno machine 1", "end 0"]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_archive_is_an_error_with_its_line() {
        for (body, error) in [
            (
                &["end 1"][..],
                "line 2: expected \"end\" with the number of files and links above",
            ),
            (
                &["file a"],
                "line 3: expected \"end\" with the number of files and links above",
            ),
            (&["end 0", "file a"], "line 3: expected nothing after \"end\""),
            (&["|a", "end 0"], "line 2: expected \"file PATH"),
            (&["link a b", "|c", "end 1"], "line 3: expected \"file PATH"),
            (&["file a mode", "end 1"], "line 2: expected \"file PATH"),
            (
                &["file b", "file a", "end 2"],
                "line 3: expected paths in ascending order",
            ),
            (
                &["file a", "file a", "end 2"],
                "line 3: expected paths in ascending order",
            ),
            (&["file /a", "end 1"], "line 2: expected a percent-escaped path"),
            (
                &["file a/../../b", "end 1"],
                "line 2: expected a percent-escaped path",
            ),
            (
                &["file a%2F%2e.", "end 1"],
                "line 2: expected a percent-escaped path",
            ),
            (&["file a%2", "end 1"], "line 2: expected a percent-escaped path"),
            (&["file a%00", "end 1"], "line 2: expected a percent-escaped path"),
            (&["file a\tb", "end 1"], "line 2: expected a percent-escaped path"),
            (
                &["link a ..", "file a/b", "end 2"],
                "line 3: expected a path that is not below",
            ),
            (
                &["file a", "file a/b", "end 2"],
                "line 3: expected a path that is not below",
            ),
            (&["link a ", "end 1"], "line 2: expected a percent-escaped target"),
            (
                &["file a unended", "end 1"],
                "line 2: expected a last line with bytes",
            ),
            (
                &["file a unended", "|b", "|", "end 1"],
                "line 4: expected a last line with bytes",
            ),
            (&["file a base64", "|b", "end 1"], "line 3: expected base64"),
        ] {
            let found = parsed(&[&["pgdyno machine 1"], body].concat()).unwrap_err();
            assert!(found.starts_with(error), "{body:?}: {found}");
        }
        for (text, error) in [
            (&b""[..], "line 1: expected a line feed at the end"),
            (
                b"pgdyno machine 1\nend 0",
                "line 2: expected a line feed at the end",
            ),
            (
                b"pgdyno machine 2\nend 0\n",
                "line 1: expected \"pgdyno machine 1\"",
            ),
            (b"pgdyno machine 1\nfile \xff\nend 1\n", "line 2: expected UTF-8"),
            (
                &vec![b'|'; BYTES_MAX + 1],
                "line 1: expected a text of at most 16 MiB",
            ),
        ] {
            assert_eq!(Archive::parse(text).unwrap_err().to_string(), error);
        }
    }
}
