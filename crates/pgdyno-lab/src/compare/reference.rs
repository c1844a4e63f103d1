//! What a comparison names: an experiment, one of its treatments, or one of its trials.

use std::fmt;
use std::str::FromStr;

/// Longer texts are no reference: names of treatments are far shorter.
const LENGTH_MAX: usize = 1000;
/// The word for the newest experiment.
const LAST: &str = "last";

/// As `3`, `3:memory`, `3/12`, `last`, `last:memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Number of the experiment; `None` for the newest of the store.
    pub experiment: Option<i64>,
    /// All of its treatments, one treatment, or one trial.
    pub which: Which,
}

/// The part of an experiment that a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All its treatments.
    All,
    /// The treatment of this name.
    Treatment(String),
    /// The trial of this number, as the store counts them.
    Trial(i64),
}

/// A text that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" names no experiment: {what}; expected as 3 (an experiment), 3:memory (its treatment), 3/12 (its trial), or \
     last in place of the number"
)]
pub struct WrongReference {
    text: String,
    what: &'static str,
}

impl FromStr for Reference {
    type Err = WrongReference;

    /// Everything behind the first colon is the name of a treatment: names hold spaces, commas and
    /// colons.
    fn from_str(text: &str) -> Result<Reference, WrongReference> {
        let wrong = |what| WrongReference {
            text: text.chars().take(80).collect(),
            what,
        };
        if text.len() > LENGTH_MAX {
            return Err(wrong("it is too long"));
        }
        let (number, which) = if let Some((number, name)) = text.split_once(':') {
            let name = name.trim();
            if name.is_empty() {
                return Err(wrong("expected a treatment after the colon"));
            }
            (number, Which::Treatment(name.to_owned()))
        } else if let Some((number, trial)) = text.split_once('/') {
            let trial =
                positive(trial).ok_or_else(|| wrong("expected the number of a trial after the slash"))?;
            (number, Which::Trial(trial))
        } else {
            (text, Which::All)
        };
        let experiment = match number.trim() {
            LAST => None,
            number => Some(positive(number).ok_or_else(|| wrong("it begins with no number"))?),
        };
        Ok(Reference { experiment, which })
    }
}

fn positive(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|number| *number > 0)
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.experiment {
            Some(number) => write!(f, "{number}")?,
            None => f.write_str(LAST)?,
        }
        match &self.which {
            Which::All => Ok(()),
            Which::Treatment(name) => write!(f, ":{name}"),
            Which::Trial(number) => write!(f, "/{number}"),
        }
    }
}
