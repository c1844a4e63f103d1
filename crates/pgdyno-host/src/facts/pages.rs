//! Huge pages: pools of each size on each node, and transparent ones with their sizes.

use super::sheet::{Sheet, bytes_of_line, bytes_of_size, object, or_null};
use crate::access::HostError;
use serde_json::Value;

const POOLS: &str = "/sys/kernel/mm/hugepages";
const NODES: &str = "/sys/devices/system/node";
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
/// How the directories of one size are named, pools and transparent pages alike.
const SIZE: &str = "hugepages-";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    note_default_size(sheet);
    let sizes = sizes_in(sheet, POOLS, "huge pages");
    let all = sizes.clone().map(|sizes| {
        sizes
            .iter()
            .map(|size| whole_pool(sheet, size))
            .collect::<Vec<_>>()
    });
    sheet.note("huge_pages.sizes", POOLS, all);
    let (pools, source) = node_pools(sheet);
    let pools = if pools.is_empty() {
        sizes.map(|sizes| {
            sizes
                .iter()
                .map(|size| pool(sheet, POOLS, size, Value::Null))
                .collect()
        })
    } else {
        Ok(pools)
    };
    sheet.note("huge_pages.pools", &source, pools);
    note_transparent(sheet);
}

fn note_default_size(sheet: &mut Sheet<'_>) {
    let bytes = sheet.text_of_long("/proc/meminfo").and_then(|text| {
        bytes_of_line(&text, "Hugepagesize")
            .ok_or_else(|| "this kernel or machine has no huge pages".to_owned())
    });
    sheet.note("huge_pages.default_bytes", "/proc/meminfo, Hugepagesize", bytes);
}

/// The directories of each size, with that size in bytes.
fn sizes_in(sheet: &Sheet<'_>, directory: &str, what: &str) -> Result<Vec<(String, u64)>, String> {
    let names = sheet.host.list(directory).map_err(|error| match error {
        HostError::Missing { .. } => {
            format!("this kernel or machine has no {what} ({directory} is not there)")
        }
        other => super::sheet::why(other),
    })?;
    let mut sizes: Vec<(String, u64)> = names
        .into_iter()
        .filter_map(|name| {
            let bytes = bytes_of_size(name.strip_prefix(SIZE)?)?;
            Some((name, bytes))
        })
        .collect();
    sizes.sort_by_key(|(_, bytes)| *bytes);
    Ok(sizes)
}

/// A pool over all nodes. Reserved pages are promised to mappings, surplus ones go when they are
/// free.
fn whole_pool(sheet: &Sheet<'_>, (name, bytes): &(String, u64)) -> Value {
    let number = |file: &str| or_null(sheet.number_of(&format!("{POOLS}/{name}/{file}")));
    object([
        ("page_bytes", (*bytes).into()),
        ("total", number("nr_hugepages")),
        ("free", number("free_hugepages")),
        ("reserved", number("resv_hugepages")),
        ("surplus", number("surplus_hugepages")),
        ("overcommit", number("nr_overcommit_hugepages")),
    ])
}

fn node_pools(sheet: &Sheet<'_>) -> (Vec<Value>, String) {
    let mut pools = Vec::new();
    for node in sheet.numbered(NODES, "node").unwrap_or_default() {
        let directory = format!("{NODES}/node{node}/hugepages");
        for size in sizes_in(sheet, &directory, "huge pages").unwrap_or_default() {
            pools.push(pool(sheet, &directory, &size, node.into()));
        }
    }
    let source = if pools.is_empty() {
        POOLS.to_owned()
    } else {
        format!("{NODES}/node*/hugepages")
    };
    (pools, source)
}

fn pool(sheet: &Sheet<'_>, directory: &str, (name, bytes): &(String, u64), node: Value) -> Value {
    let number = |file: &str| or_null(sheet.number_of(&format!("{directory}/{name}/{file}")));
    object([
        ("node", node),
        ("page_bytes", (*bytes).into()),
        ("total", number("nr_hugepages")),
        ("free", number("free_hugepages")),
        ("surplus", number("surplus_hugepages")),
    ])
}

fn note_transparent(sheet: &mut Sheet<'_>) {
    for name in ["enabled", "defrag", "shmem_enabled"] {
        sheet.chosen(&format!("thp.{name}"), &format!("{THP}/{name}"));
    }
    sheet.number("thp.pmd_bytes", &format!("{THP}/hpage_pmd_size"));
    sheet.number("thp.use_zero_page", &format!("{THP}/use_zero_page"));
    for name in ["defrag", "scan_sleep_millisecs", "pages_to_scan", "max_ptes_none"] {
        sheet.number(
            &format!("thp.khugepaged.{name}"),
            &format!("{THP}/khugepaged/{name}"),
        );
    }
    let sizes = sizes_in(sheet, THP, "transparent huge pages").and_then(|sizes| {
        if sizes.is_empty() {
            return Err("this kernel has no files per size (6.8 and later do)".to_owned());
        }
        let chosen = |size: &str, file: &str| or_null(sheet.choice_of(&format!("{THP}/{size}/{file}")));
        let each = sizes.iter().map(|(name, bytes)| {
            object([
                ("page_bytes", (*bytes).into()),
                ("enabled", chosen(name, "enabled")),
                ("shmem_enabled", chosen(name, "shmem_enabled")),
            ])
        });
        Ok(each.collect::<Vec<_>>())
    });
    sheet.note("thp.sizes", &format!("{THP}/{SIZE}*"), sizes);
}
