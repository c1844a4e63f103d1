//! The catalogue as the program prints it, and the reference page that is made of it.

use common::Home;

#[test]
fn reference_page_has_every_knob_with_what_it_costs() {
    let home = Home::new();
    let page = home.run(&["knobs", "--format", "md"]).fine().out;
    let json = home.run(&["knobs", "--json"]).fine().json();
    let knobs = json["knobs"].as_array().expect("knobs");
    assert!(knobs.len() > 300, "{}", knobs.len());
    for knob in knobs {
        let id = knob["id"].as_str().expect("an id");
        let head = format!("### `{id}`\n");
        let section = page
            .split_once(&head)
            .unwrap_or_else(|| panic!("no {head:?} in the page"))
            .1;
        let section = section.split("\n### ").next().unwrap_or_default();
        let kind = knob["kind"].as_str().expect("a kind");
        assert!(section.contains(kind), "{id}: no {kind} in {section}");
    }
}

#[test]
fn one_knob_is_found_by_its_id_and_an_instance_behind_it() {
    let home = Home::new();
    let said = home.run(&["knobs", "block.scheduler@sda"]).fine();
    for text in ["block.scheduler\n", "risk", "/sys/block/{disk}/queue/nr_requests"] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
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
fn an_unknown_id_is_reported_with_the_nearest() {
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
