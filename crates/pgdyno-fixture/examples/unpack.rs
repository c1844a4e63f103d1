//! Unpacks a captured machine: `unpack NAME DIRECTORY`. For people; tests unpack by themselves.

use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory] = &arguments[..] else {
        panic!("usage: unpack NAME DIRECTORY");
    };
    let archive = pgdyno_fixture::archive(name);
    pgdyno_fixture::unpack(&archive, Path::new(directory))
        .unwrap_or_else(|error| panic!("{directory}: {error}"));
}
