//! A cell: what is saved and written back together, and the state it was in.
//!
//! One knob is not always one value: writing vm.dirty_bytes zeroes vm.dirty_ratio, another I/O scheduler sets
//! nr_requests anew, and a bad parameter that keeps the server from starting can only be undone in the file.

use crate::catalogue::{Catalogue, CatalogueError, Kind, Knob, place_disk};
use pgdyno_host::{HostAccess, HostError};
use pgdyno_server::{Server, ServerError, autoconf};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which server a cell belongs to, without any secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ServerRef {
    /// A sandbox by name, below a directory of sandboxes.
    Sandbox {
        /// Directory of all sandboxes.
        root: PathBuf,
        /// Its name.
        name: String,
    },
    /// A server by its address.
    Address {
        /// Connection string without the password.
        conninfo: String,
        /// The command that restarts it, where its owner gave one.
        restart: Option<String>,
    },
}

/// How the content of a kernel file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The value itself.
    Plain,
    /// All choices, the present one in brackets.
    Bracket,
}

/// A kernel file of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelFile {
    /// Absolute path on the target.
    pub path: String,
    /// How to read it.
    pub form: Form,
}

/// What is saved and written back together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Cell {
    /// Kernel files, written back in this order.
    Files {
        /// The file that sets the others anew first.
        files: Vec<KernelFile>,
        /// Whether they are counterparts, of which only the one that is not zero can be written back.
        counterparts: bool,
    },
    /// postgresql.auto.conf as a file, byte by byte.
    AutoConf {
        /// Where it is.
        data: PathBuf,
    },
    /// One parameter of a server whose files cannot be reached.
    Parameter {
        /// Its name.
        name: String,
    },
}

/// The state of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Captured {
    /// Values of the files in the cell's order; `None` where this kernel has no such file.
    Files(Vec<Option<String>>),
    /// The content of postgresql.auto.conf.
    AutoConf(String),
    /// The value in postgresql.auto.conf, if there is one.
    Parameter(Option<String>),
}

/// Why a cell could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// A kernel file.
    #[error(transparent)]
    Host(#[from] HostError),
    /// postgresql.auto.conf.
    #[error("{path} could not be {action}: {source}")]
    AutoConf {
        /// The file.
        path: PathBuf,
        /// "read" or "written".
        action: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
    /// postgresql.auto.conf is not text, so that the journal could not hold it exactly.
    #[error("{path} is not UTF-8 text; it can be neither journaled nor restored exactly")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

impl Cell {
    /// The cell of a kernel knob on this target.
    pub(crate) fn of_kernel_knob(
        catalogue: &Catalogue,
        knob: &Knob,
        disk: Option<&str>,
    ) -> Result<Cell, CatalogueError> {
        let file = |knob: &Knob| -> Result<KernelFile, CatalogueError> {
            let form = if knob.kind == Kind::Bracket {
                Form::Bracket
            } else {
                Form::Plain
            };
            Ok(KernelFile {
                path: knob.path(disk)?.unwrap_or_default(),
                form,
            })
        };
        let mut files = vec![file(knob)?];
        if let Some(other) = &knob.counterpart {
            files.push(file(catalogue.get(other)?)?);
            // The same cell whichever of the two is set.
            files.sort_by(|a, b| a.path.cmp(&b.path));
            return Ok(Cell::Files {
                files,
                counterparts: true,
            });
        }
        // A file that another knob sets anew belongs to that one's cell: two cells with one file would take each other's
        // values for those from before.
        let resets_this = |owner: &&Knob| {
            owner
                .resets
                .iter()
                .any(|path| place_disk(path, disk, &owner.id).as_ref() == Ok(&files[0].path))
        };
        let owner = catalogue.iter().find(resets_this).unwrap_or(knob);
        files = vec![file(owner)?];
        for path in &owner.resets {
            files.push(KernelFile {
                path: place_disk(path, disk, &owner.id)?,
                form: Form::Plain,
            });
        }
        Ok(Cell::Files {
            files,
            counterparts: false,
        })
    }

    /// Reads its state. A file may be missing on this kernel: then there is nothing to write back.
    pub(crate) fn capture(&self, host: &dyn HostAccess) -> Result<Captured, CellError> {
        match self {
            Cell::Files { files, .. } => {
                let mut values = Vec::new();
                for file in files {
                    match read_value(host, file) {
                        Ok(value) => values.push(Some(value)),
                        Err(HostError::Missing { .. }) => values.push(None),
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(Captured::Files(values))
            }
            Cell::AutoConf { data } => {
                let path = autoconf::path_in(data);
                let bytes = std::fs::read(&path).map_err(|source| CellError::AutoConf {
                    path: path.clone(),
                    action: "read",
                    source,
                })?;
                String::from_utf8(bytes)
                    .map(Captured::AutoConf)
                    .map_err(|_| CellError::NotText { path })
            }
            Cell::Parameter { .. } => Ok(Captured::Parameter(None)),
        }
    }

    /// The writes that bring kernel files back to `captured`: (path, value) in order.
    pub(crate) fn writes_back(&self, captured: &Captured) -> Vec<(String, String)> {
        let (Cell::Files { files, counterparts }, Captured::Files(values)) = (self, captured) else {
            return Vec::new();
        };
        let present = files
            .iter()
            .zip(values)
            .filter_map(|(file, value)| Some((&file.path, value.as_ref()?)));
        if !counterparts {
            return present
                .map(|(path, value)| (path.clone(), value.clone()))
                .collect();
        }
        let pair: Vec<_> = present.collect();
        // The kernel refuses a written 0 for the bytes form, and writing the other form zeroes it anyway. With both at
        // zero it is the ratio that takes a 0; it stands last by name.
        let not_zero = pair
            .iter()
            .find(|(_, value)| value.as_str() != "0")
            .or(pair.last());
        not_zero
            .map(|(path, value)| ((*path).clone(), (*value).clone()))
            .into_iter()
            .collect()
    }

    /// Where it is, for people.
    pub(crate) fn place(&self) -> String {
        match self {
            Cell::Files { files, .. } => files.first().map(|file| file.path.clone()).unwrap_or_default(),
            Cell::AutoConf { data } => autoconf::path_in(data).display().to_string(),
            Cell::Parameter { name } => format!("ALTER SYSTEM {name}"),
        }
    }
}

/// A state in a few words, for people.
pub(crate) fn shown(captured: &Captured) -> String {
    match captured {
        Captured::Files(values) => values
            .iter()
            .map(|value| value.as_deref().unwrap_or("-"))
            .collect::<Vec<_>>()
            .join(" / "),
        Captured::AutoConf(_) => "the file from before".into(),
        Captured::Parameter(value) => value.clone().unwrap_or_else(|| "(not set)".into()),
    }
}

/// A parameter's value in postgresql.auto.conf, asked of the server.
pub(crate) fn in_auto_conf(server: &mut Server, name: &str) -> Result<Option<String>, ServerError> {
    let sql = format!(
        "SELECT setting FROM pg_file_settings WHERE name = '{}' AND sourcefile LIKE '%postgresql.auto.conf' \
         ORDER BY seqno DESC LIMIT 1",
        name.replace('\'', "''")
    );
    server.value("reading postgresql.auto.conf", &sql)
}

/// The value in a kernel file, white space folded.
pub(crate) fn read_value(host: &dyn HostAccess, file: &KernelFile) -> Result<String, HostError> {
    let text = host.read(&file.path)?;
    if file.form == Form::Plain {
        return Ok(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    selected(&text)
        .map(str::to_owned)
        .ok_or_else(|| HostError::Malformed {
            path: file.path.clone(),
            line: 1,
            expected: "a list of words with one in brackets",
            found: text.trim().chars().take(80).collect(),
        })
}

/// The word in brackets; a list of a single word needs none.
fn selected(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let bracketed = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')));
    bracketed.or_else(|| match (words.next(), words.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;
    use std::fs;

    fn captured(values: &[&str]) -> Captured {
        Captured::Files(values.iter().map(|v| Some((*v).to_owned())).collect())
    }

    fn pair() -> Cell {
        let catalogue = Catalogue::shipped().unwrap();
        Cell::of_kernel_knob(&catalogue, catalogue.get("vm.dirty_bytes").unwrap(), None).unwrap()
    }

    /// Traps 1 and 2: counterparts are undone through the one that was not zero.
    #[test]
    fn of_counterparts_the_one_that_was_not_zero_is_written_back() {
        let cell = pair();
        let ratio = ("/proc/sys/vm/dirty_ratio".to_owned(), "20".to_owned());
        assert_eq!(cell.writes_back(&captured(&["0", "20"])), [ratio]);
        let bytes = ("/proc/sys/vm/dirty_bytes".to_owned(), "4096".to_owned());
        assert_eq!(cell.writes_back(&captured(&["4096", "0"])), [bytes]);
        let both = cell.writes_back(&captured(&["0", "0"]));
        assert_eq!(both, [("/proc/sys/vm/dirty_ratio".to_owned(), "0".to_owned())]);
    }

    #[test]
    fn what_a_scheduler_resets_has_the_schedulers_cell() {
        let catalogue = Catalogue::shipped().unwrap();
        let cell =
            |id: &str| Cell::of_kernel_knob(&catalogue, catalogue.get(id).unwrap(), Some("vda")).unwrap();
        assert_eq!(cell("block.nr_requests"), cell("block.scheduler"));
        assert_ne!(cell("block.read_ahead_kb"), cell("block.scheduler"));
    }

    #[test]
    fn either_counterpart_has_the_same_cell() {
        let catalogue = Catalogue::shipped().unwrap();
        let ratio = catalogue.get("vm.dirty_ratio").unwrap();
        assert_eq!(Cell::of_kernel_knob(&catalogue, ratio, None).unwrap(), pair());
    }

    /// Trap 17: the scheduler is written back first, then what it has set anew.
    #[test]
    fn a_scheduler_brings_back_what_it_resets() {
        let catalogue = Catalogue::shipped().unwrap();
        let knob = catalogue.get("block.scheduler").unwrap();
        let cell = Cell::of_kernel_knob(&catalogue, knob, Some("vda")).unwrap();
        let writes = cell.writes_back(&captured(&["mq-deadline", "256"]));
        let paths: Vec<&str> = writes.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/sys/block/vda/queue/scheduler",
                "/sys/block/vda/queue/nr_requests"
            ]
        );
        assert!(Cell::of_kernel_knob(&catalogue, knob, None).is_err());
    }

    /// Trap 8, and trap 7 for the missing companions.
    #[test]
    fn bracket_lists_are_read_and_missing_companions_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("sys/block/vda/queue");
        fs::create_dir_all(&queue).unwrap();
        fs::write(queue.join("scheduler"), "none [mq-deadline] kyber bfq\n").unwrap();
        let host = LocalHost::at(dir.path());
        let catalogue = Catalogue::shipped().unwrap();
        let knob = catalogue.get("block.scheduler").unwrap();
        let cell = Cell::of_kernel_knob(&catalogue, knob, Some("vda")).unwrap();
        let expected = Captured::Files(vec![Some("mq-deadline".into()), None]);
        assert_eq!(cell.capture(&host).unwrap(), expected);
        assert_eq!(selected("none\n"), Some("none"));
        assert_eq!(selected("a b"), None);
    }
}
