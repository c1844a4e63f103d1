//! The integration tests of this crate in one binary; steady_state.rs counts what its whole process allocates, and is alone.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod open_loop;
