//! The password file.
//!
//! Source: PostgreSQL documentation, "The Password File".

/// The first line of a password file that fits: host:port:database:user:password, `*` fits all, `\`
/// escapes.
pub(super) fn find_password(text: &str, wanted: &[&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = split_escaped(line);
            let [parts @ .., password] = fields.as_slice() else {
                return None;
            };
            let fits = parts.len() == wanted.len()
                && parts
                    .iter()
                    .zip(wanted)
                    .all(|(part, wanted)| part == "*" || part == wanted);
            fits.then(|| password.clone())
        })
}

fn split_escaped(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, fields.last_mut()) {
            ('\\', Some(field)) => field.extend(characters.next()),
            // The password is the fifth field, and may hold further colons only escaped.
            (':', _) => fields.push(String::new()),
            (_, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_file_is_libpqs() {
        let text = "# comment\nother:5432:*:*:no\ndb\\:x:*:shop:ann:p\\:w\\\\d\n*:*:*:*:last\n";
        assert_eq!(
            find_password(text, &["db:x", "1", "shop", "ann"]).as_deref(),
            Some("p:w\\d")
        );
        assert_eq!(
            find_password(text, &["db", "1", "shop", "ann"]).as_deref(),
            Some("last")
        );
        assert_eq!(find_password("a:b\n", &["a", "b", "c", "d"]), None);
    }
}
