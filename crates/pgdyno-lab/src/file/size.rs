//! Sizes and single keys given on the command line: an experiment from minutes to a night out of
//! one file.

use super::FileError;
use super::lines::{line_at, line_of};
use std::path::Path;
use toml::{Table, Value};

/// The text of the experiment that a file gives with one of its sizes and other values of single
/// keys, each as `load.measure_s=60`. It is what is run, stored and resumed. `path` is for
/// messages.
pub fn sized(text: &str, path: &Path, size: Option<&str>, keys: &[String]) -> Result<String, FileError> {
    if size.is_none() && keys.is_empty() {
        return Ok(text.to_owned());
    }
    let wrong = |line: usize, message: String| FileError::Wrong {
        path: path.to_owned(),
        line,
        message,
    };
    let mut table: Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        wrong(line, error.message().to_owned())
    })?;
    let sizes = match table.remove("size") {
        Some(Value::Table(sizes)) => sizes,
        _ => Table::new(),
    };
    if let Some(name) = size {
        let Some(Value::Table(chosen)) = sizes.get(name) else {
            let known: Vec<&str> = sizes.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "it has none".to_owned(),
                false => format!("it has {}", known.join(", ")),
            };
            return Err(wrong(
                line_of(text, &["size"]),
                format!("there is no size \"{name}\": {known}"),
            ));
        };
        lay_over(&mut table, chosen)
            .map_err(|message| wrong(line_of(text, &["size", name]), format!("size {name}: {message}")))?;
    }
    for key in keys {
        let (name, value) = key.split_once('=').ok_or_else(|| {
            wrong(
                1,
                format!("\"{key}\": expected KEY=VALUE, e.g. load.measure_s=60"),
            )
        })?;
        let mut over = Table::new();
        put(
            &mut over,
            &name.trim().split('.').collect::<Vec<_>>(),
            value_of(value.trim()),
        );
        lay_over(&mut table, &over).map_err(|message| wrong(1, format!("{key}: {message}")))?;
    }
    toml::to_string(&table).map_err(|error| wrong(1, error.to_string()))
}

/// A TOML value where it is one, else a text.
fn value_of(text: &str) -> Value {
    toml::from_str::<Table>(&format!("x = {text}"))
        .ok()
        .and_then(|mut table| table.remove("x"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn put(table: &mut Table, keys: &[&str], value: Value) {
    match keys {
        [] => {}
        [last] => {
            table.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = table
                .entry((*first).to_owned())
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Keys whose values are lists of what has a name, also where the file has none of them.
const LISTS: [&str; 4] = ["step", "factor", "event", "figure"];

/// Tables are merged, anything else is replaced. Factors are merged by their name.
fn lay_over(below: &mut Table, over: &Table) -> Result<(), String> {
    for (key, value) in over {
        match (below.get_mut(key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => lay_over(inner, value)?,
            (Some(Value::Array(items)), Value::Table(by_name)) => lay_over_named(key, items, by_name)?,
            (None, Value::Table(by_name)) if LISTS.contains(&key.as_str()) => {
                lay_over_named(key, &mut [], by_name)?;
            }
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// `size.night.factor.clients.values = [...]` means the item whose name is "clients".
fn lay_over_named(key: &str, items: &mut [Value], by_name: &Table) -> Result<(), String> {
    for (name, over) in by_name {
        let of_name = |item: &&mut Table| item.get("name").and_then(Value::as_str) == Some(name);
        let found = items.iter_mut().filter_map(Value::as_table_mut).find(of_name);
        match (found, over) {
            (Some(item), Value::Table(over)) => lay_over(item, over)?,
            (Some(_), _) => {
                return Err(format!(
                    "{key}.{name} = {over}: expected its keys, as {key}.{name}.values"
                ));
            }
            (None, _) => return Err(format!("there is no {key} \"{name}\"")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "blocks = 2\n[load]\nclients = 4\nmeasure_s = 5\n[[factor]]\nname = 'n'\nvalues = [1]\n\
        [size.night]\nblocks = 10\nload.measure_s = 600\nfactor.n.values = [1, 2]\n";

    fn run(size: Option<&str>, keys: &[&str]) -> Result<Table, String> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let text = sized(TEXT, Path::new("x.toml"), size, &keys).map_err(|e| e.to_string())?;
        Ok(toml::from_str(&text).unwrap())
    }

    #[test]
    fn a_size_overrides_the_file_and_single_keys_override_both() {
        let night = run(Some("night"), &["load.clients=8", "target.sandbox=main"]).unwrap();
        assert_eq!(night["blocks"].as_integer(), Some(10));
        assert_eq!(night["load"]["measure_s"].as_integer(), Some(600));
        assert_eq!(night["load"]["clients"].as_integer(), Some(8));
        assert_eq!(night["target"]["sandbox"].as_str(), Some("main"));
        assert_eq!(night["factor"][0]["values"].as_array().unwrap().len(), 2);
        assert!(!night.contains_key("size"));
    }

    #[test]
    fn a_size_or_key_that_is_missing_is_reported() {
        assert_eq!(sized(TEXT, Path::new("x"), None, &[]).unwrap(), TEXT);
        let error = run(Some("day"), &[]).unwrap_err();
        assert!(error.contains("no size \"day\": it has night"), "{error}");
        assert!(run(None, &["blocks"]).unwrap_err().contains("KEY=VALUE"));
        let error = run(None, &["factor.m.values=[1]"]).unwrap_err();
        assert!(error.contains("there is no factor \"m\""), "{error}");
        let error = run(None, &["step.huge-pages.settings.work_mem=1MB"]).unwrap_err();
        assert!(error.contains("there is no step \"huge-pages\""), "{error}");
        let error = run(None, &["factor.n=[1]"]).unwrap_err();
        assert!(error.contains("as factor.n.values"), "{error}");
    }
}
