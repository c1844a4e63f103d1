//! Inside a crate, files import one another in one direction. A module and what is below it are one
//! thing: what a module takes from its own submodules, and a crate's root from all of them, is how
//! it is put together.

use crate::absences::code::{CODE, Mentioned, Source};
use std::collections::{BTreeMap, BTreeSet};

type Module = Vec<String>;
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

/// The crate of a file and its module there: "pgdyno-host/src/series/mod.rs" is `series` of
/// pgdyno-host.
fn module_of(path: &str) -> (&str, Module) {
    let (name, rest) = path.split_once("/src/").expect("a source");
    let mut module: Module = rest
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    (name, module)
}

/// A path from the crate's root on; `None` where it is not a path of this crate's.
fn absolute(from: &Module, path: &[String], modules: &BTreeMap<Module, &Source>) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => return Some(rest.to_vec()),
        "self" => from.clone(),
        "super" => from[..from.len().saturating_sub(1)].to_vec(),
        _ => {
            let mut below = from.clone();
            below.push(first.clone());
            modules.contains_key(&below).then_some(below)?
        }
    };
    let ups = rest.iter().take_while(|segment| *segment == "super").count();
    base.truncate(base.len().saturating_sub(ups));
    base.extend_from_slice(&rest[ups..]);
    Some(base)
}

/// The file in which a path's item is, however often it is handed on.
fn resolved(path: &Module, modules: &BTreeMap<Module, &Source>, depth: usize) -> Option<Module> {
    let cut = (0..=path.len())
        .rev()
        .find(|cut| modules.contains_key(&path[..*cut]))?;
    let (module, rest) = (path[..cut].to_vec(), &path[cut..]);
    let export = rest.first().and_then(|name| modules[&module].exports.get(name));
    match export {
        Some(export) if depth > 0 => {
            let mut on = absolute(&module, export, modules)?;
            on.extend_from_slice(&rest[1..]);
            resolved(&on, modules, depth - 1)
        }
        Some(_) => None,
        None => Some(module),
    }
}

/// What each file of a crate takes from others.
fn arrows(modules: &BTreeMap<Module, &Source>) -> Arrows {
    const HANDED_ON_MAX: usize = 8;
    let mut arrows = Arrows::new();
    for (from, source) in modules.iter().filter(|(from, _)| !from.is_empty()) {
        let targets = source.mentions.iter().filter_map(|mention| {
            let (Mentioned::Path { segments, .. } | Mentioned::Macro(segments)) = &mention.what else {
                return None;
            };
            resolved(&absolute(from, segments, modules)?, modules, HANDED_ON_MAX)
        });
        let others = targets.filter(|to| !to.starts_with(from));
        arrows.entry(from.clone()).or_default().extend(others);
    }
    arrows
}

/// The shortest circle through a module, if there is one.
fn circle(through: &Module, arrows: &Arrows) -> Option<Vec<Module>> {
    let mut ways = vec![vec![through.clone()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in arrows.get(way.last()?).into_iter().flatten() {
                if next == through {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push([&way[..], std::slice::from_ref(next)].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

fn circles(sources: &[Source]) -> BTreeSet<String> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &Source>> = BTreeMap::new();
    for source in sources {
        let (name, module) = module_of(&source.path);
        crates.entry(name).or_default().insert(module, source);
    }
    let mut found = BTreeSet::new();
    for (name, modules) in crates {
        let arrows = arrows(&modules);
        for module in modules.keys() {
            if let Some(mut circle) = circle(module, &arrows) {
                circle.sort();
                let files: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
                found.insert(format!("{name}: {}", files.join(", ")));
            }
        }
    }
    found
}

#[test]
fn files_of_a_crate_import_one_another_in_one_direction() {
    assert_eq!(circles(&CODE.sources), BTreeSet::new());
}

#[test]
fn circle_of_files_is_seen_through_what_is_handed_on() {
    let check = |texts: &[(&str, &str)], expected: &[&str]| {
        let sources: Vec<Source> = texts
            .iter()
            .map(|(path, text)| Source::of(&format!("pgdyno-x/src/{path}.rs"), text))
            .collect();
        let found: Vec<String> = circles(&sources).into_iter().collect();
        assert_eq!(found, expected);
    };
    let root = ("lib", "pub use a::A; mod a; mod b;");
    let a = ("a", "use crate::b::B; pub struct A(B);");
    check(
        &[root, a, ("b", "use super::A; pub struct B(A);")],
        &["pgdyno-x: a, b"],
    );
    check(
        &[root, a, ("b", "pub struct B; fn f() { crate::a::g() }")],
        &["pgdyno-x: a, b"],
    );
    check(&[root, a, ("b", "pub struct B;")], &[]);
    // A module and what is below it.
    let with_child = [
        root,
        ("a", "mod c; use c::C; pub struct A(C);"),
        ("a/c", "use super::A; pub struct C;"),
        ("b", ""),
    ];
    check(&with_child, &[]);
    let for_tests = ("b", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }");
    check(&[root, a, for_tests], &[]);
}
