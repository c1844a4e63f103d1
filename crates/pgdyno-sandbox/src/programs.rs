//! Programs of the system, of which many are where only root's path leads.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Searched before the path, which at a user's has no sbin.
const DIRECTORIES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Where a program is; its bare name, for the path to find, where it is in none of these directories.
pub fn find(name: &str) -> PathBuf {
    let places = DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(name));
    places
        .into_iter()
        .find(|place| place.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// Whether there is a program at all, found by starting it with `argument`, which only makes it describe itself.
pub(crate) fn is_there(name: &str, argument: &str) -> bool {
    let asked = Command::new(find(name))
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !asked.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_none_of_the_directories_is_left_to_the_path() {
        assert_eq!(find("no-such-program"), Path::new("no-such-program"));
        assert!(!is_there("no-such-program", "--version"));
        assert!(find("sh").is_absolute() && is_there("true", "--version"));
    }
}
