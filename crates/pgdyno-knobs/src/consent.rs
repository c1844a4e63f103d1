//! Consent as a type: what can lose committed data in a crash is applied only where the user has
//! accepted that for its knob.

use crate::catalogue::{Catalogue, CatalogueError, Risk, Setting};
use pgdyno_record::ErrorClass;
use std::ops::Deref;

/// Something that may be applied: no committed data is at risk, or the user has accepted the risk.
/// Made by [`Catalogue::agree`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed<T>(T);

impl<T> Deref for Agreed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What mends the lack of consent to a risk for durability.
pub const AGREE_TO_RISK: &str = "--accept-durability-risk KNOB agrees to it for this one run";

/// Why a setting is not agreed to.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// The catalogue does not have it.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// It can lose committed data, and nobody has accepted that.
    #[error("{knob} = {value} can lose committed data in a crash: this needs consent")]
    Durability {
        /// Id of the knob.
        knob: String,
        /// Value that can lose data.
        value: String,
    },
}

impl ConsentError {
    /// Durability is not traded without consent.
    pub fn class(&self) -> ErrorClass {
        match self {
            ConsentError::Catalogue(error) => error.class(),
            ConsentError::Durability { .. } => ErrorClass::Refused,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ConsentError::Catalogue(error) => error.hint(),
            ConsentError::Durability { .. } => Some(AGREE_TO_RISK),
        }
    }
}

impl Catalogue {
    /// Agrees to a setting; `accepted` are the ids of the knobs whose risk the user has accepted.
    ///
    /// # Errors
    ///
    /// A setting that can lose committed data and is not accepted; an unknown knob.
    pub fn agree(&self, setting: &Setting, accepted: &[String]) -> Result<Agreed<Setting>, ConsentError> {
        let knob = self.get(&setting.knob)?;
        let is_risky = knob.risk_of(&setting.value) == Risk::Durability;
        match !is_risky || accepted.contains(&knob.id) || accepted.contains(&setting.knob) {
            true => Ok(Agreed(setting.clone())),
            false => Err(ConsentError::Durability {
                knob: setting.knob.clone(),
                value: setting.value.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_that_can_lose_data_is_agreed_to_for_its_own_knob_alone() {
        let catalogue = Catalogue::shipped().unwrap();
        let fsync = |value: &str| Setting {
            knob: "fsync".to_owned(),
            value: value.to_owned(),
        };
        let agree = |value: &str, accepted: &[&str]| {
            let accepted: Vec<String> = accepted.iter().map(|knob| (*knob).to_owned()).collect();
            catalogue.agree(&fsync(value), &accepted)
        };
        assert_eq!(*agree("on", &[]).unwrap(), fsync("on"));
        assert_eq!(*agree("off", &["fsync"]).unwrap(), fsync("off"));
        for accepted in [&[][..], &["full_page_writes"]] {
            let error = agree("off", accepted).unwrap_err();
            assert!(matches!(error, ConsentError::Durability { .. }), "{error}");
        }
    }
}
