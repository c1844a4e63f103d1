//! Output of other programs and the formats that read it: any bytes, however they come, are figures that can be.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_load::{ForeignFormat, ForeignOutput, ForeignStream, command_words, foreign_formats};
use std::sync::LazyLock;

static SHIPPED: LazyLock<Vec<ForeignFormat>> = LazyLock::new(|| foreign_formats().expect("the formats"));

fuzz_target!(|input: (u8, Vec<Vec<u8>>, String)| {
    let (which, pieces, text) = input;
    let _ = command_words(&text);
    let own = ForeignFormat::parse(&text, "fuzz").unwrap_or_default();
    let formats: Vec<&ForeignFormat> = own.iter().chain(SHIPPED.iter()).collect();
    let format = formats[usize::from(which) % formats.len()];
    let mut output = ForeignOutput::new(format, 2.0, false, Some("sekret".into()));
    let mut end_s = 0.0;
    let mut on_second = |second: &pgdyno_load::ForeignSecond| {
        assert!(second.length_s > 0.0 && second.t_s > end_s && second.tps >= 0.0);
        end_s = second.t_s;
    };
    for (at, piece) in (0_u32..).zip(&pieces) {
        let stream = if at % 2 == 0 { ForeignStream::Out } else { ForeignStream::Err };
        output.read(stream, piece, f64::from(at), &mut on_second);
    }
    let figures = output.finish(100.0, &mut on_second);
    assert!(figures.tps.is_none_or(|tps| tps.is_finite() && tps >= 0.0));
    assert!(figures.last_lines.len() <= 20 && figures.last_lines.iter().all(|line| !line.contains("sekret")));
});
