//! Takes in the page that ui/ builds. Without it the crate builds too, and says in a report what is missing.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(page)");
    let dist = Path::new("page");
    println!("cargo::rerun-if-changed=page");
    if dist.join("app.js").is_file() && dist.join("app.css").is_file() {
        println!("cargo::rustc-cfg=page");
    }
}
