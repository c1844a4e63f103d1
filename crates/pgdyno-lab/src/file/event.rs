//! When an event is, and what it is called.

use super::parts::EventPart;
use super::settings_of;
use pgdyno_engine::duration;

impl EventPart {
    /// Seconds of the measured time before it.
    pub(crate) fn at_s(&self) -> f64 {
        duration(&self.at).map_or(0.0, |at| at.as_secs_f64())
    }

    /// Its title, or what is done.
    pub fn titled(&self) -> String {
        if let Some(title) = &self.title {
            return title.clone();
        }
        let settings = settings_of(&self.settings);
        let settings: Vec<String> = settings
            .iter()
            .map(|setting| format!("{} = {}", setting.knob, setting.value))
            .collect();
        match (self.kill, &self.neighbour) {
            (true, _) => "the server is killed".to_owned(),
            (false, Some(_)) => "a neighbour starts".to_owned(),
            (false, None) => settings.join(", "),
        }
    }
}
