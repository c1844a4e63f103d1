//! Messages between a coordinator and an agent.

use serde::{Deserialize, Serialize};

/// Version of the messages. Both ends have the same one, or say so and end.
pub const PROTOCOL: u32 = 1;

/// From the coordinator.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToAgent {
    /// The first and only command.
    Request(Box<Request>),
    /// The coordinator is still there.
    Alive,
    /// What Ctrl-C is to a command on a terminal.
    Stop,
}

/// From the agent.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FromAgent {
    /// The first message.
    Hello(Hello),
    /// The agent is still there.
    Alive,
    /// The command is at its end.
    Ended {
        /// Its exit code.
        code: u8,
    },
    /// The agent does not run the command.
    Refused {
        /// One line.
        why: String,
    },
}

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`] of the agent.
    pub protocol: u32,
    /// Version of its program.
    pub version: String,
}

/// A command for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`PROTOCOL`] of the coordinator.
    pub protocol: u32,
    /// The command line, without the program's name. It travels in a frame, so no list of processes shows it.
    pub arguments: Vec<String>,
    /// Environment variables that the command finds, with their values.
    pub variables: Vec<(String, String)>,
    /// Files that the command line names and the coordinator's host has.
    pub files: Vec<CarriedFile>,
}

/// A file that is carried to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedFile {
    /// Its path, as the command line has it.
    pub path: String,
    /// Its path from the root of the coordinator's host, without links.
    pub full_name: String,
    /// Its content; `None` where another one of the same full name has it.
    pub content: Option<String>,
}
