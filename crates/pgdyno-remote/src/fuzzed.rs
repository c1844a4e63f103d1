//! Parsers of foreign bytes for the fuzz targets (fuzz/bodies) alone: each takes any input.

use crate::boot;
use crate::frame::{self, Frame};
use crate::inventory::Inventory;
use crate::message::{FromAgent, ToAgent};
use crate::question::{FromGenerator, Question};

/// What a host sends to a coordinator.
pub fn from_host(mut bytes: &[u8]) {
    if !matches!(boot::found(&mut bytes), Ok(Some(_))) || !matches!(boot::agent_follows(&mut bytes), Ok(true))
    {
        return;
    }
    frames(bytes, &used);
}

/// Frames of both directions.
pub fn from_either(bytes: &[u8]) {
    frames(bytes, &used);
    frames(bytes, &|_: &ToAgent| ());
}

/// What a coordinator does with what it is sent.
fn used(message: &FromAgent) {
    let FromAgent::Question(question) = message else {
        return;
    };
    match question.content.clone() {
        Question::AddTrials { trials, .. } => {
            trials.into_iter().for_each(|(_, series)| drop(series.unpacked()))
        }
        Question::Generator(FromGenerator::Second(second)) => drop(second.check()),
        Question::Generator(FromGenerator::Ended { result, .. }) => drop(result.check(1)),
        _ => {}
    }
}

/// Messages that are read are written as what can be read again.
fn frames<M: frame::Message>(mut bytes: &[u8], used: &dyn Fn(&M)) {
    loop {
        match frame::read::<M>(&mut bytes) {
            Ok(Some(Frame::Message(message))) => {
                used(&message);
                let mut written = Vec::new();
                frame::write_message(&mut written, &message).expect("a message that was read can be written");
                let again = frame::read::<M>(&mut &*written);
                assert!(matches!(again, Ok(Some(Frame::Message(_)))));
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => return drop(error.to_string()),
        }
    }
}

/// An inventory of hosts, with the ways to all of them.
pub fn inventory(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for is_yaml in [false, true] {
        if let Ok(inventory) = Inventory::parse(&text, is_yaml) {
            for group in inventory.groups() {
                let _ = inventory.hosts_of(group);
            }
        }
    }
}
