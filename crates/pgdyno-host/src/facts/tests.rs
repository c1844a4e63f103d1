use super::*;
use crate::access::LocalHost;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// A host whose every file holds the same.
struct Anything(String);

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
    fn directory(&self, path: &Path) -> Result<crate::Directory, HostError> {
        Err(HostError::Missing {
            path: path.to_string_lossy().into_owned(),
        })
    }
    fn identity_of(&self, _: &str) -> Result<crate::Identity, HostError> {
        Ok(crate::Identity { device: 8, inode: 1 })
    }
    fn writable(&self, _: &str) -> Result<(), HostError> {
        Ok(())
    }
    fn replace_raw(&self, path: &str, _content: Option<&str>) -> Result<(), HostError> {
        self.write_raw(path, "")
    }

    fn hold_raw(&self, path: &str, _value: &str) -> Result<std::fs::File, HostError> {
        Err(HostError::Missing {
            path: path.to_owned(),
        })
    }

    fn bind_raw(&self, _pid: u32, _cpus: &[usize]) -> Result<(), HostError> {
        self.write_raw("/proc", "")
    }

    fn write_raw(&self, path: &str, _: &str) -> Result<(), HostError> {
        Err(HostError::Missing {
            path: path.to_owned(),
        })
    }
}

/// All facts that there are about a host.
fn all(host: &dyn HostAccess) -> Vec<Fact> {
    let mut facts = host_facts(host);
    facts.extend(storage_facts(host, "data", "/srv/data"));
    facts.push(same_device_fact(host, "/srv/data", "/srv/wal"));
    facts.extend(process_facts(host, 1));
    facts
}

#[track_caller]
fn are_facts(facts: &[Fact]) {
    let mut names = BTreeSet::new();
    for fact in facts {
        assert!(fact.value.is_some() != fact.missing.is_some(), "{fact:?}");
        assert!(names.insert(&fact.name), "{} is there twice", fact.name);
    }
}

#[test]
fn every_fact_has_a_value_or_a_reason() {
    let empty = tempfile::tempdir().unwrap();
    for root in [Path::new("/"), empty.path()] {
        are_facts(&all(&LocalHost::at(root)));
    }
}

#[test]
fn this_machine_names_its_kernel_and_memory() {
    let facts = host_facts(&LocalHost::new());
    let value = |name| {
        facts
            .iter()
            .find(|f| f.name == name)
            .and_then(|f| f.value.clone())
    };
    assert!(value("kernel.release").is_some());
    assert!(value("memory.total_bytes").unwrap().as_u64().unwrap() > 100 << 20);
    assert!(value("cpu.threads").unwrap().as_u64().unwrap() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_content_makes_a_reader_panic(
        text in "\\PC{0,120}",
        words in "(node[0-9] |cpu[0-9] |index1 |hugepages-[0-9]{1,3}kB |8:1 |max |1 |- |\n|/){0,20}",
    ) {
        for text in [text, words] {
            are_facts(&all(&Anything(text)));
        }
    }
}
