//! A network that no other test changes.

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::process::Command;

/// Takes this thread, and what it starts from now on, out of the host's network into one with
/// nothing but a loopback of its own: Chromium breaks off its requests when any interface comes or
/// goes. Needs root.
pub fn leave() {
    // SAFETY: of a network namespace's sockets the thread keeps those that it has; nothing of
    // memory or files is parted.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network namespace");
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    assert!(up.expect("ip runs").success(), "the loopback is down");
}
