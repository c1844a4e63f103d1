//! Memory and CPUs of the target for an experiment whose values follow from them.

use crate::commands::profile::look;
use crate::context::Context;
use crate::failure::Result;
use crate::target;
use pgdyno_host::size_bytes;
use pgdyno_lab::{TargetPart, asks_for_target, given};
use pgdyno_sandbox::Sandbox;
use std::borrow::Cow;

/// What a server may use; `None` where it is not known.
#[derive(Default)]
struct Room {
    memory_bytes: Option<u64>,
    cpus: Option<f64>,
}

impl Room {
    /// What both leave.
    fn within(self, other: Room) -> Room {
        Room {
            memory_bytes: least(self.memory_bytes, other.memory_bytes),
            cpus: least(self.cpus, other.cpus),
        }
    }
}

fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// The text of an experiment with `[given]` at its end where its expressions ask for the target:
/// what is stored and resumed has the same values then, whatever the target is by that time.
pub(crate) fn with_target<'t>(context: &Context, text: &'t str, named: Option<&str>) -> Result<Cow<'t, str>> {
    let Some(part) = asks_for_target(text) else {
        return Ok(Cow::Borrowed(text));
    };
    let Some(target) = target::text_of(&part, named) else {
        return Ok(Cow::Borrowed(text));
    };
    let room = match target::sandbox_named(&target) {
        Some(name) => of_sandbox(context, name, &part).within(of_target(context, None)?),
        None => of_target(context, Some(&target))?,
    };
    Ok(Cow::Owned(given(text, room.memory_bytes, room.cpus)))
}

/// Limits of a sandbox: of the one that is there, else of the one that will be made.
fn of_sandbox(context: &Context, name: &str, part: &TargetPart) -> Room {
    if let Ok(sandbox) = Sandbox::open(&context.sandboxes(), name) {
        let limits = &sandbox.record().limits;
        return Room {
            memory_bytes: limits.memory_bytes,
            cpus: limits.cpus,
        };
    }
    let create = part.create.clone().unwrap_or_default();
    Room {
        memory_bytes: create.memory.and_then(|memory| size_bytes(&memory).ok()),
        cpus: create.cpus,
    }
}

/// What a server may use of its host; without a server, all of this one.
fn of_target(context: &Context, target: Option<&str>) -> Result<Room> {
    let known = look(context, target)?.known;
    let of = |name: &str| known.get(name).ok().cloned();
    Ok(Room {
        memory_bytes: of("available.memory_bytes").and_then(|bytes| bytes.as_u64()),
        cpus: of("available.cpus").and_then(|cpus| cpus.as_f64()),
    })
}
