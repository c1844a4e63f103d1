//! /proc and /etc of any content give facts or reasons.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_host::{
    HostAccess, HostError, HostSeries, HostSeriesOptions, host_facts, process_facts, same_device_fact, storage_facts,
};

struct Anything(String);

impl HostAccess for Anything {
    fn read(&self, _: &str) -> Result<String, HostError> {
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
    fn writable(&self, _: &str) -> Result<(), HostError> {
        Ok(())
    }
    fn replace_raw(&self, path: &str, _content: Option<&str>) -> Result<(), HostError> {
        self.write_raw(path, "")
    }

    fn hold_raw(&self, path: &str, _value: &str) -> Result<std::fs::File, HostError> {
        Err(HostError::Missing { path: path.to_owned() })
    }

    fn bind_raw(&self, _pid: u32, _cpus: &[usize]) -> Result<(), HostError> {
        self.write_raw("/proc", "")
    }

    fn write_raw(&self, path: &str, _: &str) -> Result<(), HostError> {
        Err(HostError::Missing { path: path.to_owned() })
    }
}

fuzz_target!(|text: String| {
    let host = Anything(text);
    let mut facts = host_facts(&host);
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
            assert!(reading.values.iter().all(|(_, value)| value.is_finite() && *value >= 0.0));
        }
    }
});
