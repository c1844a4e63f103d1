//! A seeded simulator of everything that the runner drives: servers, settings, journals, data,
//! loads, the store and time. Whole experiments run in milliseconds, and everything that happens
//! follows from one seed, so that a failing one replays.
//!
//! What survives a SIGKILL is in [`World`]: settings, journals, data, stored trials. A kill is
//! simulated by unwinding at a step, from which on nothing reaches the world any more until
//! [`World::reboot`].

mod course;
mod effects;
mod files;
mod load;
mod optimizer;
mod ports;
mod promises;
mod target;
mod tests;
mod world;

#[cfg(test)]
pub(crate) use load::measurement;
use world::World;
