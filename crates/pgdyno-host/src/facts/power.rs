//! Clock frequency, sleep states and power limits of the processor.

use super::sheet::{Sheet, object, or_null, scalar};
use serde_json::Value;
use std::collections::BTreeSet;

const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
const IDLE: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
const POWERCAP: &str = "/sys/class/powercap";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    note_frequency(sheet);
    note_boost(sheet);
    note_idle(sheet);
    note_caps(sheet);
}

fn note_frequency(sheet: &mut Sheet<'_>) {
    let source = format!("{CPUFREQ}/policy*");
    let policies = sheet.numbered(CPUFREQ, "policy").unwrap_or_default();
    let read = |policy: u32, name: &str| sheet.text_of(&format!("{CPUFREQ}/policy{policy}/{name}"));
    let governors: BTreeSet<String> = policies
        .iter()
        .filter_map(|&policy| read(policy, "scaling_governor").ok())
        .collect();
    let none = || "no frequency scaling is offered to this kernel (usual in virtual machines)".to_owned();
    let governor = (!governors.is_empty())
        .then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
        .ok_or_else(none);
    let value = |policy: u32, name: &str| or_null(read(policy, name).map(|text| scalar(&text)));
    let list: Vec<Value> = policies
        .iter()
        .map(|&policy| {
            object([
                ("cpus", or_null(read(policy, "affected_cpus"))),
                ("driver", value(policy, "scaling_driver")),
                ("governor", value(policy, "scaling_governor")),
                ("preference", value(policy, "energy_performance_preference")),
                ("min_khz", value(policy, "scaling_min_freq")),
                ("max_khz", value(policy, "scaling_max_freq")),
                ("hardware_max_khz", value(policy, "cpuinfo_max_freq")),
            ])
        })
        .collect();
    sheet.note("cpu.governor", &source, governor);
    sheet.note(
        "cpu.frequency_policies",
        &source,
        if list.is_empty() { Err(none()) } else { Ok(list) },
    );
}

/// intel_pstate says what is forbidden, acpi-cpufreq and amd_pstate what is allowed.
fn note_boost(sheet: &mut Sheet<'_>) {
    let (forbidden, allowed) = (
        "/sys/devices/system/cpu/intel_pstate/no_turbo".to_owned(),
        format!("{CPUFREQ}/boost"),
    );
    match sheet.number_of(&forbidden) {
        Ok(n) => sheet.note("cpu.boost", &forbidden, Ok(n == 0)),
        Err(_) => {
            let boost = sheet.number_of(&allowed).map(|n| n != 0);
            sheet.note("cpu.boost", &allowed, boost);
        }
    }
}

fn note_idle(sheet: &mut Sheet<'_>) {
    sheet.text(
        "cpu.idle_driver",
        "/sys/devices/system/cpu/cpuidle/current_driver",
    );
    // Before 5.2 the file that can be written was named without "_ro".
    let path = |suffix: &str| format!("/sys/devices/system/cpu/cpuidle/current_governor{suffix}");
    let name = match sheet.text_of(&path("")) {
        Ok(_) => path(""),
        Err(_) => path("_ro"),
    };
    sheet.text("cpu.idle_governor", &name);
    let states = sheet.numbered(IDLE, "state").map(|states| {
        let state = |state: &u32| {
            let read = |name: &str| sheet.text_of(&format!("{IDLE}/state{state}/{name}"));
            object([
                ("name", or_null(read("name"))),
                (
                    "exit_latency_us",
                    or_null(read("latency").map(|text| scalar(&text))),
                ),
                ("disabled", or_null(read("disable").map(|text| text != "0"))),
            ])
        };
        states.iter().map(state).collect::<Vec<_>>()
    });
    sheet.note("cpu.idle_states", IDLE, states);
}

/// RAPL and the like: zones with their limits, and whether this user may read the energy counter.
fn note_caps(sheet: &mut Sheet<'_>) {
    let zones = sheet.host.list(POWERCAP).map_err(|error| {
        if error.is_refused() {
            return super::sheet::why(error);
        }
        "this machine offers no power zones (usual in virtual machines)".to_owned()
    });
    let zones = zones.map(|names| {
        let zone = |name: &String| -> Option<Value> {
            let path = |file: &str| format!("{POWERCAP}/{name}/{file}");
            // Control types are beside the zones and have no name.
            let title = sheet.text_of(&path("name")).ok()?;
            let energy = sheet.host.read(&path("energy_uj"));
            Some(object([
                ("zone", name.clone().into()),
                ("name", title.into()),
                (
                    "limit_uw",
                    or_null(sheet.number_of(&path("constraint_0_power_limit_uw"))),
                ),
                (
                    "max_uw",
                    or_null(sheet.number_of(&path("constraint_0_max_power_uw"))),
                ),
                ("energy_readable", energy.is_ok().into()),
            ]))
        };
        names.iter().filter_map(zone).collect::<Vec<_>>()
    });
    sheet.note("cpu.power_zones", POWERCAP, zones);
}
