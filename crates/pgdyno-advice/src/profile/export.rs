//! A resolved profile as a file of another program. What a format cannot carry is in it as
//! comments, by name.

use super::resolve::{Resolved, ResolvedSetting};
use pgdyno_knobs::{AUTO, Catalogue, Cost, Kind, Knob, Place, sysctl_path};
use pgdyno_server::assigned;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A format of other programs that settings are exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A profile of TuneD: kernel and devices, kept by its daemon.
    Tuned,
    /// A file for /etc/sysctl.d: what is below /proc/sys, at every boot.
    SysctlD,
    /// A file for `include` in postgresql.conf.
    PostgresqlConf,
    /// SQL that writes postgresql.auto.conf.
    AlterSystem,
    /// A playbook: server, /proc/sys, and files of /sys by systemd-tmpfiles.
    Ansible,
}

impl Carrier {
    /// Every format, once, for parsing and help.
    pub const ALL: [Carrier; 5] = [
        Carrier::Tuned,
        Carrier::SysctlD,
        Carrier::PostgresqlConf,
        Carrier::AlterSystem,
        Carrier::Ansible,
    ];

    /// Name on the command line: "sysctl.d".
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Tuned => "tuned",
            Carrier::SysctlD => "sysctl.d",
            Carrier::PostgresqlConf => "postgresql.conf",
            Carrier::AlterSystem => "alter-system",
            Carrier::Ansible => "ansible",
        }
    }

    /// Path of the file below a directory.
    fn file(self, profile: &str) -> String {
        match self {
            Carrier::Tuned => format!("pgdyno-{profile}/tuned.conf"),
            Carrier::SysctlD => format!("90-pgdyno-{profile}.conf"),
            Carrier::PostgresqlConf => format!("pgdyno-{profile}.conf"),
            Carrier::AlterSystem => format!("pgdyno-{profile}.sql"),
            Carrier::Ansible => format!("pgdyno-{profile}.yml"),
        }
    }

    fn comment(self) -> &'static str {
        match self {
            Carrier::AlterSystem => "--",
            _ => "#",
        }
    }
}

/// A file in another program's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Usual path of the file, below a directory.
    pub file: String,
    /// Content of the file.
    pub text: String,
    /// Knobs that the format cannot carry; they are comments in it.
    pub not_carried: Vec<String>,
}

/// The beginning of every export: a file that begins so may be written over.
const MARK: &str = "pgdyno profile";

impl Exported {
    /// Whether a file's text is an export, of any format.
    pub fn is_one(text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        first.trim_start_matches(['#', '-', ' ']).starts_with(MARK)
    }
}

/// How a setting reaches its knob.
enum Route {
    Guc,
    /// Name for sysctl, and whether this kernel is known to have it there.
    Sysctl(String, bool),
    Files(Vec<String>),
    Held,
    None(String),
}

fn route(setting: &ResolvedSetting, knob: &Knob, place: &Place) -> Route {
    match knob.kind {
        Kind::Guc => return Route::Guc,
        Kind::HeldFile => return Route::Held,
        Kind::Sysctl | Kind::HugepagePool | Kind::Sysfs | Kind::Bracket => {}
        _ => return Route::None("it is neither a parameter nor a file of the kernel".into()),
    }
    if setting.value == AUTO {
        return Route::None(
            "the number of pages depends on the new settings: postgres -C \
             shared_memory_size_in_huge_pages prints it (15 and later)"
                .into(),
        );
    }
    let (files, is_certain) = match place {
        Place::Files(files) => (files.clone(), true),
        Place::Nowhere(why) => return Route::None(why.clone()),
        Place::Unknown => match knob.addresses.first() {
            None => (vec![sysctl_path(&knob.id)], true),
            Some(address) if address.contains('{') => {
                return Route::None("which device is meant is not known without the host".into());
            }
            Some(address) => (vec![address.clone()], knob.addresses.len() == 1),
        },
    };
    match files.as_slice() {
        [] => Route::None("this host has no such file".into()),
        [file] => match file.strip_prefix("/proc/sys/") {
            Some(name) => Route::Sysctl(sysctl_name(name), is_certain),
            None => Route::Files(files),
        },
        _ => Route::Files(files),
    }
}

/// An interface's own dot is a slash then: sysctl(8).
fn sysctl_name(path: &str) -> String {
    path.chars()
        .map(|c| match c {
            '/' => '.',
            '.' => '/',
            other => other,
        })
        .collect()
}

/// A profile in a format. `target` is for people; `place` returns where a knob is on the host.
pub fn export(
    resolved: &Resolved,
    catalogue: &Catalogue,
    carrier: Carrier,
    target: &str,
    place: &dyn Fn(&str) -> Place,
) -> Exported {
    let mut writer = Writer {
        carrier,
        text: String::new(),
        rest: Vec::new(),
    };
    writer.comment(&format!("{MARK} {}: {}", resolved.profile, resolved.title));
    writer.comment(&format!("Worked out for {target}"));
    writer.comment(match carrier {
        Carrier::Tuned => "A profile of TuneD: /etc/tuned/NAME/tuned.conf, then tuned-adm profile NAME",
        Carrier::SysctlD => "For /etc/sysctl.d; sysctl --system reads it now",
        Carrier::PostgresqlConf => {
            "For postgresql.conf: include 'FILE'; later lines of postgresql.conf and postgresql.auto.conf win"
        }
        Carrier::AlterSystem => "For psql as a superuser; it writes postgresql.auto.conf",
        Carrier::Ansible => {
            "ansible-playbook FILE; needs the collections community.postgresql and ansible.posix"
        }
    });
    let routed: Vec<(&ResolvedSetting, Route)> = resolved
        .settings
        .iter()
        .map(|setting| {
            let route = match catalogue.get(&setting.knob) {
                Ok(knob) => route(setting, knob, &place(&setting.knob)),
                Err(error) => Route::None(error.to_string()),
            };
            (setting, route)
        })
        .collect();
    match carrier {
        Carrier::Tuned => writer.tuned(resolved, &routed),
        Carrier::SysctlD => writer.sysctl(&routed),
        Carrier::PostgresqlConf => writer.conf(&routed),
        Carrier::AlterSystem => writer.sql(&routed),
        Carrier::Ansible => writer.ansible(resolved, &routed),
    }
    writer.rest(resolved);
    Exported {
        file: carrier.file(&resolved.profile),
        text: writer.text,
        not_carried: writer.rest.into_iter().map(|(knob, ..)| knob).collect(),
    }
}

type Routed<'r> = [(&'r ResolvedSetting, Route)];

struct Writer {
    carrier: Carrier,
    text: String,
    /// (knob, value, why) of what the format cannot carry.
    rest: Vec<(String, String, String)>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn comment(&mut self, text: &str) {
        let indent = if text.starts_with("  ") { "  " } else { "" };
        let line = format!("{} {indent}{}", self.carrier.comment(), one_line(text));
        self.line(&line);
    }

    fn why(&mut self, setting: &ResolvedSetting) {
        self.comment(&format!("{} ({})", setting.reason, setting.source));
    }

    fn cannot(&mut self, setting: &ResolvedSetting, why: &str) {
        self.rest
            .push((setting.knob.clone(), setting.value.clone(), why.to_owned()));
    }

    /// What is not in the file, by name.
    fn rest(&mut self, resolved: &Resolved) {
        if !self.rest.is_empty() {
            self.line("");
            self.comment("Not carried by this format:");
        }
        for (knob, value, why) in self.rest.clone() {
            self.comment(&format!("  {knob} = {value}: {why}"));
        }
        if !resolved.skipped.is_empty() {
            self.line("");
            self.comment("Skipped for this target:");
        }
        for left in &resolved.skipped {
            self.comment(&format!("  {}: {}", left.knob, left.shown()));
        }
    }

    fn tuned(&mut self, resolved: &Resolved, routed: &Routed<'_>) {
        let options = tuned_options();
        self.line("[main]");
        self.line(&format!("summary={}", one_line(&resolved.title).replace('#', "")));
        let mut sections: BTreeMap<String, Vec<(String, &ResolvedSetting)>> = BTreeMap::new();
        for (setting, route) in routed {
            if let Some(option) = options.iter().find(|option| option.knob == setting.knob)
                && !matches!(route, Route::None(_))
            {
                let plugin = sections.entry(option.plugin.clone()).or_default();
                plugin.push((option.option.clone(), setting));
                continue;
            }
            match route {
                Route::Sysctl(name, _) => {
                    let plugin = sections.entry("sysctl".into()).or_default();
                    plugin.push((name.clone(), setting));
                }
                Route::Files(files) if files.iter().all(|file| file.starts_with("/sys/")) => {
                    let plugin = sections.entry("sysfs".into()).or_default();
                    plugin.extend(files.iter().map(|file| (file.clone(), *setting)));
                }
                Route::Files(_) => {
                    self.cannot(setting, "TuneD writes no files but those of /sys and /proc/sys")
                }
                Route::Guc => self.cannot(setting, "a setting of the server"),
                Route::Held => self.cannot(setting, "a file to be held open"),
                Route::None(why) => self.cannot(setting, why),
            }
        }
        for (plugin, options) in sections {
            self.line("");
            self.line(&format!("[{plugin}]"));
            for (option, setting) in options {
                self.why(setting);
                self.line(&format!("{option}={}", setting.value));
            }
        }
    }

    fn sysctl(&mut self, routed: &Routed<'_>) {
        for (setting, route) in routed {
            match route {
                Route::Sysctl(name, is_certain) => {
                    self.line("");
                    self.why(setting);
                    // A kernel that keeps it elsewhere is not an error then.
                    let sign = if *is_certain { "" } else { "-" };
                    self.line(&format!("{sign}{name} = {}", setting.value));
                }
                Route::Files(files) => {
                    self.cannot(setting, &format!("not below /proc/sys but {}", files.join(", ")))
                }
                Route::Guc => self.cannot(setting, "a setting of the server"),
                Route::Held => self.cannot(setting, "a file to be held open"),
                Route::None(why) => self.cannot(setting, why),
            }
        }
    }

    /// Settings of the server; the others are named.
    fn gucs<'r>(&mut self, routed: &Routed<'r>) -> Vec<&'r ResolvedSetting> {
        let mut gucs = Vec::new();
        for (setting, route) in routed {
            match route {
                Route::Guc => gucs.push(*setting),
                Route::None(why) => self.cannot(setting, why),
                _ => self.cannot(setting, "a setting of the host"),
            }
        }
        gucs
    }

    fn conf(&mut self, routed: &Routed<'_>) {
        for setting in self.gucs(routed) {
            self.line("");
            self.why(setting);
            self.line(&format!(
                "{} = {}{}",
                setting.knob,
                quoted(&setting.value),
                remark(setting, "#")
            ));
        }
    }

    fn sql(&mut self, routed: &Routed<'_>) {
        let gucs = self.gucs(routed);
        for setting in &gucs {
            let Some(value) = assigned(&setting.knob, &setting.value) else {
                self.cannot(setting, "ALTER SYSTEM cannot write a list without names");
                continue;
            };
            self.line("");
            self.why(setting);
            let remark = remark(setting, "--");
            self.line(&format!("ALTER SYSTEM SET {} = {value};{remark}", setting.knob));
        }
        if !gucs.is_empty() {
            self.line("");
            self.line("SELECT pg_reload_conf();");
        }
    }

    fn ansible(&mut self, resolved: &Resolved, routed: &Routed<'_>) {
        let mut tasks = String::new();
        let mut files = String::new();
        let mut restarts = false;
        for (setting, route) in routed {
            let comment = format!("{} ({})", setting.reason, setting.source);
            let mut task = |module: &str, fields: &[(&str, &str)], notify: bool| {
                let _ = writeln!(tasks, "    # {}", one_line(&comment));
                let _ = writeln!(
                    tasks,
                    "    - name: {}",
                    yaml(&format!("{} = {}", setting.knob, setting.value))
                );
                let _ = writeln!(tasks, "      {module}:");
                for (field, value) in fields {
                    let _ = writeln!(tasks, "        {field}: {value}");
                }
                if notify {
                    let _ = writeln!(tasks, "      become_user: \"{{{{ postgresql_user }}}}\"");
                    let _ = writeln!(tasks, "      notify: {}", yaml(handler(setting.cost)));
                }
            };
            match route {
                Route::Guc => {
                    restarts |= setting.cost == Cost::Restart;
                    let (name, value) = (yaml(&setting.knob), yaml(&setting.value));
                    task(
                        "community.postgresql.postgresql_set",
                        &[("name", &name), ("value", &value)],
                        true,
                    );
                }
                Route::Sysctl(name, is_certain) => {
                    let (name, value) = (yaml(name), yaml(&setting.value));
                    let file = yaml(&format!("/etc/sysctl.d/90-pgdyno-{}.conf", resolved.profile));
                    let ignore = if *is_certain { "false" } else { "true" };
                    let fields = [
                        ("name", name.as_str()),
                        ("value", &value),
                        ("sysctl_file", &file),
                        ("sysctl_set", "true"),
                        ("ignoreerrors", ignore),
                    ];
                    task("ansible.posix.sysctl", &fields, false);
                }
                Route::Files(paths) => {
                    let _ = writeln!(files, "          # {}", one_line(&comment));
                    for path in paths {
                        let _ = writeln!(files, "          w {path} - - - - {}", setting.value);
                    }
                }
                Route::Held => self.cannot(setting, "a file to be held open"),
                Route::None(why) => self.cannot(setting, why),
            }
        }
        self.line("- name: \"pgdyno profile\"");
        self.line("  hosts: \"{{ postgresql_hosts | default('all') }}\"");
        self.line("  become: true");
        self.line("  vars:");
        self.line("    postgresql_user: postgres");
        self.line("    postgresql_service: postgresql");
        self.line("    # A restart ends all sessions, so nothing restarts before this is true.");
        self.line("    postgresql_may_restart: false");
        if tasks.is_empty() && files.is_empty() {
            self.line("  tasks: []");
            return;
        }
        self.line("  tasks:");
        self.text.push_str(&tasks);
        if !files.is_empty() {
            self.line("    - name: Files of the kernel, now and at every boot");
            self.line("      ansible.builtin.copy:");
            self.line(&format!(
                "        dest: {}",
                yaml(&format!("/etc/tmpfiles.d/pgdyno-{}.conf", resolved.profile))
            ));
            self.line("        mode: \"0644\"");
            self.line("        content: |");
            self.text.push_str(&files);
            self.line("      notify: \"write files of the kernel\"");
        }
        self.line("  handlers:");
        self.line("    - name: \"reload PostgreSQL\"");
        self.line("      ansible.builtin.service:");
        self.line("        name: \"{{ postgresql_service }}\"");
        self.line("        state: reloaded");
        if restarts {
            self.line("    - name: \"restart PostgreSQL\"");
            self.line("      ansible.builtin.service:");
            self.line("        name: \"{{ postgresql_service }}\"");
            self.line("        state: restarted");
            self.line("      when: postgresql_may_restart | bool");
        }
        if !files.is_empty() {
            self.line("    - name: \"write files of the kernel\"");
            self.line(&format!(
                "      ansible.builtin.command: \"systemd-tmpfiles --create /etc/tmpfiles.d/pgdyno-{}.conf\"",
                resolved.profile
            ));
        }
    }
}

fn handler(cost: Cost) -> &'static str {
    match cost {
        Cost::Restart => "restart PostgreSQL",
        _ => "reload PostgreSQL",
    }
}

/// What is to be known of a line.
fn remark(setting: &ResolvedSetting, sign: &str) -> String {
    match setting.cost {
        Cost::Restart => format!(" {sign} counts after a restart"),
        _ => String::new(),
    }
}

/// A value in quotes, for postgresql.conf.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A text as YAML takes it: JSON's texts are YAML's.
fn yaml(text: &str) -> String {
    // A template of Ansible's is none of ours.
    serde_json::Value::from(text.replace("{{", "{ {")).to_string()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TunedOption {
    knob: String,
    plugin: String,
    option: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TunedFile {
    option: Vec<TunedOption>,
}

/// Shipped, and read by a test: where it cannot be read nothing has an option of its own.
fn tuned_options() -> Vec<TunedOption> {
    let text = include_str!("../../catalog/formats/tuned.toml");
    toml::from_str::<TunedFile>(text).map_or_else(|_| Vec::new(), |file| file.option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_for_each_format() {
        assert_eq!(quoted("it's"), "'it''s'");
        assert_eq!(yaml("a \"b\" {{ c }}: # d"), r#""a \"b\" { { c }}: # d""#);
    }

    #[test]
    fn options_of_tuned_are_those_of_knobs() {
        let catalogue = Catalogue::shipped().unwrap();
        let options = tuned_options();
        assert!(!options.is_empty());
        for option in options {
            assert!(catalogue.find(&option.knob).is_some(), "{}", option.knob);
        }
    }

    #[test]
    fn an_export_is_known_again() {
        for text in ["# pgdyno profile oltp: x\n", "-- pgdyno profile oltp: x\n"] {
            assert!(Exported::is_one(text));
        }
        assert!(!Exported::is_one("# my own file\n") && !Exported::is_one(""));
    }
}
