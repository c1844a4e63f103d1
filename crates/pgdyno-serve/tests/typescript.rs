//! The page's types are what the code's generate.

#[path = "../examples/model_typescript.rs"]
mod typescript;

#[test]
fn types_of_the_page_are_those_that_are_serialised() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/generated/model.ts");
    let there = std::fs::read_to_string(path).expect("ui/src/generated/model.ts, which `make types` writes");
    assert_eq!(
        there,
        typescript::text(),
        "ui/src/generated/model.ts is old: run `make types`"
    );
}
