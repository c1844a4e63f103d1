//! Switchbacks: which settings can take turns within one load, and how the load is cut.

use super::choices::Design;
use super::parts::{ExperimentFile, ServerPart, SwitchPart};
use super::settings_of;
use pgdyno_engine::Protocol;
use pgdyno_knobs::{CarryOver, Catalogue, Cost, Knob};
use pgdyno_record::{Given, Metric, Source};
use std::time::Duration;

/// Measured seconds of a turn. Checkpoints and their like last longer, and meet several treatments.
pub(super) const SLICE_S: f64 = 3.0;
/// Of the turns of servers: what disturbs a host lasts longer, and a transaction is usually
/// shorter.
pub(super) const SERVERS_SLICE_S: f64 = 0.05;
/// Transactions that began before a change have ended by then. The change itself takes a part of a
/// second: together they are one.
const WASH_OUT_LEAST_S: f64 = 0.5;
/// After knobs whose effect is gone in a few seconds.
const WASH_OUT_SECONDS_S: f64 = 5.0;
/// A load is not longer than about this: whatever goes wrong in it, no more is lost.
const LOAD_MAX_S: f64 = 600.0;
const SECONDS_MAX: f64 = 86_400.0;

/// How the load of a switchback is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slices {
    /// Measured seconds of a turn.
    pub(crate) measured_s: u32,
    /// Seconds after each change that are not measured.
    pub(crate) wash_out_s: f64,
    /// Turns of each treatment in a block.
    pub(crate) rounds: u32,
}

impl Slices {
    /// Those of a file; `None` of other designs.
    pub(crate) fn of(file: &ExperimentFile) -> Option<Slices> {
        let SwitchPart { slice_s, wash_out_s } = file.switch;
        let slice_s = slice_s.unwrap_or(SLICE_S);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds of at most a day"
        )]
        let (measured_s, rounds) = (
            slice_s as u32,
            (file.load.measure_s.unwrap_or(0.0) / slice_s).ceil().max(1.0) as u32,
        );
        let is_of_settings = file.design == Design::Switchback && turns_of_servers(file).is_none();
        is_of_settings.then_some(Slices {
            measured_s,
            wash_out_s: wash_out_s.unwrap_or(WASH_OUT_LEAST_S),
            rounds,
        })
    }

    /// Seconds of a turn, which begin with whole ones of the load.
    pub(crate) fn turn_s(self) -> f64 {
        f64::from(self.measured_s) + self.wash_out_s.ceil()
    }

    /// Seconds that a treatment takes in a block.
    pub(crate) fn trial_s(self) -> f64 {
        f64::from(self.rounds) * self.turn_s()
    }

    /// Blocks of so many treatments that one load has at most.
    pub(crate) fn blocks_of_load(self, treatments: u32) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of blocks"
        )]
        let blocks = (LOAD_MAX_S / (self.trial_s() * f64::from(treatments))) as u32;
        blocks.max(1)
    }
}

/// Length of the turns, where servers take turns that each treatment has of its own.
pub(crate) fn turns_of_servers(file: &ExperimentFile) -> Option<Duration> {
    let has_server = |server: &ServerPart| *server != ServerPart::default();
    let is_of_servers =
        file.design == Design::Switchback && file.parts().iter().any(|part| has_server(&part.server));
    let slice_s = file.switch.slice_s.unwrap_or(SERVERS_SLICE_S);
    is_of_servers.then(|| Duration::from_secs_f64(slice_s.clamp(0.0, SECONDS_MAX)))
}

/// Seconds after a change of the file's settings that carry the one before over.
pub(super) fn wash_out_s(file: &ExperimentFile, catalogue: &Catalogue) -> f64 {
    let parts = file.parts();
    let settings = parts.iter().flat_map(|part| settings_of(&part.settings));
    let carries = settings.filter_map(|setting| catalogue.find(&setting.knob)?.carry_over);
    match carries.max() {
        Some(CarryOver::Seconds) => WASH_OUT_SECONDS_S,
        _ => WASH_OUT_LEAST_S,
    }
}

/// Why settings of a knob cannot take turns within one load that sends its statements so; `None`
/// where they can.
pub fn why_not_in_turns(knob: &Knob, protocol: Protocol) -> Option<&'static str> {
    match (knob.cost, knob.carry_over) {
        (Cost::Restart | Cost::Remount | Cost::Reboot, _) => Some("it takes effect only after a restart"),
        (_, Some(CarryOver::Plans)) if protocol == Protocol::Prepared => Some(
            "plans of prepared statements keep the old value; protocol = \"extended\" in [load] makes new ones",
        ),
        (_, Some(CarryOver::None | CarryOver::Plans | CarryOver::Seconds)) => None,
        (_, Some(CarryOver::Caches)) => Some("its effect on caches, tables or files lasts for minutes"),
        (_, Some(CarryOver::Sessions)) => Some("sessions that are connected keep the old value"),
        (_, None) => Some("how long its effect stays is not known"),
    }
}

/// Whether the turns of a treatment within a load have a metric, and not the load as a whole alone.
pub(super) fn is_of_turns(metric: &Metric) -> bool {
    !matches!(metric.source, Source::Processes | Source::Wal) && metric.given != Given::OfTpcc
}
