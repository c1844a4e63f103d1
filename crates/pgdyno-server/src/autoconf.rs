//! The file postgresql.auto.conf, in which ALTER SYSTEM keeps its settings.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Where it is in a data directory.
pub fn path_in(data_directory: &Path) -> PathBuf {
    data_directory.join("postgresql.auto.conf")
}

/// Its settings: name and raw value text, the last of a name wins. Comments and lines that are no setting are passed
/// over: the server's own parser is the judge of them.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), unquote(value.trim())))
        .collect()
}

fn unquote(value: &str) -> String {
    match value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'").replace("\\\\", "\\"),
        None => value.to_owned(),
    }
}

/// Puts `content` in the file's place in one step, with the owner and mode it has, and makes it durable.
/// For pgdyno-knobs alone.
pub fn replace(data_directory: &Path, content: &[u8]) -> io::Result<()> {
    let path = path_in(data_directory);
    let present = fs::metadata(&path)?;
    let temporary = data_directory.join("postgresql.auto.conf.pgdyno");
    // The directory is another user's: nothing that lies there under this name is followed or kept.
    match fs::remove_file(&temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(content)?;
    fchown(&file, Some(present.uid()), Some(present.gid()))?;
    file.set_permissions(fs::Permissions::from_mode(present.mode() & 0o7777))?;
    file.sync_all()?;
    fs::rename(&temporary, &path)?;
    fs::File::open(data_directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_with_quotes_and_comments() {
        let text = "# Do not edit\nshared_buffers = '256MB'\nsearch_path = '\"a''b\"'\nshared_buffers = '1GB'\nnonsense\n";
        let found = parse(text);
        assert_eq!(found["shared_buffers"], "1GB");
        assert_eq!(found["search_path"], "\"a'b\"");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn replacing_keeps_the_mode_and_leaves_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(path_in(dir.path()), "a = '1'\n").unwrap();
        fs::set_permissions(path_in(dir.path()), fs::Permissions::from_mode(0o600)).unwrap();
        replace(dir.path(), b"a = '2'\n").unwrap();
        assert_eq!(fs::read_to_string(path_in(dir.path())).unwrap(), "a = '2'\n");
        assert_eq!(fs::metadata(path_in(dir.path())).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
