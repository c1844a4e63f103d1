//! What must hold of a switchback: settings that can take turns, and nothing that a turn has not got.

use super::{Check, Checked};
use crate::file::choices::{Design, Instances, LoadOn};
use crate::file::parts::{DataPart, LoadPart, ServerPart, StepPart, SwitchPart};
use crate::file::settings_of;
use crate::file::switch::{SLICE_S, wash_out_s, why_not_in_turns};
use pgdyno_engine::Protocol;

const SLICE_MAX_S: u32 = 60;
const WASH_OUT_MAX_S: f64 = 600.0;

impl Check<'_> {
    pub(super) fn switchback(&self) -> Checked {
        let file = self.file;
        if file.design != Design::Switchback {
            return self.must(file.switch == SwitchPart::default(), &["switch"], || {
                format!(
                    "[switch] is of design = \"switchback\", and this one is \"{}\"",
                    file.design.name()
                )
            });
        }
        self.cut()?;
        let load = &file.load;
        let only_plain = load.program.is_none() && load.checkpoint_cycles.is_none() && load.crash.is_none();
        let on_server = load.on != Some(LoadOn::Standbys);
        self.must(only_plain && on_server, &["load"], || {
            "design = \"switchback\" has one load of pgdyno's own clients on the server: neither program nor checkpoint_cycles nor crash nor \
             on = \"standbys\""
                .into()
        })?;
        self.must(load.rate.is_none(), &["load", "rate"], || {
            "design = \"switchback\" has a closed loop: of an open one, what a treatment leaves waiting falls to the next turn".into()
        })?;
        self.must(
            file.target.instances == Instances::Once,
            &["target", "instances"],
            || {
                "design = \"switchback\" has one server: instances = \"per-block\" is of trials of their own"
                    .into()
            },
        )?;
        self.must(file.server.count.unwrap_or(1) == 1, &["server", "count"], || {
            "design = \"switchback\" has one server, whose load its treatments share: count does not go with it".into()
        })?;
        for (i, figure) in file.figure.iter().enumerate() {
            self.must(figure.sql.is_none(), &["figure", &i.to_string()], || {
                format!(
                    "the figure \"{}\" is of the end of a load, in which treatments take turns",
                    figure.name
                )
            })?;
        }
        for (i, factor) in file.factor.iter().enumerate() {
            self.must(!factor.condition, &["factor", &i.to_string()], || {
                format!(
                    "\"{}\" is a condition, and all treatments of a switchback have one load",
                    factor.name
                )
            })?;
            for level in factor.levels().unwrap_or_default() {
                self.switchable(&level, &["factor", &i.to_string()])?;
            }
        }
        for (i, step) in file.step.iter().enumerate() {
            self.switchable(step, &["step", &i.to_string()])?;
        }
        Ok(())
    }

    fn cut(&self) -> Checked {
        let switch = self.file.switch;
        let slice_s = switch.slice_s.unwrap_or(SLICE_S);
        self.must(
            (1..=SLICE_MAX_S).contains(&slice_s),
            &["switch", "slice_s"],
            || format!("slice_s = {slice_s}: expected 1 to {SLICE_MAX_S}"),
        )?;
        let measure_s = self.file.load.measure_s.unwrap_or(f64::from(slice_s));
        self.must(measure_s >= f64::from(slice_s), &["load", "measure_s"], || {
            format!("measure_s = {measure_s}: a treatment's turns of {slice_s} s in a block are at least one")
        })?;
        let least_s = wash_out_s(self.file, self.catalogue);
        let wash_out_s = switch.wash_out_s.unwrap_or(least_s);
        self.must(
            (least_s..=WASH_OUT_MAX_S).contains(&wash_out_s),
            &["switch", "wash_out_s"],
            || format!("wash_out_s = {wash_out_s}: expected {least_s} to {WASH_OUT_MAX_S}, for these knobs"),
        )
    }

    /// Whether a step or level can take turns with others.
    fn switchable(&self, part: &StepPart, keys: &[&str]) -> Checked {
        let name = &part.name;
        let sets_only = part.profile.is_none()
            && part.load == LoadPart::default()
            && part.data == DataPart::default()
            && part.server == ServerPart::default();
        self.must(sets_only, keys, || {
            format!("\"{name}\" of a switchback has [settings] alone: treatments take turns on one server, within one load")
        })?;
        let protocol = self.file.load.protocol.unwrap_or(Protocol::Prepared);
        for setting in settings_of(&part.settings) {
            let Ok(knob) = self.catalogue.get(&setting.knob) else {
                continue;
            };
            let objection = why_not_in_turns(knob, protocol);
            self.must(objection.is_none(), keys, || {
                format!(
                    "{} cannot take turns within a load: {}. design = \"one-at-a-time\" compares it",
                    setting.knob,
                    objection.unwrap_or_default()
                )
            })?;
        }
        Ok(())
    }
}
