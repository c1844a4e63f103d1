//! What is asked for by name: settings, and those of profiles that can be applied here.

use crate::commands::profile::{self, Looked};
use crate::context::Context;
use crate::failure::{Failure, Result, Several, Usage};
use pgdyno_knobs::{ApplyError, Objection, Reader, Setting, UndoUnitError};
use pgdyno_record::ErrorClass;
use pgdyno_sandbox::ControlError;

/// A setting that is asked for.
pub(super) struct Wanted {
    pub(super) setting: Setting,
    /// Of a profile, what cannot be applied here is skipped, by name.
    pub(super) of_profile: bool,
    pub(super) is_now: bool,
}

/// KNOB=VALUE and names of profiles, in order; a later value of a knob takes the place of an
/// earlier one.
pub(super) fn wanted(context: &Context, words: &[String], server: Option<&str>) -> Result<Vec<Wanted>> {
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
            None if context.catalogue.find(word).is_some() => {
                let message = format!("\"{word}\" is a knob: expected KNOB=VALUE, or the name of a profile");
                return Err(Usage(message).into());
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
        let message = format!(
            "{} and {} exclude each other: name one of them",
            one.knob, other.knob
        );
        return Err(Usage(message).into());
    }
    Ok(all)
}

fn of_profile(context: &Context, looked: &Looked, name: &str) -> Result<Vec<Wanted>> {
    let resolved = profile::resolve(context, looked, name)?;
    for left in &resolved.skipped {
        err!("{name}: {} is skipped: {}", left.knob, left.because);
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

/// What can be applied here, and all that keeps settings that were named from it. What cannot be
/// applied of a profile is skipped.
pub(super) fn possible<'w>(
    reader: &Reader<'_>,
    wanted: impl Iterator<Item = &'w Wanted>,
) -> (Vec<Setting>, Vec<Trouble>) {
    let (mut settings, mut troubles) = (Vec::new(), Vec::new());
    for Wanted {
        setting, of_profile, ..
    } in wanted
    {
        let objections = reader.objections(setting);
        match objections.first() {
            None => settings.push(setting.clone()),
            Some(objection) if *of_profile => {
                err!(
                    "{} = {} is not applied: {}",
                    setting.knob,
                    setting.value,
                    objection.error
                );
            }
            Some(_) => troubles.extend(
                objections
                    .into_iter()
                    .map(|objection| Trouble::of(setting, objection)),
            ),
        }
    }
    (settings, troubles)
}

/// Something that keeps a setting from being applied.
pub(super) struct Trouble {
    error: Failure,
    mends: Vec<String>,
}

impl Trouble {
    /// `error` has its own hint.
    pub(super) fn new(error: Failure) -> Trouble {
        Trouble {
            error,
            mends: Vec::new(),
        }
    }

    pub(super) fn with(self, mends: Vec<String>) -> Trouble {
        Trouble { mends, ..self }
    }

    fn of(setting: &Setting, objection: Objection) -> Trouble {
        let Objection { error, mut mends } = objection;
        if matches!(&error, ApplyError::Control(ControlError::NotAllowed)) {
            mends = vec!["--allow-restart".to_owned()];
        }
        // Its hint says more: which files not even root may have.
        if matches!(&error, ApplyError::UndoUnit(UndoUnitError::Host(error)) if error.is_refused()) {
            mends.clear();
        }
        let what = format!("{} = {}", setting.knob, setting.value);
        Trouble {
            error: Failure::from(error).context(what),
            mends,
        }
    }

    fn text(&self) -> String {
        let mut text = self.error.to_string();
        let hint = self.error.hint().filter(|_| self.mends.is_empty());
        for mend in self.mends.iter().map(String::as_str).chain(hint) {
            text += &format!("\n      hint: {mend}");
        }
        text
    }
}

/// One error of all that keeps settings from being applied; `Ok` where there is none.
pub(super) fn refused(mut troubles: Vec<Trouble>) -> Result<()> {
    const NOTHING: &str = "nothing was changed";
    // One alone keeps its own hint.
    if troubles.len() == 1
        && troubles[0].mends.is_empty()
        && let Some(Trouble { error, .. }) = troubles.pop()
    {
        return Err(error.context(NOTHING));
    }
    // What every setting needs of the role is said once.
    let mut lines: Vec<String> = Vec::new();
    for trouble in &troubles {
        let line = format!("\n  - {}", trouble.text());
        let end = line.split_once(": ").map_or("", |(_, end)| end);
        if !lines
            .iter()
            .any(|other| !trouble.mends.is_empty() && other.ends_with(end))
        {
            lines.push(line);
        }
    }
    let classes: Vec<ErrorClass> = troubles.iter().map(|trouble| trouble.error.class()).collect();
    let gravest = [ErrorClass::Refused, ErrorClass::Usage]
        .into_iter()
        .find(|class| classes.contains(class));
    match troubles.is_empty() {
        true => Ok(()),
        false => Err(Several {
            text: format!("{NOTHING}:{}", lines.concat()),
            class: gravest.unwrap_or(ErrorClass::Failed),
        }
        .into()),
    }
}
