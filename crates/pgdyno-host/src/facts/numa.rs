//! Memory nodes: CPUs, memory and distances.

use super::sheet::{Sheet, bytes_of_line, count_of_list, object, or_null};
use serde_json::Value;

const NODES: &str = "/sys/devices/system/node";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    let path = format!("{NODES}/online");
    let online = sheet.list_of(&path).and_then(|list| match list.as_str() {
        "none" => Err(format!("{path} is empty")),
        _ => Ok(list),
    });
    let count = online.clone().map(|list| count_of_list(&list));
    sheet.note("numa.online_count", &path, count);
    sheet.note("numa.online", &path, online);
    let nodes = sheet.numbered(NODES, "node").map(|nodes| {
        let nodes = nodes.iter().map(|&number| node(sheet, number));
        nodes.collect::<Vec<_>>()
    });
    sheet.note("numa.nodes", &format!("{NODES}/node*"), nodes);
    // A node slower than memory (persistent, CXL) takes pages that are little used, where this is
    // on.
    sheet.value("numa.demotion_enabled", "/sys/kernel/mm/numa/demotion_enabled");
}

fn node(sheet: &Sheet<'_>, number: u32) -> Value {
    let directory = format!("{NODES}/node{number}");
    // A node may have no CPUs, or no memory.
    let cpus = sheet.list_of(&format!("{directory}/cpulist"));
    let memory = sheet.text_of_long(&format!("{directory}/meminfo"));
    let memory = memory
        .ok()
        .and_then(|text| bytes_of_line(&text, &format!("Node {number} MemTotal")));
    let distances = sheet.text_of(&format!("{directory}/distance"));
    let distances = distances.ok().and_then(|text| {
        let each: Option<Vec<u64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        each
    });
    object([
        ("node", number.into()),
        ("cpus", or_null(cpus)),
        ("memory_bytes", memory.into()),
        ("distances", distances.into()),
    ])
}
