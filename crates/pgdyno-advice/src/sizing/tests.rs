use super::*;
use serde_json::json;

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.005 * other
}

#[test]
fn formulas_give_what_their_sources_give() {
    // [ibm-z]: 64 GB of memory, a quarter and three quarters of it.
    assert_eq!(buffers(64.0 * GB), 16.0 * GB);
    assert_eq!(cache(64.0 * GB), 48.0 * GB);
    // [ibm-z]: pages of 1 MB for some 17 GB of shared memory.
    assert_eq!(pages(17.0 * GB, MB), 17_408.0);
    // [percona-hugepages]: 224 clients, 188 GB.
    assert!(near(page_tables(224.0, 188.0 * GB, 4096.0), 82.25 * GB));
    assert_eq!(maintenance(4.0 * GB), 256.0 * MB);
    assert_eq!(maintenance(GB / 2.0), 32.0 * MB);
    assert_eq!(usual_wal(3.8 * GB), 2.0 * GB);
    assert_eq!(usual_wal(256.0 * GB), 16.0 * GB);
    assert_eq!(write_back(64.0 * GB), (64.0 * MB, 512.0 * MB));
    assert_eq!(maintenance(1024.0 * GB), GB);
    assert_eq!(buffers_of_pool(17.0 * GB), 16_832.0 * MB);
}

#[test]
fn a_sort_that_fits_makes_the_worst_case_fit() {
    let mut wants = Wants {
        sessions: 500.0,
        sort_bytes: 64.0 * MB,
        hash_factor: 2.0,
        shared_bytes: 16.5 * GB,
        maintenance_bytes: GB,
        vacuum_bytes: GB,
        vacuum_workers: 3.0,
        tables_bytes_per_session: 33.0 * MB,
    };
    let memory = 64.0 * GB;
    assert!(wants.worst_case() > memory);
    wants.sort_bytes = wants.sort_that_fits(memory);
    assert!(
        near(wants.worst_case(), memory * PLANNED),
        "{}",
        wants.worst_case()
    );
    wants.sort_bytes = 64.0 * MB;
    wants.sessions = wants.sessions_that_fit(memory);
    assert!(wants.worst_case() <= memory * PLANNED);
    wants.shared_bytes = memory;
    assert_eq!(wants.sort_that_fits(memory), 0.0);
    assert_eq!(wants.sessions_that_fit(memory), 0.0);
}

fn sized(facts: &[(&str, Value)]) -> Known {
    let facts: Vec<Fact> = facts
        .iter()
        .map(|(name, value)| Fact::known(name, "test", value.clone()))
        .collect();
    let sources = Sources::parse(include_str!("../../catalog/advice/sizing.toml")).unwrap();
    let sizing = Sizing::of(&sources, &Known::new(&facts, &[]));
    let all: Vec<Fact> = facts.into_iter().chain(sizing.facts).collect();
    Known::new(&all, &[])
}

#[test]
fn a_pool_is_counted_on_the_nodes_that_the_server_may_use() {
    let pools = json!([
        {"node": 0, "page_bytes": 2_097_152, "total": 600, "free": 600},
        {"node": 1, "page_bytes": 2_097_152, "total": 600, "free": 600},
        {"node": 0, "page_bytes": 1_073_741_824, "total": 4, "free": 4},
    ]);
    let mut facts = vec![
        ("huge_pages.default_bytes", json!(2_097_152)),
        ("huge_pages.needed", json!(1000)),
        ("huge_pages.pools", pools),
        ("process.memory_nodes_allowed", json!("0-1")),
        ("setting.shared_buffers", json!(2_000_000_000)),
    ];
    let number = |known: &Known, name: &str| known.get(name).unwrap().as_f64().unwrap();
    let known = sized(&facts);
    assert_eq!(number(&known, "sizing.pool_lacks_pages"), 0.0);
    assert_eq!(number(&known, "sizing.pool_wanted_pages"), 1020.0);
    facts[3].1 = json!("1");
    assert_eq!(number(&sized(&facts), "sizing.pool_lacks_pages"), 400.0);
    // What the server has already is not lacking.
    facts.push(("process.huge_pages.pool_shared_bytes", json!(400 * 2_097_152_u64)));
    assert_eq!(number(&sized(&facts), "sizing.pool_lacks_pages"), 0.0);
}

#[test]
fn what_cannot_be_sized_says_why() {
    let known = sized(&[("cpu.online_count", json!(4))]);
    let error = known.get("sizing.worst_case_bytes").unwrap_err().to_string();
    assert!(
        error.contains("setting.shared_buffers") || error.contains("shared_memory"),
        "{error}"
    );
}
