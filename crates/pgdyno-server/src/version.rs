//! Versions of PostgreSQL, and the oldest that is read.

use std::fmt;

/// Oldest version that can be read at all.
pub const VERSION_MIN: u32 = 13;

/// Major and minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major version: 18 of 18.6.
    pub major: u32,
    /// Minor version: 6 of 18.6.
    pub minor: u32,
}

impl Version {
    /// From server_version_num: 180006 is 18.6.
    pub fn from_number(number: u32) -> Version {
        Version {
            major: number / 10_000,
            minor: number % 10_000,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
