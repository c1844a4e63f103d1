//! Whether this is a guest, of what, and whether it is a container.

use super::sheet::{Sheet, field};
use crate::access::HostAccess;
use serde_json::Value;

const DMI: &str = "/sys/class/dmi/id";

/// A sign: a file, what is in it, and what that means.
type Sign = (&'static str, &'static str, &'static str);

/// The first that holds counts. More exact ones are first.
const HYPERVISORS: [Sign; 30] = [
    ("/sys/hypervisor/type", "xen", "Xen"),
    ("/proc/sysinfo", "Control Program: KVM", "KVM"),
    ("/proc/sysinfo", "Control Program: z/VM", "z/VM"),
    ("/proc/sysinfo", "LPAR Number:", "PR/SM (LPAR)"),
    (
        "/sys/firmware/devicetree/base/hypervisor/compatible",
        "linux,kvm",
        "KVM",
    ),
    (
        "/sys/firmware/devicetree/base/hypervisor/compatible",
        "xen",
        "Xen",
    ),
    ("/sys/firmware/devicetree/base/compatible", "qemu", "QEMU"),
    ("/sys/class/dmi/id/product_name", "VMware", "VMware"),
    ("/sys/class/dmi/id/product_name", "VirtualBox", "VirtualBox"),
    ("/sys/class/dmi/id/product_name", "Virtual Machine", "Hyper-V"),
    ("/sys/class/dmi/id/product_name", "HVM domU", "Xen"),
    (
        "/sys/class/dmi/id/product_name",
        "Google Compute Engine",
        "KVM (Google Compute Engine)",
    ),
    (
        "/sys/class/dmi/id/product_name",
        "Alibaba Cloud ECS",
        "KVM (Alibaba Cloud)",
    ),
    ("/sys/class/dmi/id/product_name", "OpenStack", "KVM (OpenStack)"),
    ("/sys/class/dmi/id/product_name", "KVM", "KVM"),
    ("/sys/class/dmi/id/product_name", "BHYVE", "bhyve"),
    ("/sys/class/dmi/id/product_name", "Parallels", "Parallels"),
    (
        "/sys/class/dmi/id/product_name",
        "Apple Virtualization",
        "Apple Virtualization",
    ),
    ("/sys/class/dmi/id/sys_vendor", "Amazon EC2", "KVM (Amazon Nitro)"),
    (
        "/sys/class/dmi/id/sys_vendor",
        "DigitalOcean",
        "KVM (DigitalOcean)",
    ),
    ("/sys/class/dmi/id/sys_vendor", "Hetzner", "KVM (Hetzner)"),
    ("/sys/class/dmi/id/sys_vendor", "OVMF", "QEMU"),
    (
        "/sys/class/dmi/id/chassis_asset_tag",
        "OracleCloud",
        "KVM (Oracle Cloud)",
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "kvm-clock",
        "KVM",
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "hyperv",
        "Hyper-V",
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "xen",
        "Xen",
    ),
    ("/sys/class/dmi/id/sys_vendor", "QEMU", "QEMU"),
    ("/sys/class/dmi/id/product_name", "Standard PC", "QEMU"),
    ("/sys/class/dmi/id/bios_vendor", "Xen", "Xen"),
    ("/sys/class/dmi/id/bios_vendor", "SeaBIOS", "QEMU"),
];

/// Signs of a container: the file is there ("" is in every text) or has the text.
const CONTAINERS: [Sign; 9] = [
    ("/run/.containerenv", "", "podman"),
    ("/.dockerenv", "", "docker"),
    ("/run/systemd/container", "docker", "docker"),
    ("/run/systemd/container", "lxc", "lxc"),
    ("/run/systemd/container", "", "systemd-nspawn or another"),
    ("/proc/self/cgroup", "kubepods", "kubernetes"),
    ("/proc/self/cgroup", "/docker/", "docker"),
    ("/proc/self/cgroup", "/lxc", "lxc"),
    ("/proc/user_beancounters", "", "openvz"),
];

/// Names of machines rented whole, on which nothing runs below the kernel.
const WHOLE: &str = ".metal";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    for (name, file) in [
        ("virtualization.machine_vendor", "sys_vendor"),
        ("virtualization.machine", "product_name"),
    ] {
        sheet.text(name, &format!("{DMI}/{file}"));
    }
    let flag = flagged(sheet);
    let product = sheet.text_of(&format!("{DMI}/product_name")).unwrap_or_default();
    let sign =
        first_of(sheet.host, &HYPERVISORS).filter(|_| !product.ends_with(WHOLE) && flag != Some(false));
    let (source, guest, kind) = match (sign, flag) {
        (Some(&(path, _, kind)), _) => (path, Ok(true), Ok(kind)),
        (None, Some(true)) => (
            "/proc/cpuinfo, flag hypervisor",
            Ok(true),
            Err("a hypervisor says that it is there and not which one it is".to_owned()),
        ),
        (None, Some(false)) => ("/proc/cpuinfo, no flag hypervisor", Ok(false), Ok("none")),
        (None, None) => {
            let why = || {
                "no sign of a hypervisor, and this processor has no flag that would exclude one".to_owned()
            };
            (
                "/sys/class/dmi, /sys/firmware, /proc/sysinfo",
                Err(why()),
                Err(why()),
            )
        }
    };
    sheet.note("virtualization.guest", source, guest);
    sheet.note("virtualization.hypervisor", source, kind);
    note_container(sheet);
}

/// The kernel's first namespaces have fixed numbers (include/linux/proc_ns.h in its source). Who is
/// in them is in no container, whatever files an image has left in its root.
const FIRST_NAMESPACES: [(&str, &str); 2] = [
    ("/proc/self/ns/pid", "pid:[4026531836]"),
    ("/proc/self/ns/cgroup", "cgroup:[4026531835]"),
];

fn note_container(sheet: &mut Sheet<'_>) {
    let ours = FIRST_NAMESPACES.map(|(path, first)| sheet.host.read_link(path).map(|link| link == first));
    if let [Ok(true), Ok(true)] = ours {
        return sheet.note("virtualization.container", "/proc/self/ns", Ok("none"));
    }
    let known = ours.iter().all(Result::is_ok);
    match first_of(sheet.host, &CONTAINERS) {
        Some(&(path, _, kind)) => sheet.note("virtualization.container", path, Ok(kind)),
        None => {
            let why = if known {
                "this process has its own namespaces, as in a container of unknown kind"
            } else {
                "its namespaces may not be read, and there is no sign of a container"
            };
            sheet.note::<Value>("virtualization.container", "/proc/self/ns", Err(why.to_owned()));
        }
    }
}

/// x86 processors show a guest by a flag; others have none.
fn flagged(sheet: &Sheet<'_>) -> Option<bool> {
    let text = sheet.text_of_long("/proc/cpuinfo").ok()?;
    let flags = field(&text, "flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn first_of(host: &dyn HostAccess, signs: &'static [Sign]) -> Option<&'static Sign> {
    signs
        .iter()
        .find(|(path, part, _)| host.read(path).is_ok_and(|text| one_blank(&text).contains(part)))
}

/// /proc/sysinfo sets its values off with several blanks.
fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
