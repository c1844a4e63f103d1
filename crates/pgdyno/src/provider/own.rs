//! A sandbox that an experiment makes for itself: its name, and the proof that it is nobody else's.

use crate::cli::CreateArgs;
use crate::commands::sandbox;
use crate::context::Context;
use crate::failure::{Failure, InContext as _, Result};
use crate::sandboxes::{create, mark_of, marks};
use pgdyno_host::{Owner, USUAL_MODE, make_directory};
use pgdyno_lab::{Place, ServerVariant};
use pgdyno_record::short_hash;
use pgdyno_sandbox::{DEFAULT_MAJOR, FileSystemPlan, Holds, Network, NetworkPlan, Sandbox, State};
use std::path::PathBuf;

/// Longest name of a sandbox.
const NAME_MAX: usize = 40;
/// Names of its standbys are so much longer.
const STANDBY_NAME_MORE: usize = "-standby-1".len();

/// A sandbox's name, and the file that says that it is an experiment's, and which server it is. The
/// file is there before the sandbox is, and goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) name: String,
    mark: PathBuf,
    /// Text of the file.
    text: String,
}

impl Claim {
    pub(super) fn of(context: &Context, base: &str, variant: &ServerVariant) -> Claim {
        let text = text_of(base, variant);
        let record = Sandbox::open(&context.sandboxes(), base).map(|sandbox| sandbox.record().clone());
        let longest = match record.is_ok_and(|record| record.standbys.is_some()) {
            true => NAME_MAX - STANDBY_NAME_MORE,
            false => NAME_MAX,
        };
        let name = name_of(base, variant, &text, longest);
        Claim {
            mark: mark_of(context, &name),
            name,
            text,
        }
    }

    fn exists(&self, context: &Context) -> bool {
        context.sandboxes().join(&self.name).exists()
    }

    fn is_ours(&self) -> bool {
        pgdyno_host::given_text(&self.mark).is_ok_and(|text| text == self.text)
    }

    /// Whether there is such a sandbox, and an experiment has made it.
    pub(super) fn is_there(&self, context: &Context) -> bool {
        self.exists(context) && self.is_ours()
    }

    /// Makes the sandbox where there is none; one that is somebody else's is left alone.
    pub(super) fn ensure(&self, context: &Context, base: &str, variant: &ServerVariant) -> Result<()> {
        if self.exists(context) {
            if !self.is_ours() {
                fail!(
                    "there is a sandbox \"{0}\" that no experiment has made; `pgdyno sandbox destroy {0}` removes it",
                    self.name
                );
            }
            let whole = Sandbox::open(&context.sandboxes(), &self.name);
            if whole.is_ok_and(|sandbox| sandbox.state() != State::HalfMade) {
                return Ok(());
            }
            // An experiment was killed while it was made.
            sandbox::destroy(context, &self.name)?;
        }
        let args = like(context, base, &self.name, variant)?;
        let wrong = || format!("{} could not be written", self.mark.display());
        make_directory(&marks(context), USUAL_MODE)
            .and_then(|marks| marks.replace(&self.name, self.text.as_bytes(), Owner::own(0o644)))
            .with_context(wrong)?;
        create(context, &args)?;
        Ok(())
    }
}

/// The text of a mark. Names of sandboxes that exist depend on it, so it stays as it is whatever
/// the type is called.
fn text_of(base: &str, variant: &ServerVariant) -> String {
    let ServerVariant {
        version,
        bin,
        data_on,
        wal_on,
        temp_on,
        network,
        instance,
        beside,
    } = variant;
    let temp = match temp_on {
        None => String::new(),
        Some(temp) => format!(", temp_on: {temp:?}"),
    };
    let bin = match bin {
        None => String::new(),
        Some(bin) => format!(", bin: {bin:?}"),
    };
    let instance = match instance {
        None => String::new(),
        Some(instance) => format!(", instance: {instance}"),
    };
    let beside = match beside {
        0 => String::new(),
        beside => format!(", beside: {beside}"),
    };
    format!(
        "{base}: Stand {{ version: {version:?}, data_on: {data_on:?}, wal_on: {wal_on:?}, network: {network:?}{temp}{bin}{instance}{beside} }}\n"
    )
}

/// A hash distinguishes names that a label makes alike: by case, by kind of separator, or by what
/// is cut off.
fn name_of(base: &str, variant: &ServerVariant, text: &str, longest: usize) -> String {
    let hash = format!("-{}", short_hash(text));
    let name = format!("{base}-{}", variant.label().to_lowercase());
    let name: String = name.chars().take(longest - hash.len()).collect();
    format!("{}{hash}", name.trim_end_matches('-'))
}

/// Arguments for the sandbox: as the target's, except for what the variant names.
fn like(context: &Context, base: &str, name: &str, variant: &ServerVariant) -> Result<CreateArgs> {
    let sandbox = Sandbox::open(&context.sandboxes(), base)?;
    let record = sandbox.record().clone();
    let major = variant.version.or(record.major());
    let place = |text: &Option<String>| {
        let place = text.as_deref().map(Place::named).transpose();
        place.map_err(Failure::new)
    };
    let directory = |place: &Option<Place>| match place {
        Some(Place::Directory(directory)) => Some(directory.join(name)),
        _ => None,
    };
    let made = |place: &Option<Place>| match place {
        Some(Place::Made(plan)) => Some(*plan),
        _ => None,
    };
    let (data, wal, temp) = (
        place(&variant.data_on)?,
        place(&variant.wal_on)?,
        place(&variant.temp_on)?,
    );
    // One of several that are made alike is as the first is, and that may be the target.
    let first = ServerVariant {
        instance: None,
        beside: 0,
        ..variant.clone()
    };
    let is_as_target = first.is_target();
    let as_target = |holds: Holds| {
        let mut own = record.file_systems.iter();
        let own = own.find(|own| own.holds == holds && is_as_target)?;
        Some(FileSystemPlan {
            kind: own.kind,
            size_bytes: own.size_bytes,
        })
    };
    let configuration = is_as_target.then(|| sandbox.configuration());
    Ok(CreateArgs {
        // Another version has another directory.
        pg_bin: match &variant.bin {
            Some(bin) => Some(PathBuf::from(bin)),
            None => variant.version.is_none().then_some(record.bin),
        },
        data: directory(&data),
        wal: directory(&wal).map(|path| path.with_extension("wal")),
        temp: directory(&temp).map(|path| path.with_extension("temp")),
        filesystem: made(&data).or_else(|| as_target(Holds::Data)),
        wal_filesystem: made(&wal).or_else(|| as_target(Holds::Wal)),
        temp_filesystem: made(&temp).or_else(|| as_target(Holds::Temp)),
        configuration: configuration.transpose()?,
        network: match &variant.network {
            Some(network) => Some(NetworkPlan::named(network).map_err(Failure::new)?),
            None => record.network.as_ref().map(Network::plan),
        },
        listen: record.listen.filter(|_| variant.network.is_none()),
        cpus: record.limits.cpus,
        memory: record.limits.memory_bytes,
        iops: record.limits.iops,
        bandwidth: record.limits.bandwidth_bytes_per_s,
        standbys: record.standbys.map(|standbys| standbys.count),
        sync: record.standbys.is_some_and(|standbys| standbys.is_sync),
        ..CreateArgs::plain(name, major.unwrap_or(DEFAULT_MAJOR))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_look_alike_have_names_of_their_own() {
        let variant = |place: &str| ServerVariant {
            data_on: Some(place.to_owned()),
            ..ServerVariant::default()
        };
        let name = |base: &str, place: &str| {
            let variant = variant(place);
            name_of(base, &variant, &text_of(base, &variant), NAME_MAX)
        };
        let long = "a-sandbox-with-a-name-of-forty-letters--";
        let names = [
            name("main", "/mnt/a-b"),
            name("main", "/mnt/a/b"),
            name("main", "tmpfs:2G"),
            name(long, "tmpfs:2G"),
            name(long, "tmpfs:4G"),
        ];
        for (i, one) in names.iter().enumerate() {
            assert!(one.len() <= NAME_MAX, "{one}");
            assert!(!names[..i].contains(one), "{one}");
        }
        assert!(names[2].starts_with("main-data-tmpfs-2g-"), "{}", names[2]);
    }
}
