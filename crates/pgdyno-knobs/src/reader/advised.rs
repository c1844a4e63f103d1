//! Reading what pgdyno never sets itself: words of the boot line, options of mounts, flags of
//! encrypted volumes.

use super::{DEFAULT, Reader};
use crate::applied::ApplyError;
use crate::catalogue::{CatalogueError, Kind, Knob};
use pgdyno_host::storage_facts;
use pgdyno_sandbox::answer;
use std::process::Command;

/// The value that a knob has now, as it would be advised: "on" or "off" for a word, what is in its
/// place for one with a value, "default" where it is not there.
pub(crate) fn now(reader: &Reader<'_>, knob: &Knob, instance: Option<&str>) -> Result<String, ApplyError> {
    let word = knob.word.as_deref().unwrap_or_default();
    let words = match knob.kind {
        Kind::BootParameter => {
            let line = reader.host.read("/proc/cmdline")?;
            line.split_whitespace().map(str::to_owned).collect()
        }
        Kind::MountOption => mount_options(reader, knob, instance)?,
        Kind::VolumeFlag => return volume_flag(reader, knob, instance, word),
        _ => return Err(not_here(knob, "it leaves no state to look at")),
    };
    Ok(value_in(&words, word))
}

/// The value of `word`, which may have {value} in it, in a list of words. The last one counts.
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

/// What /sys does not have: dmsetup asks the kernel for it, without the key. Of several volumes
/// below one file system, each value that one has.
fn volume_flag(
    reader: &Reader<'_>,
    knob: &Knob,
    instance: Option<&str>,
    word: &str,
) -> Result<String, ApplyError> {
    let read = |device: &str, file: &str| {
        let path = format!("/sys/block/{device}/dm/{file}");
        reader.host.read_trimmed(&path).ok()
    };
    // An encrypted volume may be beneath a logical one.
    let (context, of) = (reader.context(), instance.unwrap_or("data"));
    let mut devices = context.disks(knob, of)?;
    if let "data" | "wal" = of {
        devices.extend(context.disks(knob, &format!("{of}-members")).unwrap_or_default());
    }
    let named = devices
        .iter()
        .filter(|device| read(device, "uuid").is_some_and(|uuid| uuid.starts_with("CRYPT-")))
        .filter_map(|device| read(device, "name"));
    let mut values: Vec<String> = Vec::new();
    for name in named {
        let mut asked = Command::new("dmsetup");
        asked.args(["table", "--target", "crypt", &name]);
        let output = answer(asked).map_err(|e| {
            not_here(
                knob,
                &format!("cannot read the flags of a volume with dmsetup: {e}"),
            )
        })?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(not_here(
                knob,
                &format!("dmsetup table {name}: {}", message.trim()),
            ));
        }
        // Of a volume for integrity alone it prints nothing.
        let table = String::from_utf8_lossy(&output.stdout);
        let value = value_in(&flags_in(&table), word);
        if !table.trim().is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    if values.is_empty() {
        let reason = format!("no encrypted volume is among {}", devices.join(", "));
        return Err(not_here(knob, &reason));
    }
    Ok(values.join(" / "))
}

/// The optional words of a crypt target: behind its start, length, kind, cipher, key, first vector,
/// device, first sector and the number of these words.
fn flags_in(table: &str) -> Vec<String> {
    const BEFORE: usize = 9;
    table.split_whitespace().skip(BEFORE).map(str::to_owned).collect()
}

fn not_here(knob: &Knob, reason: &str) -> ApplyError {
    let error = CatalogueError::NotHere {
        id: knob.id.clone(),
        reason: reason.to_owned(),
    };
    error.into()
}

/// What is read of a volume's table, for the fuzz targets.
pub(crate) fn fuzzed_table(text: &str) {
    let flags = flags_in(text);
    for word in ["no_read_workqueue", "sector_size:{value}"] {
        let value = value_in(&flags, word);
        assert!(value.len() <= text.len().max(DEFAULT.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_volume_are_behind_what_it_is_made_of() {
        let table =
            "0 57344 crypt aes-xts-plain64 00000000 0 254:1 8192 2 allow_discards no_read_workqueue\n";
        assert_eq!(flags_in(table), ["allow_discards", "no_read_workqueue"]);
        assert!(flags_in("0 57344 crypt aes-xts-plain64 00000000 0 254:1 8192\n").is_empty());
        assert!(flags_in("").is_empty());
    }

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
