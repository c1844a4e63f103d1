//! Commands that are shown, with the options of the host that they are for.

use crate::cli::takes_host;
use std::borrow::Cow;

/// A text whose commands between backquotes have the options of a host, as far as they can.
pub(crate) fn on_host<'a>(text: &'a str, options: &str) -> Cow<'a, str> {
    const BEGINS: &str = "`pgdyno ";
    if !text.contains(BEGINS) {
        return Cow::Borrowed(text);
    }
    let (mut named, mut rest) = (String::with_capacity(text.len() + options.len()), text);
    while let Some((before, after)) = rest.split_once(BEGINS) {
        named = named + before + BEGINS;
        let Some((command, after)) = after.split_once('`') else {
            rest = after;
            break;
        };
        named += command;
        let mut words = command.split_whitespace();
        let can = words.next().is_some_and(takes_host);
        if can && !words.any(|word| word == "--host") {
            named += options;
        }
        named.push('`');
        rest = after;
    }
    Cow::Owned(named + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_another_host_name_it() {
        let check = |text: &str, expected: &str| {
            assert_eq!(on_host(text, " --host ssh:db1 --sudo"), expected);
        };
        check(
            "`pgdyno status` shows its state, `pgdyno restore 2` restores it",
            "`pgdyno status --host ssh:db1 --sudo` shows its state, `pgdyno restore 2 --host ssh:db1 --sudo` restores it",
        );
        check(
            "`pgdyno sandbox start main` starts it",
            "`pgdyno sandbox start main --host ssh:db1 --sudo` starts it",
        );
        for unchanged in [
            "`pgdyno resume 3 --host ssh:db2` continues it",
            "`pgdyno show last`, `pgdyno list`, `ssh HOST true`",
            "pgdyno restore",
            "`pgdyno restore",
            "`pgdyno `",
        ] {
            check(unchanged, unchanged);
        }
    }
}
