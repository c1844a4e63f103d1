//! Types whose values have names, on the command line and in files.

/// A word that is none of the names.
#[derive(Debug, thiserror::Error)]
#[error("unknown {what} \"{word}\"; there are {names}")]
pub struct UnknownName {
    what: &'static str,
    word: String,
    names: String,
}

/// Lets a type with `ALL` and `name()` be read and shown by its names.
#[macro_export]
macro_rules! names {
    ($of:ty, $what:literal) => {
        impl std::str::FromStr for $of {
            type Err = $crate::UnknownName;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $crate::by_name($what, word, &<$of>::ALL, <$of>::name)
            }
        }

        impl std::fmt::Display for $of {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
/// Finds one of `all` by its name.
pub fn by_name<T: Copy>(
    what: &'static str,
    word: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter()
        .copied()
        .find(|&one| name(one) == word)
        .ok_or_else(|| UnknownName {
            what,
            word: word.to_owned(),
            names: all.iter().map(|&one| name(one)).collect::<Vec<_>>().join(", "),
        })
}
