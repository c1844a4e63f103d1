//! OpenMetrics' text format, read strictly.

/// A sample without its value.
#[derive(Debug)]
pub struct Sample {
    /// As in the text, with its suffix.
    pub name: String,
    /// Names and values in their order.
    pub labels: Vec<(String, String)>,
}

/// Reads OpenMetrics as strictly as its grammar is, as far as it is used: families together and
/// described first, suffixes and units as their types want them, no sample twice, the mark at the
/// end.
#[track_caller]
pub fn parsed(text: &str) -> Vec<(Sample, f64)> {
    let body = text.strip_suffix("# EOF\n").expect("the mark of the end");
    let (mut families, mut samples, mut seen) = (Vec::<(String, String)>::new(), Vec::new(), Vec::new());
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(families.iter().all(|(known, _)| known != name), "{line}");
            families.push((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (family, kind) = families.last().expect("a family");
        if let Some(rest) = line.strip_prefix("# ") {
            let (word, rest) = rest.split_once(' ').expect("a word");
            let (name, value) = rest.split_once(' ').expect("a value");
            assert!(["HELP", "UNIT"].contains(&word) && name == family, "{line}");
            assert!(word == "HELP" || name.ends_with(&format!("_{value}")), "{line}");
            continue;
        }
        let sample = sample(line);
        let suffix = if kind == "info" { "_info" } else { "" };
        assert_eq!(sample.0.name, format!("{family}{suffix}"), "{line}");
        let key = line.rsplit_once(' ').expect("a value").0.to_owned();
        assert!(!seen.contains(&key), "{line} twice");
        seen.push(key);
        samples.push(sample);
    }
    samples
}

fn sample(line: &str) -> (Sample, f64) {
    let (name, mut rest) = line.split_at(line.find(['{', ' ']).expect("a name"));
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value) = rest.split_once("=\"").expect("a label");
            let (mut text, mut letters) = (String::new(), value.char_indices());
            let end = loop {
                match letters.next().expect("a quote") {
                    (at, '"') => break at,
                    (_, '\\') => text.push(match letters.next().expect("a letter").1 {
                        'n' => '\n',
                        letter @ ('\\' | '"') => letter,
                        letter => panic!("\\{letter} in {line}"),
                    }),
                    (_, letter) => text.push(letter),
                }
            };
            labels.push((label.to_owned(), text));
            rest = &value[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').expect("a brace");
    }
    let value = rest
        .strip_prefix(' ')
        .expect("a blank")
        .parse()
        .expect("a number");
    let sample = Sample {
        name: name.to_owned(),
        labels,
    };
    (sample, value)
}
