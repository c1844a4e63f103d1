//! One word per thing: words that have a better one do not reach a user, in messages, help,
//! documentation, catalogue or page.
//!
//! Only words that can be judged without their sentence are listed: "undo" is a button too.

use std::fs;
use std::path::Path;

use crate::absences::code::{CODE, Mentioned, crates};

/// Words, alone or in a row, and what is written instead.
const WORDS: &[(&[&str], &str)] = &[
    (
        &["told", "tells", "telling", "in_no_second"],
        "shown, printed, reported",
    ),
    (
        &["does not tell", "do not tell", "cannot tell", "to tell"],
        "does not report",
    ),
    (&["put back", "puts back", "putting back"], "restored"),
    (
        &["give back", "gives back", "given back", "giving back"],
        "restored, released",
    ),
    (&["bring back", "brings back", "goes back"], "restored"),
    (
        &["make good", "makes good", "made good", "making good"],
        "restored",
    ),
    (
        &["what became of", "what becomes of", "what came of"],
        "result, outcome, state",
    ),
    (&["dear", "dearer", "dearest"], "expensive"),
    (&["anew"], "new, again"),
    (
        &["is worth", "are worth", "was worth", "were worth"],
        "effect, speed-up, slow-down",
    ),
    (&["lies", "stands", "stood"], "is, is in, represents"),
    (
        &["held against", "hold against", "holds against"],
        "compared with",
    ),
    (
        &["set aside", "sets aside", "left out", "leave out", "leaves out"],
        "excluded, skipped",
    ),
    (&["looked at"], "measured, checked, evaluated"),
    (
        &["wants", "knows", "lives", "forgets", "forgotten"],
        "needs, has, is, loses",
    ),
];

/// A text that a user reads, and where it is.
struct Shown {
    path: String,
    line: usize,
    text: String,
}

/// What in a text is not its words: what is between braces, backquotes or in tags is of code.
fn prose(text: &str) -> String {
    let mut end = None;
    let mut prose = String::new();
    for sign in text.chars() {
        match (end, sign) {
            (None, '{') => end = Some('}'),
            (None, '`') => end = Some('`'),
            (Some(awaited), sign) if awaited == sign => {
                end = None;
                prose.push('_');
            }
            (None, sign) => prose.extend(sign.to_lowercase()),
            (Some(_), _) => {}
        }
    }
    prose
}

/// The listed words in a text, each with what is written instead.
fn found(text: &str) -> Vec<(&'static str, &'static str)> {
    let prose = prose(text);
    let of_word = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '-';
    let words: Vec<&str> = prose
        .split(|sign| !of_word(sign))
        .filter(|word| !word.is_empty())
        .collect();
    let text = format!(" {} ", words.join(" "));
    let all = WORDS
        .iter()
        .flat_map(|(words, instead)| words.iter().map(|word| (*word, *instead)));
    all.filter(|(word, _)| text.contains(&format!(" {word} ")))
        .collect()
}

/// Literals of several words: names, statements for a server and keys have one, or begin with a
/// keyword of SQL.
fn is_message(text: &str) -> bool {
    let sql = ["SELECT ", "WITH ", "INSERT ", "CREATE ", "UPDATE ", "DELETE "];
    let start = text.trim_start();
    start.contains(' ') && !sql.iter().any(|keyword| start.starts_with(keyword))
}

fn messages() -> Vec<Shown> {
    let mut shown = Vec::new();
    for source in &CODE.sources {
        for mention in &source.mentions {
            if let Mentioned::Literal(text) = &mention.what
                && is_message(text)
            {
                let (path, line) = (format!("crates/{}", source.path), mention.line);
                let text = text.clone();
                shown.push(Shown { path, line, text });
            }
        }
    }
    shown
}

/// Comments of all crates, tests included.
fn comments() -> Vec<Shown> {
    let mut comments = lines("crates", &["rs"], |line| line.trim_start().starts_with("//"));
    comments.retain(|shown| !shown.path.ends_with("tests/all/vocabulary.rs"));
    comments
}

/// Comments of these files are the help of the commands.
fn help() -> Vec<Shown> {
    lines("crates/pgdyno/src/cli", &["rs"], |line| {
        line.trim_start().starts_with("///")
    })
}

/// Prose outside of blocks of code; of what is made from the program, help and messages are
/// examined.
fn documentation() -> Vec<Shown> {
    let mut is_code = false;
    let mut prose = lines("docs", &["md"], |_| true);
    let generated = fs::read_to_string(crates().join("../.gitignore")).expect("a file");
    prose.retain(|shown| {
        generated
            .lines()
            .all(|line| line.strip_prefix('/') != Some(&shown.path))
    });
    for place in ["README.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "examples"] {
        prose.extend(lines(place, &["md"], |_| true));
    }
    prose.retain(|shown| {
        let fence = shown.text.starts_with("```");
        is_code ^= fence;
        !is_code && !fence && !shown.text.starts_with("    ")
    });
    prose
}

/// Texts of the page: what is quoted in a line, what is between tags, and lines that begin as a
/// sentence does.
fn page() -> Vec<Shown> {
    let lines = lines("ui/src", &["ts", "tsx"], |line| {
        !line.trim_start().starts_with(['/', '*'])
    });
    let mut texts = Vec::new();
    for Shown { path, line, text } in &lines {
        let mut add = |text: &str| {
            if is_message(text) {
                let (path, text) = (path.clone(), text.to_owned());
                texts.push(Shown {
                    path,
                    line: *line,
                    text,
                });
            }
        };
        for quote in ['"', '`'] {
            text.split(quote).skip(1).step_by(2).for_each(&mut add);
        }
        for after in text.split('>').skip(1) {
            add(after.split('<').next().unwrap_or_default());
        }
        if text.trim_start().starts_with(char::is_uppercase) {
            add(text.split('<').next().unwrap_or_default());
        }
    }
    texts
}

fn catalogue() -> Vec<Shown> {
    let keys = [
        "summary",
        "why",
        "recommended",
        "reason",
        "effect",
        "source",
        "title",
    ];
    lines("catalog", &["toml"], |line| {
        keys.iter().any(|key| line.starts_with(&format!("{key} = ")))
    })
}

/// Lines of the files whose path begins so, which are wanted.
fn lines(start: &str, extensions: &[&str], is_wanted: impl Fn(&str) -> bool + Copy) -> Vec<Shown> {
    let root = crates().parent().expect("a root").to_owned();
    let mut shown = Vec::new();
    let mut files = vec![root.join(start), root.join(format!("{start}.rs"))];
    while let Some(file) = files.pop() {
        if let Ok(entries) = fs::read_dir(&file) {
            files.extend(entries.flatten().map(|entry| entry.path()));
        } else if file
            .extension()
            .is_some_and(|is| extensions.iter().any(|one| is == *one))
        {
            let path = file
                .strip_prefix(&root)
                .unwrap_or(Path::new(""))
                .display()
                .to_string();
            let text = fs::read_to_string(&file).unwrap_or_default();
            let numbered = text.lines().zip(1..).filter(|(line, _)| is_wanted(line));
            shown.extend(numbered.map(|(text, line)| {
                let (path, text) = (path.clone(), text.to_owned());
                Shown { path, line, text }
            }));
        }
    }
    assert!(!shown.is_empty(), "{start} has no line");
    shown
}

fn complaints(shown: &[Shown]) -> Vec<String> {
    let of = |Shown { path, line, text }: &Shown| {
        let words = found(text).into_iter();
        words
            .map(|(word, instead)| format!("{path}:{line}: \"{word}\" (write: {instead}) in: {text}"))
            .collect::<Vec<String>>()
    };
    shown.iter().flat_map(of).collect()
}

fn hold(shown: &[Shown]) {
    assert!(shown.len() > 30, "only {} texts", shown.len());
    let complaints = complaints(shown);
    assert!(
        complaints.is_empty(),
        "{}\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

#[test]
fn messages_use_one_word_per_thing() {
    hold(&messages());
}

/// A comment may have two meanings of a word that a message may not: a value lives in Rust, and a
/// reader knows.
#[test]
fn comments_use_one_word_per_thing() {
    let mut complaints = complaints(&comments());
    complaints.retain(|complaint| !complaint.contains("(write: needs, has, is, loses)"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn help_uses_one_word_per_thing() {
    hold(&help());
}

#[test]
fn page_uses_one_word_per_thing() {
    hold(&page());
}

#[test]
fn catalogue_uses_one_word_per_thing() {
    hold(&catalogue());
}

#[test]
fn documentation_uses_one_word_per_thing() {
    hold(&documentation());
}

/// Lines of so many characters are read at once. Tables and code may have longer ones.
const COMMENT_CHARACTERS: usize = 100;
const PROSE_CHARACTERS: usize = 110;

fn too_long(shown: &[Shown], characters: usize) -> Vec<String> {
    let is_long = |shown: &&Shown| shown.text.chars().count() > characters;
    let is_table = |shown: &&Shown| shown.text.trim_start().starts_with('|');
    let long = shown.iter().filter(is_long).filter(|shown| !is_table(shown));
    long.map(|Shown { path, line, text }| format!("{path}:{line}: {text}"))
        .collect()
}

#[test]
fn comments_and_prose_have_short_lines() {
    let planted = |text: &str| {
        let shown = Shown {
            path: "planted".to_owned(),
            line: 1,
            text: text.to_owned(),
        };
        too_long(&[shown], COMMENT_CHARACTERS).len()
    };
    assert_eq!(planted(&format!("// {}", "word ".repeat(20))), 1);
    assert_eq!(planted(&format!("| {} |", "word ".repeat(20))), 0);
    assert_eq!(planted(&"w".repeat(COMMENT_CHARACTERS)), 0);
    let mut long = too_long(&comments(), COMMENT_CHARACTERS);
    for (start, extension) in [("catalog", "toml"), ("examples", "toml"), ("scripts", "sh")] {
        let comments = lines(start, &[extension], |line| line.trim_start().starts_with('#'));
        long.extend(too_long(&comments, COMMENT_CHARACTERS));
    }
    let page = |line: &str| {
        ["//", "/*", "*"]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    let mut of_page = lines("ui/src", &["ts", "tsx"], page);
    of_page.retain(|shown| !shown.path.contains("/generated/"));
    long.extend(too_long(&of_page, COMMENT_CHARACTERS));
    let is_prose = |line: &str| !line.starts_with("    ");
    let mut prose = documentation();
    for place in ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        prose.extend(lines(place, &["md"], is_prose));
    }
    long.extend(too_long(&prose, PROSE_CHARACTERS));
    assert!(long.is_empty(), "{}\n{}", long.len(), long.join("\n"));
}

#[test]
fn planted_words_are_found_and_names_are_not() {
    let of = |text: &str| found(text).len();
    for (planted, times) in [
        ("the server told nothing", 1),
        ("It Stands there, and lies.", 2),
        ("what became of it", 1),
        ("set aside", 1),
        ("an outstanding request of the retold, well-told", 0),
        ("{told} of {stands:?}, `knows` and ${String(told)}", 0),
        ("What each is\n    worth", 1),
    ] {
        assert_eq!(of(planted), times, "{planted}");
    }
    for (words, _) in WORDS {
        for word in *words {
            assert_ne!(of(&format!("\"It {word}.\"")), 0, "{word}");
        }
    }
}
