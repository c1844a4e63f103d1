//! What must hold of a switchback: settings that can take turns, and nothing that a turn has not
//! got.

use super::{Check, Checked};
use crate::file::choices::{Design, Instances, LoadOn, Prewarm};
use crate::file::parts::{DataPart, LoadPart, ServerPart, StepPart, SwitchPart};
use crate::file::settings_of;
use crate::file::switch::{SERVERS_SLICE_S, SLICE_S, turns_of_servers, wash_out_s, why_not_in_turns};
use pgdyno_engine::{Protocol, TURN_MAX, TURN_MIN};
use pgdyno_knobs::Setting;

const SLICE_MAX_S: f64 = 60.0;
/// Of each server in a load.
const TURNS_MIN: f64 = 10.0;
const NO_PROFILE: &str = "a profile may have settings of the host, which servers that take turns share: name the settings themselves";
const WASH_OUT_MAX_S: f64 = 600.0;

impl Check<'_> {
    pub(super) fn switchback(&self) -> Checked {
        let file = self.file;
        if file.design != Design::Switchback {
            return self.must(file.switch == SwitchPart::default(), &["switch"], || {
                format!(
                    "[switch] applies to design = \"switchback\" only, and this design is \"{}\"",
                    file.design.name()
                )
            });
        }
        let of_servers = turns_of_servers(file).is_some();
        match of_servers {
            true => self.servers_in_turns()?,
            false => self.cut()?,
        }
        let load = &file.load;
        let only_plain = load.program.is_none() && load.checkpoint_cycles.is_none() && load.crash.is_none();
        let on_server = load.on != Some(LoadOn::Standbys);
        self.must(only_plain && on_server, &["load"], || {
            "design = \"switchback\" has one load, of pgdyno's own clients on the server itself: remove program, checkpoint_cycles, crash and \
             on = \"standbys\""
                .into()
        })?;
        self.must(load.rate.is_none(), &["load", "rate"], || {
            "design = \"switchback\" needs a closed loop: with a rate, transactions left waiting by one treatment would run in the next turn".into()
        })?;
        self.must(
            of_servers || file.target.instances == Instances::Once,
            &["target", "instances"],
            || {
                "instances = \"per-block\" needs treatments with their own servers, and this switchback has one server"
                    .into()
            },
        )?;
        self.must(file.server.count.unwrap_or(1) == 1, &["server", "count"], || {
            "the treatments of a switchback share the load of one server: remove count".into()
        })?;
        for (i, figure) in file.figure.iter().enumerate() {
            self.must(figure.sql.is_none(), &["figure", &i.to_string()], || {
                format!(
                    "the figure \"{}\" is queried after the load, which all treatments share: use metric instead of sql",
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
                self.takes_turns(&level, &["factor", &i.to_string()], of_servers)?;
            }
        }
        for (i, step) in file.step.iter().enumerate() {
            self.takes_turns(step, &["step", &i.to_string()], of_servers)?;
        }
        Ok(())
    }

    /// What goes with servers that take turns as a whole.
    fn servers_in_turns(&self) -> Checked {
        let (file, switch) = (self.file, self.file.switch);
        let slice_s = switch.slice_s.unwrap_or(SERVERS_SLICE_S);
        let [least_s, most_s] = [TURN_MIN, TURN_MAX].map(|turn| turn.as_secs_f64());
        self.must(
            (least_s..=most_s).contains(&slice_s),
            &["switch", "slice_s"],
            || format!("slice_s = {slice_s}: expected {least_s} to {most_s} for turns of servers"),
        )?;
        let load = &file.load;
        let measure_s = load.measure_s.unwrap_or(slice_s * TURNS_MIN);
        self.must(measure_s >= slice_s * TURNS_MIN, &["load", "measure_s"], || {
            format!(
                "measure_s = {measure_s}: expected at least {TURNS_MIN} turns of {slice_s} s for each server"
            )
        })?;
        let only_closed = load.think_ms.is_none() && load.connect != Some(true) && load.settle != Some(true);
        self.must(only_closed, &["load"], || {
            "servers that take turns need a closed loop and a fixed warm-up: remove think_ms, connect and settle".into()
        })?;
        self.must(file.profile.is_none(), &["profile"], || NO_PROFILE.into())?;
        self.must(switch.wash_out_s.is_none(), &["switch", "wash_out_s"], || {
            "wash_out_s applies to changes of settings; servers that take turns keep their settings".into()
        })?;
        let guard = &file.guard;
        self.must(
            !guard.is_by_second(),
            &["guard"],
            || "guards by per-second values see all servers together, so one would end the load of all: remove them".into(),
        )?;
        self.must(file.figure.is_empty(), &["figure"], || {
            "series cover the whole load, not the turns of one server: remove [[figure]]".into()
        })?;
        self.must(
            file.data.prewarm != Some(Prewarm::Cold),
            &["data", "prewarm"],
            || "prewarm = \"cold\" would empty the caches of all servers: use another prewarm".into(),
        )?;
        let plain = |server: &ServerPart| {
            server.pooler.is_none() && server.neighbour.is_none() && server.count.unwrap_or(1) == 1
        };
        let parts = file.parts();
        let all_plain = plain(&file.server) && parts.iter().all(|part| plain(&part.server));
        self.must(all_plain, &["server"], || {
            "servers that take turns have neither pooler nor neighbour nor count".into()
        })?;
        self.of_servers_alone(settings_of(&file.base), &["base"])
    }

    /// Settings that each server has of its own.
    fn of_servers_alone(&self, settings: Vec<Setting>, keys: &[&str]) -> Checked {
        for setting in settings {
            let of_host = self
                .catalogue
                .find(&setting.knob)
                .is_some_and(|knob| knob.kind.is_of_host());
            self.must(!of_host, keys, || {
                format!(
                    "{} is a setting of the host, which servers that take turns share",
                    setting.knob
                )
            })?;
        }
        Ok(())
    }

    fn takes_turns(&self, part: &StepPart, keys: &[&str], of_servers: bool) -> Checked {
        if !of_servers {
            return self.switchable(part, keys);
        }
        let only_sql = DataPart {
            sql: None,
            ..part.data.clone()
        };
        let is_one_load = part.load == LoadPart::default() && only_sql == DataPart::default();
        self.must(is_one_load, keys, || {
            format!(
                "\"{}\" has its own load or data, and servers that take turns share one load: only [data] sql may differ",
                part.name
            )
        })?;
        self.must(part.profile.is_none(), keys, || NO_PROFILE.into())?;
        self.of_servers_alone(settings_of(&part.settings), keys)
    }

    fn cut(&self) -> Checked {
        let switch = self.file.switch;
        let slice_s = switch.slice_s.unwrap_or(SLICE_S);
        self.must(
            (1.0..=SLICE_MAX_S).contains(&slice_s) && slice_s.fract() == 0.0,
            &["switch", "slice_s"],
            || format!("slice_s = {slice_s}: expected 1 to {SLICE_MAX_S}, whole seconds"),
        )?;
        let measure_s = self.file.load.measure_s.unwrap_or(slice_s);
        self.must(measure_s >= slice_s, &["load", "measure_s"], || {
            format!("measure_s = {measure_s}: expected at least one turn of {slice_s} s")
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
            format!("\"{name}\" may have [settings] only: the treatments of a switchback take turns on one server, within one load")
        })?;
        let protocol = self.file.load.protocol.unwrap_or(Protocol::Prepared);
        for setting in settings_of(&part.settings) {
            let Some(knob) = self.catalogue.find(&setting.knob) else {
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
