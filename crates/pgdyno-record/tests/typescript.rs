//! The page's copy of the table of metrics is what the table generates.

#[path = "../examples/metrics_typescript.rs"]
mod typescript;

#[test]
fn metrics_of_the_page_are_those_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/generated/metrics.ts");
    let there =
        std::fs::read_to_string(path).expect("ui/src/generated/metrics.ts, which `make types` writes");
    assert_eq!(
        there,
        typescript::text(),
        "ui/src/generated/metrics.ts is old: run `make types`"
    );
}
