//! How many standbys a sandbox has, what they are called, and whether commits wait for them.

use serde::{Deserialize, Serialize};

/// More are a mistake.
pub const STANDBYS_MAX: u32 = 8;

/// The standbys of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standbys {
    /// How many there are.
    pub count: u32,
    /// Whether a commit waits until one of them has it (`synchronous_standby_names`, "ANY 1").
    pub is_sync: bool,
}

impl Standbys {
    /// Names of the sandboxes: "main-standby-1".
    pub fn names(self, primary: &str) -> Vec<String> {
        let numbers = 1..=self.count.min(STANDBYS_MAX);
        numbers
            .map(|number| format!("{primary}-standby-{number}"))
            .collect()
    }

    /// The line for the primary's postgresql.conf; `None` where no commit waits.
    pub(super) fn setting(self, primary: &str) -> Option<(String, String)> {
        let quoted = self.names(primary).into_iter().map(|name| format!("\"{name}\""));
        let names = quoted.collect::<Vec<_>>().join(", ");
        let wait = self.is_sync.then(|| format!("ANY 1 ({names})"));
        wait.map(|wait| ("synchronous_standby_names".to_owned(), wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standbys_are_named_after_their_primary_which_waits_for_one_of_them_or_not() {
        let two = Standbys {
            count: 2,
            is_sync: true,
        };
        assert_eq!(two.names("Main"), ["Main-standby-1", "Main-standby-2"]);
        let names = "ANY 1 (\"Main-standby-1\", \"Main-standby-2\")";
        assert_eq!(
            two.setting("Main"),
            Some(("synchronous_standby_names".to_owned(), names.to_owned()))
        );
        let later = Standbys {
            is_sync: false,
            ..two
        };
        assert_eq!(later.setting("Main"), None);
    }
}
