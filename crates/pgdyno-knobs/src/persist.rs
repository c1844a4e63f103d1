//! What makes settings survive a reboot: lines for sysctl.d(5) and tmpfiles.d(5).

use crate::address::is_kernel_files;
use crate::applied::ApplyError;
use crate::catalogue::{Kind, Setting, sysctl_path};
use crate::reader::{Mechanism, Reader};
use crate::undo::UndoUnit;

/// Where pgdyno writes for systemd-sysctl (and sysctl --system).
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-pgdyno.conf";
/// Where it writes for systemd-tmpfiles.
pub const TMPFILES_FILE: &str = "/etc/tmpfiles.d/90-pgdyno.conf";

/// What is to be written so that settings survive a reboot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Persisted {
    /// Name and value, for sysctl.d.
    pub sysctl: Vec<(String, String)>,
    /// Path and value, for tmpfiles.d.
    pub files: Vec<(String, String)>,
    /// Knobs that survive by themselves: what is in the server's files.
    pub by_themselves: Vec<String>,
    /// Knobs that do not survive, and what would make them.
    pub not: Vec<(String, String)>,
}

impl Reader<'_> {
    /// How settings that are in force now can survive a reboot.
    pub fn persisted(&self, settings: &[Setting]) -> Result<Persisted, ApplyError> {
        let mut persisted = Persisted::default();
        for setting in settings {
            let knob = self.catalogue.get(&setting.knob)?;
            if is_kernel_files(knob.kind) {
                let Mechanism::Files(files) = self.mechanism(&setting.knob)? else {
                    continue;
                };
                for (address, unit) in files {
                    if unit.is_of_group() {
                        let how = "control groups are made again: set it in the unit of the server (systemctl set-property)";
                        persisted.not.push((setting.knob.clone(), how.to_owned()));
                        continue;
                    }
                    if let Some(how) = by_another_name(&address.path, &unit) {
                        persisted.not.push((setting.knob.clone(), how));
                        continue;
                    }
                    // What took effect, for "auto" is not a number.
                    let value = match knob.kind {
                        Kind::HugepagePool => self.host.read_trimmed(&address.path)?,
                        _ => self.written(knob, &address.path, &setting.value)?,
                    };
                    match address.path.strip_prefix("/proc/sys/") {
                        Some(rest) => persisted.sysctl.push((sysctl_name(rest), value)),
                        None => persisted.files.push((address.path, value)),
                    }
                }
                continue;
            }
            let why_not = match knob.kind {
                Kind::SwapFile => Some("a line in /etc/fstab: PATH none swap sw 0 0"),
                Kind::Affinity => Some("CPUAffinity= in the unit of the server"),
                Kind::HeldFile => Some("it holds only while a process keeps the file open"),
                _ => None,
            };
            match why_not {
                Some(how) => persisted.not.push((setting.knob.clone(), how.to_owned())),
                None => persisted.by_themselves.push(setting.knob.clone()),
            }
        }
        Ok(persisted)
    }
}

/// Why a path would be another device's or interrupt's after a boot, and what finds the right one.
fn by_another_name(path: &str, unit: &UndoUnit) -> Option<String> {
    if path.starts_with("/proc/irq/") && path.split('/').nth(3)?.parse::<u32>().is_ok() {
        return Some(
            "interrupts may have other numbers after a boot: set it once their drivers run".to_owned(),
        );
    }
    let UndoUnit::Files { files, .. } = unit else {
        return None;
    };
    let file = files.iter().find(|file| file.path == path)?;
    let device = file.device.as_ref()?;
    Some(format!(
        "disks may have other names after a boot: a udev rule for the one with {device}"
    ))
}

impl Persisted {
    /// The file for sysctl.d, with what is there already (`None`: nothing to write).
    pub fn sysctl_file(&self, present: &str) -> Option<String> {
        let key = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
        let lines = self
            .sysctl
            .iter()
            .map(|(name, value)| (name.clone(), format!("{name} = {value}")));
        merged(present, lines.collect(), key)
    }

    /// The file for tmpfiles.d likewise.
    pub fn tmpfiles_file(&self, present: &str) -> Option<String> {
        let key = |line: &str| line.strip_prefix("w ")?.split(' ').next().map(str::to_owned);
        let lines = self.files.iter().map(|(path, value)| {
            (
                path.clone(),
                format!("w {path} - - - - {}", value.replace('%', "%%")),
            )
        });
        merged(present, lines.collect(), key)
    }
}

/// Kernel files and the values that the lines of such a file set at each boot.
pub(crate) fn set_at_boot(content: &str) -> Vec<(String, String)> {
    let lines = content.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| match line.strip_prefix("w ") {
            Some(rest) => {
                let (path, value) = rest.split_once(" - - - - ")?;
                Some((path.to_owned(), value.replace("%%", "%")))
            }
            None => {
                let (name, value) = line.split_once('=')?;
                let words: Vec<&str> = value.split_whitespace().collect();
                Some((sysctl_path(name.trim()), words.join(" ")))
            }
        })
        .collect()
}

const HEAD: &str = "# Written by pgdyno apply --persist; pgdyno restore takes it back.";

/// The lines that are there, without those that are written again, and the new ones.
fn merged(present: &str, new: Vec<(String, String)>, key: impl Fn(&str) -> Option<String>) -> Option<String> {
    if new.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = vec![HEAD.to_owned()];
    for line in present.lines().filter(|line| *line != HEAD) {
        if !key(line).is_some_and(|name| new.iter().any(|(other, _)| *other == name)) {
            lines.push(line.to_owned());
        }
    }
    lines.extend(new.into_iter().map(|(_, line)| line));
    Some(lines.join("\n") + "\n")
}

/// The name of a file below /proc/sys: the slashes are dots, and a dot of the file's own is a slash
/// (sysctl(8)).
fn sysctl_name(rest: &str) -> String {
    rest.chars()
        .map(|c| match c {
            '/' => '.',
            '.' => '/',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::{Form, KernelFile};

    #[test]
    fn lines_replace_those_of_the_same_name_and_keep_the_others() {
        let persisted = Persisted {
            sysctl: vec![("vm.swappiness".into(), "1".into())],
            files: vec![("/sys/a".into(), "50%".into())],
            ..Persisted::default()
        };
        let file = persisted
            .sysctl_file("# mine\nvm.swappiness = 60\nvm.dirty_ratio = 5\n")
            .unwrap();
        assert_eq!(
            file,
            format!("{HEAD}\n# mine\nvm.dirty_ratio = 5\nvm.swappiness = 1\n")
        );
        assert_eq!(persisted.sysctl_file(&file).unwrap(), file, "twice is once");
        let file = persisted
            .tmpfiles_file("w /sys/a - - - - 1\nw /sys/b - - - - 2\n")
            .unwrap();
        assert_eq!(
            file,
            format!("{HEAD}\nw /sys/b - - - - 2\nw /sys/a - - - - 50%%\n")
        );
        assert_eq!(Persisted::default().sysctl_file("x"), None);
    }

    #[test]
    fn what_is_written_is_what_is_set_at_boot() {
        let persisted = Persisted {
            sysctl: vec![("net.ipv4.conf.eth0/100.arp_filter".into(), "1".into())],
            files: vec![("/sys/a b".into(), "50% of it".into())],
            ..Persisted::default()
        };
        let of = |file: Option<String>| set_at_boot(&file.unwrap());
        assert_eq!(
            of(persisted.sysctl_file("# mine = 1\n")),
            [(
                "/proc/sys/net/ipv4/conf/eth0.100/arp_filter".to_owned(),
                "1".to_owned()
            )]
        );
        assert_eq!(
            of(persisted.tmpfiles_file("")),
            [("/sys/a b".to_owned(), "50% of it".to_owned())]
        );
    }

    #[test]
    fn what_another_device_may_be_at_after_a_boot_is_not_persisted() {
        let unit = |path: &str, device: Option<&str>| UndoUnit::Files {
            files: vec![KernelFile {
                path: path.to_owned(),
                form: Form::Plain,
                device: device.map(str::to_owned),
            }],
            leads: 1,
            counterparts: false,
        };
        let check = |path: &str, device: Option<&str>, expected: Option<&str>| {
            let found = by_another_name(path, &unit(path, device));
            match (&found, expected) {
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{path}: {found}"),
                _ => assert_eq!(found.as_deref(), expected, "{path}"),
            }
        };
        let ahead = "/sys/block/sda/queue/read_ahead_kb";
        check(
            ahead,
            Some("wwid:naa.5000c500"),
            Some("the one with wwid:naa.5000c500"),
        );
        check(ahead, None, None);
        check("/proc/irq/27/smp_affinity_list", None, Some("interrupts"));
        check("/proc/irq/default_smp_affinity", None, None);
        check("/sys/kernel/mm/ksm/run", None, None);
    }

    #[test]
    fn names_swap_dots_and_slashes() {
        assert_eq!(
            sysctl_name("net/ipv4/conf/eth0.100/arp_filter"),
            "net.ipv4.conf.eth0/100.arp_filter"
        );
    }
}
