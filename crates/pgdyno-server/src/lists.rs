//! Parameters whose value is a list of names, written as `one, "Another one"`. ALTER SYSTEM and SET
//! take each name as a text of its own: a single text is a single name, commas and all.

use crate::error::ServerError;
use crate::quoting::literal;
use crate::server::Server;

/// What the names of a list are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Schemas or tablespaces, in small letters unless quoted; an empty one means none
    /// (SplitIdentifierString).
    Objects,
    /// Directories, as they are (SplitDirectoriesString).
    Directories,
    /// Names of libraries.
    Libraries,
    /// Libraries of `$libdir/plugins`, where no directory is named.
    Plugins,
}

/// Those that have GUC_LIST_QUOTE in src/backend/utils/misc of PostgreSQL, 14 to 19.
const LISTS: [(&str, Names); 8] = [
    ("local_preload_libraries", Names::Plugins),
    ("oauth_validator_libraries", Names::Libraries),
    ("output_plugin_libraries", Names::Libraries),
    ("search_path", Names::Objects),
    ("session_preload_libraries", Names::Libraries),
    ("shared_preload_libraries", Names::Libraries),
    ("temp_tablespaces", Names::Objects),
    ("unix_socket_directories", Names::Directories),
];

fn kind(parameter: &str) -> Option<Names> {
    let its = |(name, _): &&(&str, Names)| name.eq_ignore_ascii_case(parameter);
    LISTS.iter().find(its).map(|(_, names)| *names)
}

/// The names in a list's text, as the server reads it; `None` where its syntax is wrong.
fn names(text: &str, kind: Names) -> Option<Vec<String>> {
    let mut rest = text.trim();
    let mut names = Vec::new();
    if rest.is_empty() {
        names.extend((kind == Names::Objects).then(String::new));
        return Some(names);
    }
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => until_quote(quoted)?,
            None => {
                let (name, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (bare(name.trim_end(), kind)?, after)
            }
        };
        names.push(name);
        match after.trim_start().strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => return after.trim().is_empty().then_some(names),
        }
    }
}

/// The names of a list that a setting holds, but for empty ones; none where it is not a list.
pub(crate) fn names_in(parameter: &str, text: &str) -> Vec<String> {
    let names = kind(parameter).and_then(|kind| names(text, kind));
    names
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .collect()
}

/// A name without quotes.
fn bare(name: &str, kind: Names) -> Option<String> {
    match kind {
        _ if name.is_empty() => None,
        Names::Objects if name.contains(char::is_whitespace) => None,
        Names::Objects => Some(name.to_ascii_lowercase()),
        _ => Some(name.to_owned()),
    }
}

/// A name up to the quote that ends it, and what comes after that.
fn until_quote(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"')?;
        name += part;
        match after.strip_prefix('"') {
            Some(more) => rest = more,
            None => return Some((name, after)),
        }
        name.push('"');
    }
}

/// A value in the one spelling that pgdyno compares and shows: of a list, each name as quote_ident
/// writes it, whatever it was written like. Other values, and lists with wrong syntax, stay as they
/// are.
pub fn one_spelling(parameter: &str, value: &str) -> String {
    match kind(parameter).and_then(|kind| names(value, kind)) {
        Some(names) => names
            .iter()
            .map(|name| quoted(name))
            .collect::<Vec<_>>()
            .join(", "),
        None => value.to_owned(),
    }
}

/// As quote_ident does, but for keywords: in a list they need no quotes.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A value as it is in SET and ALTER SYSTEM SET. `None` for a list that these cannot write: one
/// without names (removing the setting is another thing where a file has one too), or one with
/// wrong syntax.
pub fn assigned(parameter: &str, value: &str) -> Option<String> {
    let Some(kind) = kind(parameter) else {
        return Some(literal(value));
    };
    let names = names(value, kind).filter(|names| !names.is_empty())?;
    Some(
        names
            .iter()
            .map(|name| literal(name))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

/// Whether a value is a list without names, which a file can hold and ALTER SYSTEM cannot write.
pub fn is_empty_list(parameter: &str, value: &str) -> bool {
    kind(parameter).is_some_and(|kind| names(value, kind).is_some_and(|names| names.is_empty()))
}

/// What a parameter that is a list expects, where a value is none that it takes.
pub fn expected_list(parameter: &str, value: &str) -> Option<&'static str> {
    let kind = kind(parameter)?;
    match names(value, kind) {
        None => Some("names separated by commas; one with a comma, a blank or a quote in \"double quotes\""),
        Some(names) if kind != Names::Objects && names.iter().any(String::is_empty) => {
            Some("names that are not empty; for an empty list, nothing at all")
        }
        Some(_) => None,
    }
}

/// The libraries of a value that the server's files lack, as the server itself finds them
/// (dynamic_library_path), with the place where they are missing; none where the connected role may
/// not look there.
///
/// # Errors
///
/// [`ServerError`], where the server cannot be asked at all.
pub fn missing_libraries(
    server: &mut Server,
    parameter: &str,
    value: &str,
) -> Result<Vec<(String, String)>, ServerError> {
    let Some(kind @ (Names::Libraries | Names::Plugins)) = kind(parameter) else {
        return Ok(Vec::new());
    };
    let names = names(value, kind).unwrap_or_default();
    let wanted = names.iter().map(|name| match kind {
        Names::Plugins if !name.contains('/') => format!("({0}, '$libdir/plugins/' || {0})", literal(name)),
        _ => format!("({0}, {0})", literal(name)),
    });
    let wanted = wanted.collect::<Vec<_>>().join(", ");
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    // The suffix is the system's, which may be another one than this program's.
    let sql = format!(
        "WITH place AS (SELECT setting AS libdir FROM pg_catalog.pg_config() WHERE name = 'PKGLIBDIR'), \
         file AS (SELECT name, path FROM (VALUES {wanted}) AS of (name, path) WHERE path LIKE '%/%' \
           UNION ALL SELECT name, dir || '/' || path FROM (VALUES {wanted}) AS of (name, path), \
           pg_catalog.unnest(pg_catalog.string_to_array(pg_catalog.current_setting('dynamic_library_path'), ':')) dir \
           WHERE path NOT LIKE '%/%') \
         SELECT name, libdir FROM place, file GROUP BY name, libdir HAVING NOT pg_catalog.bool_or(EXISTS (SELECT FROM \
           pg_catalog.unnest(ARRAY['', '.so', '.dylib', '.dll']) suffix, LATERAL pg_catalog.pg_stat_file( \
           pg_catalog.regexp_replace(path, '^\\$libdir', libdir) || suffix, true) found WHERE NOT found.isdir)) \
         ORDER BY name"
    );
    match server.rows("looking for libraries", &sql) {
        Ok(rows) => Ok(rows
            .into_iter()
            .map(|row| {
                let mut fields = row.into_iter().map(Option::unwrap_or_default);
                (
                    fields.next().unwrap_or_default(),
                    fields.next().unwrap_or_default(),
                )
            })
            .collect()),
        // Its files are for few to see.
        Err(ServerError::Statement { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_name_of_a_list_is_a_text_of_its_own() {
        for (parameter, value, sql) in [
            (
                "shared_preload_libraries",
                "auto_explain, pg_stat_statements",
                "'auto_explain', 'pg_stat_statements'",
            ),
            (
                "Shared_Preload_Libraries",
                "auto_explain,\"a, b\" ",
                "'auto_explain', 'a, b'",
            ),
            (
                "session_preload_libraries",
                "$libdir/It's mine",
                "'$libdir/It''s mine'",
            ),
            (
                "search_path",
                "\"$user\", Public , \"It\"\"s\"",
                "'$user', 'public', 'It\"s'",
            ),
            ("temp_tablespaces", "", "''"),
            ("work_mem", "a, b'c", "'a, b''c'"),
            // A list, but one whose text is a single one.
            ("log_destination", "csvlog, stderr", "'csvlog, stderr'"),
        ] {
            assert_eq!(
                assigned(parameter, value).as_deref(),
                Some(sql),
                "{parameter} = {value}"
            );
            assert!(!is_empty_list(parameter, value) && expected_list(parameter, value).is_none());
        }
    }

    #[test]
    fn list_that_cannot_be_written_is_not_written_as_a_name() {
        for value in ["", "  "] {
            assert!(is_empty_list("shared_preload_libraries", value));
            assert_eq!(assigned("shared_preload_libraries", value), None);
        }
        for (parameter, value) in [
            ("shared_preload_libraries", "a,,b"),
            ("shared_preload_libraries", "a,"),
            ("shared_preload_libraries", "\"a"),
            ("shared_preload_libraries", "\"a\" b"),
            ("search_path", "a b"),
        ] {
            assert_eq!(assigned(parameter, value), None, "{value}");
            assert!(expected_list(parameter, value).is_some(), "{value}");
            assert_eq!(one_spelling(parameter, value), value);
        }
        assert!(expected_list("shared_preload_libraries", "\"\"").is_some());
        assert!(expected_list("search_path", "\"\"").is_none());
    }

    #[test]
    fn values_that_are_one_list_have_one_spelling() {
        let same = |parameter: &str, values: &[&str]| {
            for value in values {
                assert_eq!(one_spelling(parameter, value), values[0], "{parameter}: {value}");
            }
        };
        same(
            "shared_preload_libraries",
            &[
                "auto_explain, b2",
                "\"auto_explain\",b2",
                " auto_explain , \"b2\" ",
            ],
        );
        same(
            "search_path",
            &["\"$user\", public", "$user, PUBLIC", "\"$user\",\"public\""],
        );
        same("search_path", &["\"\"", "", " "]);
        // A keyword, which the server quotes.
        same("search_path", &["user", "\"user\""]);
        same("unix_socket_directories", &["\"/tmp\", \"/A b\"", "/tmp,/A b"]);
        same("work_mem", &["\"4MB\""]);
    }

    proptest! {
        #[test]
        fn spelling_is_kept_by_spelling_again(value in "[a-cA \",$']{0,12}") {
            for (parameter, _) in LISTS {
                let once = one_spelling(parameter, &value);
                prop_assert_eq!(one_spelling(parameter, &once), once.clone());
                prop_assert_eq!(assigned(parameter, &value), assigned(parameter, &once));
            }
        }

        #[test]
        fn no_text_makes_it_panic(value in "\\PC{0,30}") {
            for (parameter, _) in LISTS {
                let _ = (one_spelling(parameter, &value), assigned(parameter, &value));
            }
        }
    }
}
