//! Hosts over ssh: one protocol, and both ends of it.
//!
//! A *coordinator* starts `pgdyno agent --stdio` on a host over the user's own `ssh` program, which
//! brings the configuration, keys and jump hosts that it has. The agent runs one command there, as
//! a person who has logged in would, and ends with the connection.

mod agent;
mod binary;
mod boot;
mod clock;
mod coordinator;
mod error;
mod frame;
pub mod fuzzed;
mod inventory;
mod link;
mod message;
mod question;
mod ssh;
mod ssh_host;
mod waiting;

pub use agent::{AgentError, Coordinator, Streams, serve};
pub use binary::{AgentBinary, BinaryError, hash_of};
pub use clock::OtherClock;
pub use coordinator::{Host, Listener, Output, SENT_WITHIN};
pub use error::RemoteError;
pub use inventory::{Inventory, InventoryError, InventoryHost};
pub use message::{CarriedFile, Hello, PROTOCOL, Request, Takeover, Then};
pub use question::{Answer, FromGenerator, LoadHostWays, Question, RunEnd, SentSeries, SharedLoad};
pub use ssh::{SshWay, remove_agents};
pub use ssh_host::SshHost;
pub use waiting::{EndedWaiting, end_waiting};
