//! The integration tests of this crate in one binary.

mod common;
mod copy;
mod pooler;
mod statements;
