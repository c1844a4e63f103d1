//! `pgdyno profile`: sets of settings, shown, compared with a target, written for other programs.
//! Changes nothing.

mod text;

use crate::cli::{DiffArgs, ExportArgs, ForArgs, ProfileCommand};
use crate::context::Context;
use crate::exit;
use crate::failure::{InContext as _, Refused, Result, Usage};
use crate::target;
use pgdyno_advice::{
    Exported, Files, Known, Lacking, Now, Profile, ProfileSetting, Profiles, Resolved, export,
    is_profile_path,
};
use pgdyno_host::{Fact, HostAccess, USUAL_MODE, given_bytes, given_text, make_directory, replace_given};
use pgdyno_knobs::{ApplyError, Kind, Knob, Place, Reader, Setting, Target};
use pgdyno_lab::{SettingScope, collect_facts, collect_host_facts, runs_here};
use pgdyno_record::FactRecord;
use pgdyno_remote::CarriedFile;
use pgdyno_sandbox::{Control, ControlError};
use pgdyno_server::{Guc, Server};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Of the JSON that is printed; docs/reference/expressions.md describes it.
const FORMAT: &str = "pgdyno-profile/1";

pub(crate) fn run(context: &Context, command: ProfileCommand) -> Result<u8> {
    match command {
        ProfileCommand::List { json } => list(json),
        ProfileCommand::Show { profile, json } => show(&profile, json),
        ProfileCommand::Diff(args) => diff(context, &args),
        ProfileCommand::Export(args) => write(context, &args),
    }
}

fn list(json: bool) -> Result<u8> {
    let profiles = Profiles::shipped()?;
    if json {
        let all: Vec<Value> = profiles.iter().map(head).collect();
        put_page!("{:#}", json!({ "format": FORMAT, "profiles": all }));
    } else {
        put_page!("{}", text::list(&profiles.iter().collect::<Vec<_>>()));
    }
    Ok(exit::FINE)
}

fn head(profile: &Profile) -> Value {
    json!({
        "name": profile.name, "title": profile.title, "summary": profile.summary, "inherits": profile.inherits,
    })
}

fn show(name: &str, json: bool) -> Result<u8> {
    let mut profiles = Profiles::shipped()?;
    let profile = profiles.open(name, &GivenFiles(None))?.clone();
    let settings = profiles.flattened(name)?;
    if json {
        let mut document =
            json!({ "format": FORMAT, "profile": head(&profile), "measured": profile.measured });
        document["settings"] = settings
            .iter()
            .map(|(of, setting)| as_written(of, setting))
            .collect();
        put_page!("{document:#}");
    } else {
        put_page!("{}", text::shown(&profile, &settings, !is_profile_path(name)));
    }
    Ok(exit::FINE)
}

fn as_written(of: &Profile, setting: &ProfileSetting) -> Value {
    json!({
        "knob": setting.knob, "value": setting.value.shown(), "when": setting.when.as_ref().map(ToString::to_string),
        "only": setting.only.map(pgdyno_advice::Only::word), "reason": setting.reason, "source": setting.source,
        "profile": of.name,
    })
}

fn diff(context: &Context, args: &DiffArgs) -> Result<u8> {
    let (resolved, looked) = resolved(context, &args.of)?;
    if args.json {
        let mut document = json!({ "format": FORMAT, "target": looked.name });
        if let (Some(document), Value::Object(fields)) =
            (document.as_object_mut(), serde_json::to_value(&resolved)?)
        {
            document.extend(fields);
        }
        put_page!("{document:#}");
    } else {
        put_page!("{}", text::difference(&resolved, &looked.name));
    }
    Ok(exit::FINE)
}

fn write(context: &Context, args: &ExportArgs) -> Result<u8> {
    let (resolved, looked) = resolved(context, &args.of)?;
    let exported = export(
        &resolved,
        &context.catalogue,
        args.format.carrier(),
        &looked.name,
        &|knob| looked.place(context, knob),
    );
    match &args.output {
        None => put_page!("{}", exported.text.trim_end()),
        Some(output) => {
            let path = path_of(output, &exported);
            save(&path, &exported.text)?;
            err!("{}", path.display());
        }
    }
    if !exported.not_carried.is_empty() {
        err!(
            "this format cannot hold {} of {} settings: they are comments in it",
            exported.not_carried.len(),
            resolved.settings.len()
        );
    }
    Ok(exit::FINE)
}

fn path_of(output: &Path, exported: &Exported) -> PathBuf {
    let is_directory = output.is_dir() || output.as_os_str().to_string_lossy().ends_with('/');
    match is_directory {
        true => output.join(&exported.file),
        false => output.to_owned(),
    }
}

/// Whole or not at all. A file of somebody else's is not written over.
fn save(path: &Path, text: &str) -> Result<()> {
    if path.exists() && !given_text(path).is_ok_and(|there| Exported::is_one(&there)) {
        return Err(Refused(format!(
            "{} exists and is not an exported profile; it is not overwritten",
            path.display()
        ))
        .into());
    }
    let wrong = || format!("writing {}", path.display());
    if let Some(directory) = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        make_directory(directory, USUAL_MODE).with_context(wrong)?;
    }
    replace_given(path, text.as_bytes(), 0o644).with_context(wrong)
}

/// What was found out about a target.
pub(crate) struct Looked {
    /// For people; no secret in it.
    pub(crate) name: String,
    /// Facts and settings by name.
    pub(crate) known: Known,
    settings: Vec<Guc>,
    target: Option<Target>,
    /// Whether the host that is read is the target's.
    is_here: bool,
}

impl Looked {
    /// Goes by facts that the user gives, in place of those that were found.
    pub(crate) fn take_given(&mut self, given: &[(String, String)]) -> Result<()> {
        for (name, value) in given {
            if let Err(why @ (Lacking::Unknown { .. } | Lacking::Room { .. })) = self.known.get(name) {
                return Err(Usage(format!("--given {name}={value}: {why}")).into());
            }
            self.known = self.known.given_text(name, value);
        }
        Ok(())
    }

    fn reader<'a>(&'a self, context: &'a Context) -> Reader<'a> {
        Reader {
            host: &context.host,
            catalogue: &context.catalogue,
            target: self.target.as_ref(),
            journals: None,
        }
    }

    /// What a knob is now; parameters come from the settings that were read once.
    pub(crate) fn current(&self, context: &Context, knob: &str) -> Now {
        let is_parameter = |of: &Knob| of.kind == Kind::Guc;
        if context.catalogue.find(knob).is_some_and(is_parameter) {
            let guc = self.settings.iter().find(|guc| guc.name == knob);
            return guc.map_or(Now::Unknown, |guc| Now::Is(guc.shown.clone()));
        }
        match self.place(context, knob) {
            Place::Nowhere(why) => Now::Nowhere(why),
            _ if self.is_here => {
                let value = self.reader(context).current(knob);
                value.map_or(Now::Unknown, Now::Is)
            }
            _ => Now::Unknown,
        }
    }

    /// What keeps a setting from being applied, if anything does; a restart does not where it is
    /// allowed.
    pub(crate) fn objection(
        &self,
        context: &Context,
        setting: &Setting,
        scope: SettingScope,
        allows_restart: bool,
    ) -> Option<String> {
        let is_allowed = |error: &ApplyError| {
            allows_restart && matches!(error, ApplyError::Control(ControlError::NotAllowed))
        };
        let objections = match scope {
            SettingScope::Server => self.reader(context).objections(setting),
            SettingScope::Session => self.reader(context).session_objections(setting),
        };
        let first = objections
            .into_iter()
            .find(|objection| !is_allowed(&objection.error));
        first.map(|objection| objection.error.to_string())
    }

    fn place(&self, context: &Context, knob: &str) -> Place {
        match self.is_here {
            true => Place::of(&self.reader(context), knob),
            false => Place::Unknown,
        }
    }
}

/// Facts and settings of a target, or of this host alone.
pub(crate) fn look(context: &Context, target: Option<&str>) -> Result<Looked> {
    let plain = |records: Vec<FactRecord>| -> Vec<Fact> {
        let fact = |record: FactRecord| Fact {
            name: record.name,
            value: record.value,
            missing: record.missing,
            source: record.source,
        };
        records.into_iter().map(fact).collect()
    };
    let Some(text) = target else {
        return Ok(Looked {
            name: "this host, without a server".into(),
            known: Known::new(&plain(collect_host_facts(&context.host)), &[]),
            settings: Vec::new(),
            target: None,
            is_here: true,
        });
    };
    let target = target::read_only(context, text)?;
    let mut server = Server::connect(&target.conninfo)?;
    let is_here = runs_here(&context.host, &mut server);
    let host: Option<&dyn HostAccess> = if is_here { Some(&context.host) } else { None };
    let sandbox = match &target.control {
        Control::Sandbox(sandbox) => Some(sandbox.as_ref()),
        _ => None,
    };
    let collected = collect_facts(host, &mut server, sandbox)?;
    Ok(Looked {
        name: match sandbox {
            Some(sandbox) => format!("sandbox {}", sandbox.record().name),
            None => target.conninfo.to_string(),
        },
        known: Known::new(&plain(collected.facts), &collected.settings),
        settings: collected.settings,
        target: Some(target),
        is_here,
    })
}

/// Profiles in files that the user names: this host's, or those that came with the command from
/// another host.
struct GivenFiles<'a>(Option<&'a [CarriedFile]>);

impl Files for GivenFiles<'_> {
    fn full_name(&self, path: &Path) -> Option<PathBuf> {
        match self.0 {
            Some(carried) => carried_file(carried, path).map(|file| PathBuf::from(&file.full_name)),
            None => path.canonicalize().ok(),
        }
    }

    fn bytes(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
        match self.0 {
            Some(carried) => {
                let named = carried_file(carried, path);
                let same = |file: &&CarriedFile| named.is_some_and(|named| named.full_name == file.full_name);
                let content = carried.iter().filter(same).find_map(|file| file.content.clone());
                content
                    .map(String::into_bytes)
                    .ok_or_else(|| "there is no such file".to_owned())
            }
            None => given_bytes(path, bytes_max).map_err(|error| error.to_string()),
        }
    }
}

fn carried_file<'a>(carried: &'a [CarriedFile], path: &Path) -> Option<&'a CarriedFile> {
    carried.iter().find(|file| Path::new(&file.path) == path)
}

/// The files of a profile, if its name is that of a file: to be carried to another host.
pub(crate) fn files_of(name: &str) -> Result<Vec<CarriedFile>> {
    let files = Recording::default();
    if is_profile_path(name) {
        Profiles::shipped()?.open(name, &files)?;
    }
    Ok(files.0.into_inner())
}

/// Keeps what is asked for, and what is read.
#[derive(Default)]
struct Recording(RefCell<Vec<CarriedFile>>);

impl Recording {
    fn keep(&self, path: &Path, content: Option<String>) -> Option<PathBuf> {
        let full_name = GivenFiles(None).full_name(path);
        self.0.borrow_mut().push(CarriedFile {
            path: path.to_string_lossy().into_owned(),
            full_name: full_name
                .as_deref()
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned(),
            content,
        });
        full_name
    }
}

impl Files for Recording {
    fn full_name(&self, path: &Path) -> Option<PathBuf> {
        self.keep(path, None)
    }

    fn bytes(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
        let bytes = GivenFiles(None).bytes(path, bytes_max)?;
        let content = String::from_utf8(bytes.clone()).map_err(|error| error.to_string())?;
        self.keep(path, Some(content));
        Ok(bytes)
    }
}

/// A profile resolved for a target or host that was read.
pub(crate) fn resolve(context: &Context, looked: &Looked, profile: &str) -> Result<Resolved> {
    let current = |knob: &str| looked.current(context, knob);
    let mut profiles = Profiles::shipped()?;
    profiles.open(profile, &GivenFiles(context.carried()))?;
    Ok(profiles.resolve(
        profile,
        &looked.known,
        &context.catalogue,
        looked.known.major(),
        &current,
    )?)
}

/// What a profile sets on a target, by these facts in place of those that are found out; prints
/// what is skipped.
pub(crate) fn settings_for(
    context: &Context,
    name: &str,
    target: &str,
    given: &[(String, String)],
) -> Result<Vec<Setting>> {
    let mut looked = look(context, Some(target))?;
    looked.take_given(given)?;
    let resolved = resolve(context, &looked, name)?;
    for left in &resolved.skipped {
        err!("{name}: {} is skipped: {}", left.knob, left.shown());
    }
    Ok(resolved.to_apply())
}

fn resolved(context: &Context, args: &ForArgs) -> Result<(Resolved, Looked)> {
    // A profile that cannot be read is reported before a server is asked.
    Profiles::shipped()?.open(&args.profile, &GivenFiles(context.carried()))?;
    let target = args.target.as_deref().filter(|_| !args.host_only);
    let mut looked = look(context, target)?;
    looked.take_given(&args.given)?;
    let resolved = resolve(context, &looked, &args.profile)?;
    Ok((resolved, looked))
}
