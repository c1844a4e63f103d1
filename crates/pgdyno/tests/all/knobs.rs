//! The catalogue as the program tells it, and the reference page that is made of it.

use common::Home;
use std::fs;
use std::path::Path;

/// What makes docs/knobs.md anew.
const RENEW: &str = "cargo run -q -p pgdyno -- knobs --format md > docs/knobs.md";

#[test]
fn the_reference_page_is_what_the_catalogue_says() {
    let said = Home::new().run(&["knobs", "--format", "md"]).fine();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/knobs.md");
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        said.out == page,
        "docs/knobs.md is not what the catalogue says; renew it: {RENEW}"
    );
}

#[test]
fn one_knob_is_found_by_its_id_and_an_instance_behind_it() {
    let home = Home::new();
    let said = home.run(&["knobs", "block.scheduler@sda"]).fine();
    for words in ["block.scheduler\n", "risk", "/sys/block/{disk}/queue/nr_requests"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let json = home.run(&["knobs", "block.scheduler", "--json"]).fine().json();
    assert_eq!(json["format"], "pgdyno-knobs/1");
    assert_eq!(json["knobs"][0]["kind"], "bracket");
}

#[test]
fn a_layer_is_listed_alone_and_nothing_is_cut_in_a_pipe() {
    let home = Home::new();
    let said = home.run(&["knobs", "--layer", "table"]).fine();
    assert!(said.out.contains("table.fillfactor"), "{}", said.out);
    assert!(
        !said.out.contains("shared_buffers ") && !said.out.contains('\u{2026}'),
        "{}",
        said.out
    );
    let json = home.run(&["knobs", "--layer", "table", "--json"]).fine().json();
    let knobs = json["knobs"].as_array().expect("knobs");
    assert!(knobs.len() > 20 && knobs.iter().all(|knob| knob["layer"] == "table"));
}

#[test]
fn an_unknown_id_is_told_with_the_nearest() {
    let home = Home::new();
    home.run(&["knobs", "shared_bufers"]).fails(
        2,
        &["did you mean \"shared_buffers\"?", "hint: `pgdyno knobs` lists"],
    );
    home.run(&["knobs", "read_ahead_kb"])
        .fails(2, &["did you mean \"block.read_ahead_kb\"?"]);
    home.run(&["knobs", "--layer", "disk"])
        .fails(2, &["postgres, table, kernel, memory, block, cpu, net"]);
    home.run(&["knobs", "jit", "--layer", "net"])
        .fails(2, &["cannot be used with"]);
}
