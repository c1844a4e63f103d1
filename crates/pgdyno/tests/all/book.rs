//! The book: links lead to pages and headings that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages that `make docs` makes from the program.
const MADE: [&str; 3] = [
    "docs/reference/commands.md",
    "docs/reference/knobs.md",
    "docs/reference/trial-metrics.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages below a directory of the repository, by their paths from its root.
fn pages(below: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(root().join(below)).expect("a directory").flatten() {
        let path = below.join(entry.file_name());
        if path.is_dir() || entry.path().is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            let text = fs::read_to_string(entry.path()).expect("a page");
            found.insert(path, text);
        }
    }
}

/// The anchor of a heading, as the book's generator and forges make it.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
    kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Links of a page that lead nowhere.
fn broken(page: &Path, text: &str, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let links = text.split("](").skip(1);
    let targets = links.filter_map(|rest| rest.split([')', ' ', '\n']).next());
    let is_broken = |target: &&str| {
        if target.contains("://") || target.starts_with("mailto:") {
            return false;
        }
        let (path, wanted) = target.split_once('#').unwrap_or((target, ""));
        let path = match path {
            "" => page.to_owned(),
            path => plain(&page.parent().expect("a directory").join(path)),
        };
        if MADE.iter().any(|made| path == Path::new(made)) {
            return false;
        }
        let Some(text) = pages.get(&path) else {
            return !root().join(&path).exists();
        };
        let anchors: BTreeSet<String> = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(anchor)
            .collect();
        !wanted.is_empty() && !anchors.contains(wanted)
    };
    targets.filter(is_broken).map(str::to_owned).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut all = BTreeMap::new();
    for directory in ["docs", "examples", "contrib", ".github"] {
        pages(Path::new(directory), &mut all);
    }
    for entry in fs::read_dir(root()).expect("a directory").flatten() {
        let path = PathBuf::from(entry.file_name());
        if path.extension().is_some_and(|kind| kind == "md") {
            all.insert(path, fs::read_to_string(entry.path()).expect("a page"));
        }
    }
    let found: Vec<String> = all
        .iter()
        .flat_map(|(page, text)| {
            let broken = broken(page, text, &all).into_iter();
            broken.map(move |target| format!("{}: {target}", page.display()))
        })
        .collect();
    assert!(found.is_empty(), "links that lead nowhere:\n{}", found.join("\n"));
    assert!(all.len() > 40, "{} pages", all.len());
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = Path::new("docs/how-to/a.md");
    let text = "# A\n## Two words: `b`\n[1](b.md) [2](#two-words-b) [3](#three) [4](../../README.md) [5](https://x.org)\n\
                [6](../reference/knobs.md) [7](a.md#two-words-b \"title\")";
    let all = BTreeMap::from([(page.to_owned(), text.to_owned())]);
    assert_eq!(broken(page, text, &all), ["b.md", "#three"]);
}

#[test]
fn each_format_of_json_has_a_row_in_the_page_of_them() {
    let page = fs::read_to_string(root().join("docs/reference/json.md")).expect("a page");
    let (mut known, mut missing) = (0, BTreeSet::new());
    let mut files = vec![root().join("crates")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory").flatten();
            files.extend(
                entries
                    .map(|entry| entry.path())
                    .filter(|path| !path.ends_with("tests") && !path.ends_with("target")),
            );
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).expect("a file");
            let quoted = text.split("\"pgdyno-").skip(1);
            let names = quoted
                .filter_map(|rest| rest.split_once('"'))
                .map(|(name, _)| name);
            let formats =
                names.filter_map(|name| name.strip_suffix("/1").map(|_| format!("`pgdyno-{name}`")));
            let formats: Vec<String> = formats.collect();
            known += formats.len();
            missing.extend(formats.into_iter().filter(|format| !page.contains(format)));
        }
    }
    assert!(known > 15 && missing.is_empty(), "{known}: {missing:?}");
}
