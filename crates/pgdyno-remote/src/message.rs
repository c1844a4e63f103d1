//! Messages between a coordinator and an agent.

use crate::binary::hash_of;
use crate::question::{Answer, Numbered, Question};
use crate::waiting::OF_COORDINATOR;
use pgdyno_record::ProgressRecord;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::time::Duration;

/// Version of the messages. Both ends have the same one, or say so and end.
pub const PROTOCOL: u32 = 7;

/// Time between two signs of life.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Time without one after which the other end is gone: a link that drops everything closes nothing.
pub(crate) const SILENT_MAX: Duration = Duration::from_secs(30);

/// From the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToAgent {
    /// The first and only command.
    Request(Box<Request>),
    /// Instead of a command: hand this connection over to the agent that waits for it.
    Attach {
        /// [`Takeover::token`] of its request.
        token: String,
    },
    /// The coordinator is still there.
    Alive,
    /// What Ctrl-C is to a command on a terminal.
    Stop,
    /// The answer to the agent's last question.
    Answer(Box<Numbered<Answer>>),
}

/// From the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FromAgent {
    /// The first message.
    Hello(Hello),
    /// The agent is still there.
    Alive,
    /// How far the command's experiment is; it is not kept, and not answered.
    Progress {
        /// Number of the experiment.
        id: i64,
        /// How far it is.
        progress: Box<ProgressRecord>,
    },
    /// What the command asks of the coordinator's store; it waits for the answer.
    Question(Box<Numbered<Question>>),
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
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`PROTOCOL`] of the coordinator.
    pub protocol: u32,
    /// The command line, without the program's name. It travels in a frame, so no list of processes
    /// shows it.
    pub arguments: Vec<String>,
    /// Environment variables that the command finds, with their values.
    pub variables: Vec<(String, String)>,
    /// Files that the command line names and the coordinator's host has.
    pub files: Vec<CarriedFile>,
    /// What happens when the connection ends before the command; `None` where it is ended at once.
    pub takeover: Option<Takeover>,
}

/// Variables, files and command lines hold passwords.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.variables.iter().map(|(name, _)| name).collect();
        f.debug_struct("Request")
            .field("protocol", &self.protocol)
            .field("variables", &names)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CarriedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CarriedFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// How a command outlives its connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Takeover {
    /// Name of the waiting agent, in hexadecimal digits: the first half is that of all runs of one
    /// store, the second is drawn.
    pub token: String,
    /// So long it waits for another connection.
    pub grace_s: u32,
    /// What it does then.
    pub then: Then,
}

impl Takeover {
    /// With a new token, by the kernel's randomness. `store` is a text that only the store which
    /// keeps the results has: who resumes one of its runs ends no other store's.
    ///
    /// # Errors
    ///
    /// Of the system call.
    pub fn draw(store: &str, grace_s: u32, then: Then) -> io::Result<Takeover> {
        let mut bytes = [0_u8; 4];
        getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        let hash = hash_of(store.as_bytes());
        let token = format!("{}{:08x}", &hash[..OF_COORDINATOR], u32::from_ne_bytes(bytes));
        Ok(Takeover { token, grace_s, then })
    }
}

/// What an agent does that has waited in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// End the command in order, which restores everything.
    Restore,
    /// End at once, as if it were killed: changed settings stay, with the journal, until
    /// `pgdyno restore`.
    Keep,
}

/// A file that is carried to the agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedFile {
    /// Its path, as the command line has it.
    pub path: String,
    /// Its path from the root of the coordinator's host, without links.
    pub full_name: String,
    /// Its content; `None` where another one of the same full name has it.
    pub content: Option<String>,
}
