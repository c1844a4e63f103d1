//! How statements are put to a server.

use crate::names;
use serde::{Deserialize, Serialize};

/// How a statement is put to the server (the names are those of pgbench's option -M).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As text with its values in it, parsed and planned each time.
    Simple,
    /// With parameters, parsed each time.
    Extended,
    /// With parameters, parsed once per connection.
    Prepared,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        }
    }
}

names!(Protocol, "protocol");
