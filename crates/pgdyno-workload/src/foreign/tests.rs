//! What is read of other programs, and how they end.

mod command;
mod dialogue;
mod output;
mod processes;

use super::format::foreign_formats;
use super::*;

fn format(name: &str) -> ForeignFormat {
    let formats = foreign_formats().unwrap();
    formats.into_iter().find(|format| format.name == name).unwrap()
}

fn read(format: &ForeignFormat, text: &[u8], warmup_s: f64) -> ForeignFigures {
    let mut output = ForeignOutput::new(format, warmup_s, false, Some("sekret".into()));
    output.read(ForeignStream::Out, text, f64::MAX, &mut |_| {});
    output.finish(10.0, &mut |_| {})
}
