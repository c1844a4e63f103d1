//! The processor: model, what it can do, and what is done about its flaws.

use super::sheet::{Sheet, count_of_list, field, object, start_of};
use serde_json::Value;
use std::collections::BTreeSet;

const CPUINFO: &str = "/proc/cpuinfo";
const CPUS: &str = "/sys/devices/system/cpu";

/// What a database server gains from: checksums, large pages, cheap switches of address spaces,
/// steady clocks, compression in hardware.
const FEATURES: [&str; 26] = [
    "aes",
    "asimd",
    "atomics",
    "avx",
    "avx2",
    "avx512f",
    "constant_tsc",
    "crc32",
    "dfltcc",
    "erms",
    "fsrm",
    "hypervisor",
    "invpcid",
    "la57",
    "lse2",
    "nonstop_tsc",
    "pcid",
    "pclmulqdq",
    "pdpe1gb",
    "pmull",
    "popcnt",
    "sse4_2",
    "sve",
    "sve2",
    "tsc_known_freq",
    "vxe2",
];

pub(super) fn note(sheet: &mut Sheet<'_>) {
    let cpuinfo = sheet.text_of_long(CPUINFO);
    let of = |find: fn(&str) -> Option<String>| -> Result<String, String> {
        let text = cpuinfo.as_ref().map_err(Clone::clone)?;
        find(text).ok_or_else(|| {
            let first = text.lines().next().unwrap_or_default();
            format!(
                "{CPUINFO} has no line for it; it begins with \"{}\"",
                start_of(first)
            )
        })
    };
    let (model, vendor, microcode) = (of(model), of(vendor), of(microcode));
    sheet.note("cpu.model", CPUINFO, model);
    sheet.note("cpu.vendor", CPUINFO, vendor);
    note_architecture(sheet, cpuinfo.as_deref().ok());
    sheet.note("cpu.microcode", CPUINFO, microcode);
    let features = cpuinfo
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|text| features(text));
    sheet.note("cpu.features", CPUINFO, features);
    for name in ["online", "present", "possible", "isolated"] {
        let path = format!("{CPUS}/{name}");
        // No isolated CPU is an empty file; no CPU at all is none that there can be.
        let list = sheet.list_of(&path).and_then(|list| match name {
            "isolated" => Ok(list),
            _ if list == "none" => Err(format!("{path} is empty")),
            _ => Ok(list),
        });
        if name == "online" || name == "present" {
            let count = list.clone().map(|list| count_of_list(&list));
            sheet.note(&format!("cpu.{name}_count"), &path, count);
        }
        sheet.note(&format!("cpu.{name}"), &path, list);
    }
    note_mitigations(sheet);
}

/// x86 and LoongArch write a model; arm64 numbers of maker and part; s390x a machine type; POWER
/// "cpu"; RISC-V "uarch".
fn model(text: &str) -> Option<String> {
    for key in ["model name", "Model Name", "Processor"] {
        if let Some(name) = field(text, key).filter(|name| !name.is_empty()) {
            return Some(name.to_owned());
        }
    }
    arm_model(text).or_else(|| s390_model(text)).or_else(|| {
        ["cpu", "uarch", "Model", "isa"]
            .iter()
            .find_map(|key| field(text, key))
            .map(str::to_owned)
    })
}

/// A maker's number, name, and the numbers and names of its parts.
type Maker = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Makers and parts by the numbers in MIDR_EL1, which Arm's technical reference manuals give for
/// each core.
const ARM: [Maker; 10] = [
    (
        "0x41",
        "Arm",
        &[
            ("0xd03", "Cortex-A53"),
            ("0xd07", "Cortex-A57"),
            ("0xd08", "Cortex-A72"),
            ("0xd0b", "Cortex-A76"),
            ("0xd0c", "Neoverse-N1"),
            ("0xd40", "Neoverse-V1"),
            ("0xd49", "Neoverse-N2"),
            ("0xd4f", "Neoverse-V2"),
            ("0xd83", "Neoverse-V3AE"),
            ("0xd84", "Neoverse-V3"),
            ("0xd8e", "Neoverse-N3"),
        ],
    ),
    ("0x42", "Broadcom", &[]),
    ("0x43", "Cavium", &[("0x0a1", "ThunderX"), ("0x0af", "ThunderX2")]),
    ("0x46", "Fujitsu", &[("0x001", "A64FX")]),
    ("0x48", "HiSilicon", &[("0xd01", "Kunpeng-920")]),
    ("0x4e", "NVIDIA", &[]),
    ("0x51", "Qualcomm", &[]),
    ("0x61", "Apple", &[]),
    ("0x6d", "Microsoft", &[]),
    ("0xc0", "Ampere", &[("0xac3", "Ampere-1"), ("0xac4", "Ampere-1A")]),
];

/// All kinds of core, for there may be two in one machine.
fn arm_model(text: &str) -> Option<String> {
    let mut kinds = BTreeSet::new();
    let mut maker = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        match key.trim() {
            "CPU implementer" => maker = Some(value.trim()),
            "CPU part" => {
                let (maker, part) = (maker.unwrap_or("?"), value.trim());
                let known = ARM.iter().find(|(number, ..)| *number == maker);
                let name = known.and_then(|(_, name, parts)| {
                    let (_, part) = parts.iter().find(|(number, _)| *number == part)?;
                    Some(format!("{name} {part}"))
                });
                kinds.insert(name.unwrap_or_else(|| {
                    let maker = known.map_or(maker, |(_, name, _)| name);
                    format!("implementer {maker}, part {part}")
                }));
            }
            _ => {}
        }
    }
    (!kinds.is_empty()).then(|| kinds.into_iter().collect::<Vec<_>>().join(" and "))
}

/// Machine types of IBM Z, with their names.
const S390: [(&str, &str); 9] = [
    ("2964", "z13"),
    ("2965", "z13s"),
    ("3906", "z14"),
    ("3907", "z14 ZR1"),
    ("8561", "z15"),
    ("8562", "z15 T02"),
    ("3931", "z16"),
    ("3932", "z16 A02"),
    ("9175", "z17"),
];

fn s390_model(text: &str) -> Option<String> {
    let vendor = field(text, "vendor_id").filter(|vendor| vendor.starts_with("IBM"))?;
    let machine = text.lines().find_map(|line| {
        let (_, rest) = line.split_once("machine = ")?;
        rest.split([',', ' ']).next()
    });
    Some(match machine {
        None => vendor.to_owned(),
        Some(machine) => match S390.iter().find(|(number, _)| *number == machine) {
            Some((_, name)) => format!("IBM {name} (machine {machine})"),
            None => format!("{vendor} machine {machine}"),
        },
    })
}

fn vendor(text: &str) -> Option<String> {
    if let Some(vendor) = field(text, "vendor_id") {
        return Some(vendor.to_owned());
    }
    let number = field(text, "CPU implementer")?;
    let known = ARM.iter().find(|(other, ..)| *other == number);
    Some(known.map_or(number, |(_, name, _)| name).to_owned())
}

/// x86 alone has it there, in hexadecimal.
fn microcode(text: &str) -> Option<String> {
    field(text, "microcode").map(str::to_owned)
}

fn features(text: &str) -> Result<Vec<Value>, String> {
    let line = ["flags", "Features", "features", "isa"]
        .iter()
        .find_map(|key| field(text, key));
    let line = line.ok_or_else(|| format!("{CPUINFO} has no line of flags"))?;
    let has: BTreeSet<&str> = line.split_whitespace().collect();
    Ok(FEATURES
        .iter()
        .filter(|name| has.contains(*name))
        .map(|&name| name.into())
        .collect())
}

/// Kernels from 6.1 write it; before, the form of cpuinfo shows the common ones.
fn note_architecture(sheet: &mut Sheet<'_>, cpuinfo: Option<&str>) {
    const PATH: &str = "/proc/sys/kernel/arch";
    let found = sheet.text_of(PATH);
    if found.is_ok() {
        return sheet.note("cpu.architecture", PATH, found);
    }
    let form = cpuinfo.and_then(|text| {
        let x86 = field(text, "flags").map(|flags| flags.split_whitespace().any(|flag| flag == "lm"));
        match x86 {
            Some(true) => Some("x86_64"),
            Some(false) => None,
            None if field(text, "CPU architecture") == Some("8") => Some("aarch64"),
            None => field(text, "vendor_id")
                .filter(|v| v.starts_with("IBM/S390"))
                .map(|_| "s390x"),
        }
    });
    match form {
        Some(name) => sheet.note::<&str>("cpu.architecture", "the form of /proc/cpuinfo", Ok(name)),
        None => sheet.note("cpu.architecture", PATH, found),
    }
}

/// Flaws that this processor has, with what the kernel does about each; those that it has not are
/// omitted.
fn note_mitigations(sheet: &mut Sheet<'_>) {
    let directory = format!("{CPUS}/vulnerabilities");
    let names = sheet.host.list(&directory).map_err(super::sheet::why);
    let flaws = names.map(|names| {
        let state = |name: String| -> Option<Value> {
            let state = sheet.text_of(&format!("{directory}/{name}")).ok()?;
            let is_affected = state != "Not affected";
            is_affected.then(|| object([("flaw", name.into()), ("state", state.into())]))
        };
        names.into_iter().filter_map(state).collect::<Vec<_>>()
    });
    sheet.note("cpu.mitigations", &directory, flaws);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_four_architectures() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(model(text).as_deref(), expected, "{text}");
        check(
            "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n",
            Some("AMD EPYC"),
        );
        check(
            "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
            Some("Arm Neoverse-N1"),
        );
        let two = "CPU implementer: 0x41\nCPU part: 0xd03\nCPU implementer: 0x41\nCPU part: 0xd08\n";
        check(two, Some("Arm Cortex-A53 and Arm Cortex-A72"));
        check(
            "CPU implementer : 0x00\nCPU part : 0x051\n",
            Some("implementer 0x00, part 0x051"),
        );
        let z = "vendor_id       : IBM/S390\nprocessor 0: version = FF,  identification = 000000,  machine = 8561\n";
        check(z, Some("IBM z15 (machine 8561)"));
        check(
            "processor : 0\ncpu : POWER9 (architected), altivec supported\n",
            Some("POWER9 (architected), altivec supported"),
        );
        check("nonsense", None);
        check("", None);
    }
}
