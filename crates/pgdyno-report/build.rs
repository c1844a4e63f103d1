//! Takes in the page that ui/ builds. Without it the crate builds too, and says in a report what is
//! missing.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(page)");
    let dist = Path::new("page");
    // What is not there has always changed, and the crate would be built each time.
    let watched = if dist.is_dir() { "page" } else { "." };
    println!("cargo::rerun-if-changed={watched}");
    if dist.join("app.js").is_file() && dist.join("app.css").is_file() {
        println!("cargo::rustc-cfg=page");
    }
}
