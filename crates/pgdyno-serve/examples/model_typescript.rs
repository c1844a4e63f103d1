//! Prints the page's types, made of those that are serialised: `make types` writes them to
//! ui/src/generated/model.ts.

use pgdyno_lab::{capacity, compare};
use pgdyno_report::{Details, Report, TrialDocument};
use pgdyno_serve::document::{ListDocument, Progress, Targets};
use pgdyno_store::Note;
use std::collections::BTreeMap;
use ts_rs::{Config, TS, TypeVisitor};

/// The file's text.
pub(crate) fn text() -> String {
    let mut found = Found {
        // Numbers of ids, bytes and milliseconds are below 2^53, where those of JavaScript end.
        config: Config::new().with_large_int("number"),
        declarations: BTreeMap::new(),
    };
    found.visit::<Report>();
    found.visit::<TrialDocument>();
    found.visit::<Details>();
    found.visit::<capacity::Document>();
    found.visit::<compare::Comparison>();
    found.visit::<ListDocument>();
    found.visit::<Note>();
    found.visit::<Progress>();
    found.visit::<Targets>();
    let declarations: Vec<String> = found.declarations.into_values().collect();
    format!(
        "// Generated from the types that are serialised, by `make types`: do not edit.\n\
         // Units are last in a name. `null` is \"not known\" or \"not applicable\", not zero.\n\
         // Optional fields are missing in files of earlier versions.\n\n{}",
        declarations.join("\n")
    )
}

/// Types by name, each with its declaration.
struct Found {
    config: Config,
    declarations: BTreeMap<String, String>,
}

impl TypeVisitor for Found {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // What has no path is a type of TypeScript's own; whoever has it visits its generics too.
        if T::output_path().is_none() {
            return;
        }
        let name = T::ident(&self.config);
        let text = laid_out(&T::docs().unwrap_or_default(), &T::decl(&self.config));
        if let Some(other) = self.declarations.insert(name.clone(), text.clone()) {
            assert_eq!(other, text, "two types are called {name}");
        } else {
            T::visit_dependencies(self);
        }
    }
}

/// A declaration with a field per line, and each comment of one line on one.
fn laid_out(docs: &str, declaration: &str) -> String {
    let text = format!("{docs}export {declaration}")
        .replace("`None`", "`null`")
        .replace("/**\n * ", "/** ")
        .replace("\n */", " */")
        .replace(", }", ",\n}");
    let mut laid = String::new();
    let mut depth = 0_usize;
    for line in text.lines().map(str::trim_end) {
        let is_comment = line.starts_with("/**") || line.starts_with(" *");
        let count = |wanted: char| line.chars().filter(|c| *c == wanted && !is_comment).count();
        let begins_with_end = usize::from(line.starts_with('}'));
        laid.push_str(&"  ".repeat(depth.saturating_sub(begins_with_end)));
        laid.push_str(line);
        laid.push('\n');
        depth = (depth + count('{')).saturating_sub(count('}'));
    }
    laid
}

#[allow(dead_code, clippy::print_stdout, reason = "a test uses the text alone")]
fn main() {
    print!("{}", text());
}
