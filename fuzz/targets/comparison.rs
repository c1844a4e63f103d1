//! A reference and a gate of any text are one or an error, and what is written of one is read as the same.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_lab::compare::{Gate, Reference};

fuzz_target!(|text: &str| {
    match text.parse::<Gate>() {
        Ok(gate) => assert_eq!(gate.to_string().parse().as_ref(), Ok(&gate)),
        Err(error) => drop(error.to_string()),
    }
    match text.parse::<Reference>() {
        Ok(reference) => assert_eq!(reference.to_string().parse().as_ref(), Ok(&reference)),
        Err(error) => drop(error.to_string()),
    }
});
