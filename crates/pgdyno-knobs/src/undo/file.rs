//! A kernel file of an undo unit: how it is read, and where it is after its device was given
//! another name.

use crate::catalogue::{Kind, Knob};
use pgdyno_host::{HostAccess, HostError, block, chosen};
use serde::{Deserialize, Serialize};

/// How the content of a kernel file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The file holds the value alone.
    Plain,
    /// All choices, the present one in brackets.
    Bracket,
}

/// How the file of a knob is read.
pub(crate) fn form_of(knob: &Knob) -> Form {
    if knob.kind == Kind::Bracket {
        Form::Bracket
    } else {
        Form::Plain
    }
}

/// Form of a file that no knob of the undo unit names, by its content.
pub(crate) fn form_in(host: &dyn HostAccess, path: &str) -> Form {
    let text = host.read(path).unwrap_or_default();
    match chosen(&text) {
        Some(_) => Form::Bracket,
        None => Form::Plain,
    }
}

/// A kernel file of an undo unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelFile {
    /// Absolute path on the target; behind a `#` the part of the file that is meant (`FilePart`).
    pub path: String,
    /// Whether the file holds the value alone or all choices.
    pub form: Form,
    /// What identifies the block device whose file it is, for names change (`None`: no device's, or
    /// unknown).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// Where block devices have their settings.
const BLOCK: &str = "/sys/block/";

impl KernelFile {
    pub(crate) fn new(host: &dyn HostAccess, path: String, form: Form) -> KernelFile {
        let device = disk_in(&path).and_then(|disk| block::identity_of(host, disk));
        KernelFile { path, form, device }
    }

    /// Its path today: under the name that its device has now. `None` where the device is gone. A
    /// loop device without a file keeps its settings in the kernel, for the next file that it
    /// shows.
    pub(crate) fn path_now(&self, host: &dyn HostAccess) -> Option<String> {
        let Some(disk) = disk_in(&self.path) else {
            return Some(self.path.clone());
        };
        let now = match &self.device {
            // The paths of a multipath device have one identity: as long as it fits, the name
            // counts.
            Some(device) if block::identity_of(host, disk).as_ref() != Some(device) => {
                let is_detached = || self.is_of_loop() && block::identity_of(host, disk).is_none();
                block::disk_with_identity(host, device).or_else(|| is_detached().then(|| disk.to_owned()))?
            }
            _ => disk.to_owned(),
        };
        let rest = &self.path[BLOCK.len() + disk.len()..];
        host.list(&format!("{BLOCK}{now}"))
            .is_ok()
            .then(|| format!("{BLOCK}{now}{rest}"))
    }
}

impl KernelFile {
    fn is_of_loop(&self) -> bool {
        self.device
            .as_ref()
            .is_some_and(|device| device.starts_with("file:"))
    }

    /// Whether it is of a loop device that shows another file by now, or none, and has the settings
    /// of ours still.
    pub(crate) fn is_left_on_loop(&self, host: &dyn HostAccess) -> bool {
        disk_in(&self.path).is_some_and(|disk| {
            self.is_of_loop()
                && block::identity_of(host, disk) != self.device
                && host.list(&format!("{BLOCK}{disk}")).is_ok()
        })
    }
}

fn disk_in(path: &str) -> Option<&str> {
    path.strip_prefix(BLOCK)?.split('/').next()
}

/// The part of a kernel file that is a value of its own: that of the line that begins with a word,
/// as `254:0 1000` of a block device, and where the line has several, the one of a key, as
/// `254:0 rbps=1000 wbps=max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePart<'p> {
    pub(crate) line: &'p str,
    pub(crate) key: Option<&'p str>,
}

/// What a limit is that is not set.
const UNLIMITED: &str = "max";

impl FilePart<'_> {
    /// The file of a path, and its part where the path names one: `io.max#254:0 wbps`.
    pub(crate) fn of_path(path: &str) -> (&str, Option<FilePart<'_>>) {
        let Some((file, part)) = path.split_once('#') else {
            return (path, None);
        };
        let (line, key) = match part.split_once(' ') {
            Some((line, key)) => (line, Some(key)),
            None => (part, None),
        };
        (file, Some(FilePart { line, key }))
    }

    /// Its value in the text of the file; a limit that no line sets is "max".
    fn value_in<'t>(&self, text: &'t str) -> &'t str {
        let mut lines = text.lines().map(str::split_whitespace);
        let line = lines.find_map(|mut words| (words.next() == Some(self.line)).then_some(words));
        let mut words = line.into_iter().flatten();
        let value = match self.key {
            Some(key) => words.find_map(|word| word.strip_prefix(key)?.strip_prefix('=')),
            None => words.next(),
        };
        value.unwrap_or(UNLIMITED)
    }

    /// What is written into the file so that it has a value.
    fn written(&self, value: &str) -> String {
        match self.key {
            Some(key) => format!("{} {key}={value}", self.line),
            // Version 1 of control groups, which has no word for it.
            None if value == UNLIMITED => format!("{} 0", self.line),
            None => format!("{} {value}", self.line),
        }
    }
}

/// The file of a path, and what is written into it so that the file, or the part that the path
/// names, has a value.
pub(crate) fn write_of<'p>(path: &'p str, value: &str) -> (&'p str, String) {
    let (file, part) = FilePart::of_path(path);
    (
        file,
        part.map_or_else(|| value.to_owned(), |part| part.written(value)),
    )
}

/// The value in a kernel file, white space folded.
pub(crate) fn read_value(host: &dyn HostAccess, file: &KernelFile) -> Result<String, HostError> {
    let (path, part) = FilePart::of_path(&file.path);
    let text = host.read(path)?;
    if let Some(part) = part {
        return Ok(part.value_in(&text).to_owned());
    }
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
    chosen(text).or_else(|| match (words.next(), words.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_chosen_and_a_single_one_needs_none() {
        assert_eq!(selected("none [mq-deadline] kyber\n"), Some("mq-deadline"));
        assert_eq!(selected("none\n"), Some("none"));
        assert_eq!(selected("a b"), None);
    }

    #[test]
    fn part_of_a_file_is_the_value_of_a_line_or_of_a_key_in_it() {
        let of = |path: &'static str, text: &'static str| {
            let (_, part) = FilePart::of_path(path);
            part.map(|part| (part.value_in(text), part.written("max"), part.written("7")))
        };
        let max = "8:0 rbps=max wbps=1000 riops=max wiops=max\n254:0 rbps=5 wbps=max riops=max wiops=max\n";
        let written = |key: &str, value: &str| format!("8:0 {key}={value}");
        let expected = ("1000", written("wbps", "max"), written("wbps", "7"));
        assert_eq!(of("/x/io.max#8:0 wbps", max), Some(expected));
        let expected = ("max", written("rbps", "max"), written("rbps", "7"));
        assert_eq!(of("/x/io.max#8:0 rbps", max), Some(expected));
        let one = |value: &'static str| Some((value, "8:0 0".to_owned(), "8:0 7".to_owned()));
        assert_eq!(of("/x/device#8:0", "8:1 2\n8:0 1000\n"), one("1000"));
        assert_eq!(of("/x/device#8:0", ""), one("max"));
        assert_eq!(of("/x/device", "8:0 1000"), None);
    }
}
