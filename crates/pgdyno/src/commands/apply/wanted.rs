//! What is asked for by name: settings, and those of profiles that can be applied here.

use crate::commands::profile::{self, Looked};
use crate::context::Context;
use crate::exit::Usage;
use pgdyno_knobs::{Reader, Setting};

/// A setting that is asked for.
pub(super) struct Wanted {
    pub(super) setting: Setting,
    /// Of a profile, what cannot be applied here is left out, by name.
    pub(super) of_profile: bool,
    pub(super) is_now: bool,
}

/// KNOB=VALUE and names of profiles, in order; a later value of a knob takes the place of an earlier one.
pub(super) fn wanted(
    context: &Context,
    words: &[String],
    server: Option<&str>,
) -> anyhow::Result<Vec<Wanted>> {
    let mut all: Vec<Wanted> = Vec::new();
    let mut looked = None;
    for word in words {
        let new = match word.split_once('=') {
            Some((knob, value)) => {
                let setting = Setting {
                    knob: knob.trim().to_owned(),
                    value: value.trim().to_owned(),
                };
                context.catalogue.check(&setting)?;
                vec![Wanted {
                    setting,
                    of_profile: false,
                    is_now: false,
                }]
            }
            None if context.catalogue.get(word).is_ok() => {
                let words = format!("\"{word}\" is a knob: expected KNOB=VALUE, or the name of a profile");
                return Err(Usage(words).into());
            }
            None => {
                if looked.is_none() {
                    looked = Some(profile::look(context, server)?);
                }
                match &looked {
                    Some(looked) => of_profile(context, looked, word)?,
                    None => Vec::new(),
                }
            }
        };
        for wanted in new {
            all.retain(|other| other.setting.knob != wanted.setting.knob);
            all.push(wanted);
        }
    }
    if all.is_empty() {
        return Err(Usage("nothing to apply: name a profile or KNOB=VALUE".into()).into());
    }
    let settings: Vec<Setting> = all.iter().map(|wanted| wanted.setting.clone()).collect();
    if let Some((one, other)) = context.catalogue.conflict(&settings) {
        let words = format!(
            "{} and {} exclude each other: name one of them",
            one.knob, other.knob
        );
        return Err(Usage(words).into());
    }
    Ok(all)
}

fn of_profile(context: &Context, looked: &Looked, name: &str) -> anyhow::Result<Vec<Wanted>> {
    let resolved = profile::resolve(context, looked, name)?;
    for left in &resolved.left_out {
        tell!("{name}: {} is left out: {}", left.knob, left.because);
    }
    let settings = resolved.to_apply().into_iter().zip(&resolved.settings);
    Ok(settings
        .map(|(setting, line)| Wanted {
            setting,
            of_profile: true,
            is_now: line.is_now,
        })
        .collect())
}

/// What can be applied here. Nothing is changed where a part of what was named could not be; of a profile that part is left
/// out.
pub(super) fn possible<'w>(
    reader: &Reader<'_>,
    wanted: impl Iterator<Item = &'w Wanted>,
) -> anyhow::Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for Wanted {
        setting, of_profile, ..
    } in wanted
    {
        match reader.check(setting) {
            Ok(()) => settings.push(setting.clone()),
            Err(error) if *of_profile => {
                tell!("{} = {} is not applied: {error}", setting.knob, setting.value);
            }
            Err(error) => {
                let what = format!("nothing was changed: {} = {}", setting.knob, setting.value);
                return Err(anyhow::Error::new(error).context(what));
            }
        }
    }
    Ok(settings)
}
