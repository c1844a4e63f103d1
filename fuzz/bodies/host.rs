//! Files of hosts and of servers, and what programs print of a host.

use super::input::{choice, halves, text};
use pgdyno_host::{
    Directory, Fact, HostAccess, HostError, HostSeries, HostSeriesOptions, Identity, LocalHost, host_facts,
    process_facts, same_device_fact, storage_facts,
};
use pgdyno_sandbox::Sandbox;
use pgdyno_server::Postmaster;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A host every file of which has the same content.
struct Anything(String);

fn missing(path: &str) -> HostError {
    HostError::Missing {
        path: path.to_owned(),
    }
}

impl HostAccess for Anything {
    fn read(&self, _: &str) -> Result<String, HostError> {
        Ok(self.0.clone())
    }
    fn read_in(&self, _: &Path, _: &str) -> Result<String, HostError> {
        Ok(self.0.clone())
    }
    fn list(&self, _: &str) -> Result<Vec<String>, HostError> {
        Ok(self.0.split_whitespace().map(str::to_owned).collect())
    }
    fn read_link(&self, _: &str) -> Result<String, HostError> {
        Ok(self.0.clone())
    }
    fn device_of(&self, _: &str) -> Result<(u32, u32), HostError> {
        Ok((8, 1))
    }
    fn directory(&self, path: &Path) -> Result<Directory, HostError> {
        Err(missing(&path.to_string_lossy()))
    }
    fn identity_of(&self, path: &str) -> Result<Identity, HostError> {
        Err(missing(path))
    }
    fn writable(&self, _: &str) -> Result<(), HostError> {
        Ok(())
    }
    fn write_raw(&self, path: &str, _: &str) -> Result<(), HostError> {
        Err(missing(path))
    }
    fn replace_raw(&self, path: &str, _: Option<&str>) -> Result<(), HostError> {
        Err(missing(path))
    }
    fn hold_raw(&self, path: &str, _: &str) -> Result<File, HostError> {
        Err(missing(path))
    }
    fn bind_raw(&self, _: u32, _: &[usize]) -> Result<(), HostError> {
        Err(missing("/proc"))
    }
}

/// /proc, /sys and /etc of any content give facts or reasons, and figures that can be.
pub(super) fn host_files(bytes: &[u8]) {
    let host = Anything(text(bytes).into_owned());
    let mut facts: Vec<Fact> = host_facts(&host);
    facts.extend(storage_facts(&host, "data", "/srv/data"));
    facts.push(same_device_fact(&host, "/srv/data", "/srv/wal"));
    facts.extend(process_facts(&host, 1));
    for fact in facts {
        assert!(fact.value.is_some() != fact.missing.is_some());
    }
    let _ = pgdyno_host::cpu_us_of_tree(&host, 1);
    let mut series = HostSeries::new(HostSeriesOptions {
        disks: None,
        postmaster: Some(1),
        cgroup_of: Some(1),
    });
    for _ in 0..2 {
        for reading in series.tick(&host) {
            let is_one = |value: &f64| value.is_finite() && *value >= 0.0;
            assert!(reading.values.iter().all(|(_, value)| is_one(value)));
        }
    }
}

/// A new directory of this process's user alone, which is removed with what is in it.
fn own_directory() -> TempDir {
    let prefix = format!("pgdyno-fuzz-{}-", std::process::id());
    tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir()
        .expect("a directory")
}

/// Writes a file of its owner's alone in a directory, and gives its path.
fn own_file(directory: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path.parent().expect("a directory")).expect("made");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(&path).expect("a file");
    file.write_all(content).expect("written");
    path
}

/// What is beside a server: postgresql.auto.conf, postmaster.pid, the end of its log, sandbox.json.
pub(super) fn server_files(bytes: &[u8]) {
    let (which, rest) = choice(bytes);
    match which % 4 {
        0 => drop(pgdyno_server::autoconf::parse(&text(rest))),
        1 => {
            let own = own_directory();
            own_file(&own, "data/postmaster.pid", rest);
            let data = own.path().join("data");
            drop(Postmaster::of_data(&LocalHost::new(), &data));
        }
        2 => pgdyno_sandbox::fuzzed::log_tail(&text(rest)),
        _ => {
            let own = own_directory();
            own_file(&own, "x/sandbox.json", rest);
            if let Err(error) = Sandbox::open(own.path(), "x") {
                drop(error.to_string());
            }
        }
    }
}

/// What `ip -json`, dmsetup and engines of containers print, and a swap file's first page.
pub(super) fn host_programs(bytes: &[u8]) {
    let (which, rest) = choice(bytes);
    match which % 4 {
        0 => pgdyno_sandbox::fuzzed::ip_json(&text(rest)),
        1 => pgdyno_knobs::fuzzed::volume_table(&text(rest)),
        2 => pgdyno_sandbox::fuzzed::inspected_container(rest),
        _ => {
            let mut page = vec![0; 4096];
            let length = rest.len().min(100);
            page[1024..1024 + length].copy_from_slice(&rest[..length]);
            page[4086..].copy_from_slice(b"SWAPSPACE2");
            pgdyno_knobs::fuzzed::swap_header(&page);
            pgdyno_knobs::fuzzed::swap_header(rest);
        }
    }
}

/// Connection strings, with a password file and a service file of any content.
pub(super) fn conninfo(bytes: &[u8]) {
    let (string, files) = halves(bytes);
    let string = text(string);
    let (passwords, services) = halves(files);
    let own = own_directory();
    let passwords = own_file(&own, "pgpass", passwords);
    let services = own_file(&own, "services", services);
    let environment = |name: &str| {
        let path = match name {
            "PGPASSFILE" => &passwords,
            "PGSERVICEFILE" => &services,
            _ => return None,
        };
        Some(path.to_string_lossy().into_owned())
    };
    for string in [string.to_string(), format!("service=a {string}")] {
        pgdyno_server::fuzzed::conninfo(&string, &environment);
    }
}
