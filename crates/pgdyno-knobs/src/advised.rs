//! Looking at what pgdyno never sets itself: words of the boot line, options of mounts.

use crate::catalogue::{CatalogueError, Kind, Knob};
use crate::change::ApplyError;
use crate::reader::{DEFAULT, Reader};
use pgdyno_host::storage_facts;

/// The value that a knob has now, as it would be advised: "on" or "off" for a word, what stands in its place for one with
/// a value, "default" where it is not there.
pub(crate) fn now(reader: &Reader<'_>, knob: &Knob, instance: Option<&str>) -> Result<String, ApplyError> {
    let word = knob.word.as_deref().unwrap_or_default();
    let words = match knob.kind {
        Kind::BootParameter => {
            let line = reader.host.read("/proc/cmdline")?;
            line.split_whitespace().map(str::to_owned).collect()
        }
        Kind::MountOption => mount_options(reader, knob, instance)?,
        Kind::VolumeFlag => {
            return Err(not_here(
                knob,
                "dmsetup table tells the flags of a volume; nothing else does",
            ));
        }
        _ => return Err(not_here(knob, "it leaves no state to look at")),
    };
    Ok(value_in(&words, word))
}

/// What a list of words says of `word`, which may have {value} in it. The last one counts.
fn value_in(words: &[String], word: &str) -> String {
    match word.split_once("{value}") {
        Some((before, after)) => words
            .iter()
            .rev()
            .find_map(|found| found.strip_prefix(before)?.strip_suffix(after))
            .unwrap_or(DEFAULT)
            .to_owned(),
        None if words.iter().any(|found| found == word) => "on".to_owned(),
        None => "off".to_owned(),
    }
}

fn mount_options(
    reader: &Reader<'_>,
    knob: &Knob,
    instance: Option<&str>,
) -> Result<Vec<String>, ApplyError> {
    let data = reader.target.and_then(|target| target.data.as_ref());
    let path = match (instance, data) {
        (Some(path), _) => path.to_owned(),
        (None, Some(data)) => data.to_string_lossy().into_owned(),
        (None, None) => {
            return Err(not_here(
                knob,
                "no data directory is within reach; name a path behind an @",
            ));
        }
    };
    let facts = storage_facts(reader.host, "path", &path);
    let fact = facts.iter().find(|fact| fact.name.ends_with(".mount_options"));
    let options = fact.and_then(|fact| fact.value.as_ref()?.as_array());
    let options =
        options.ok_or_else(|| not_here(knob, &format!("the mount that holds {path} cannot be found")))?;
    Ok(options
        .iter()
        .filter_map(|option| option.as_str().map(str::to_owned))
        .collect())
}

fn not_here(knob: &Knob, reason: &str) -> ApplyError {
    let error = CatalogueError::NotHere {
        id: knob.id.clone(),
        reason: reason.to_owned(),
    };
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_with_and_without_values() {
        let words: Vec<String> = "quiet hugepages=4 hugepages=8 noatime"
            .split(' ')
            .map(str::to_owned)
            .collect();
        assert_eq!(value_in(&words, "hugepages={value}"), "8");
        assert_eq!(value_in(&words, "hugepagesz={value}"), "default");
        assert_eq!(value_in(&words, "noatime"), "on");
        assert_eq!(value_in(&words, "lazytime"), "off");
    }
}
