//! Where a knob is on the host of a target, for what is written for other programs.

use super::{Mechanism, Reader};
use crate::catalogue::split;

/// Where a knob is on the host of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Its files; a `*` means all that are there.
    Files(Vec<String>),
    /// This host does not have it, for this reason.
    Nowhere(String),
    /// No host was given to read.
    Unknown,
}

impl Place {
    /// Where a reader finds it.
    pub fn of(reader: &Reader<'_>, setting: &str) -> Place {
        let files = match reader.mechanism(setting) {
            Ok(Mechanism::Files(files)) => files,
            Ok(_) => return Place::Unknown,
            Err(error) => {
                // The caller prints the name of the knob.
                let (text, id) = (error.to_string(), split(setting).0);
                let rest = text.strip_prefix(id).and_then(|rest| rest.strip_prefix(": "));
                return Place::Nowhere(rest.unwrap_or(&text).to_owned());
            }
        };
        let pattern = reader.catalogue.find(setting).and_then(|knob| {
            let all = |address: &&String| address.contains('*') && !address.contains('{');
            knob.addresses.iter().find(all).cloned()
        });
        match pattern.filter(|_| files.len() > 1) {
            Some(pattern) => Place::Files(vec![pattern]),
            None => Place::Files(files.into_iter().map(|(address, _)| address.path).collect()),
        }
    }
}
