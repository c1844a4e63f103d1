//! How the server was built: from what its settings offer, and from pg_config() where the role may
//! call it.

use super::settings::Settings;
use pgdyno_host::Fact;
use serde_json::{Map, Value, json};

/// Features that show in what a setting may be: feature, setting, choice.
const OFFERED: &[(&str, &str, &str)] = &[
    ("liburing", "io_method", "io_uring"),
    ("lz4", "default_toast_compression", "lz4"),
    ("zstd", "wal_compression", "zstd"),
];

/// The fact `server.build`: compiler, features that are there or not, and the switches of configure
/// if they are known.
pub(super) fn fact(version: &str, settings: &Settings<'_>, configure: Option<&str>) -> Fact {
    let mut build = Map::new();
    if let Some(compiler) = compiler(version) {
        build.insert("compiler".into(), json!(compiler));
    }
    if let Some(platform) = platform(version) {
        build.insert("platform".into(), json!(platform));
    }
    for (feature, setting, choice) in OFFERED {
        if let Some(offered) = settings.offers(setting, choice) {
            build.insert((*feature).into(), json!(offered));
        }
    }
    if let Some(library) = settings.value("ssl_library") {
        build.insert("ssl_library".into(), json!(library));
    }
    if let Some(assertions) = settings.value("debug_assertions") {
        build.insert("assertions".into(), json!(assertions == "on"));
    }
    if let Some(configure) = configure {
        build.insert("with".into(), Value::from(with(configure)));
    }
    if build.is_empty() {
        return Fact::unknown(
            "server.build",
            "version(), pg_settings",
            "the server does not say",
        );
    }
    Fact::known("server.build", "version(), pg_settings, pg_config()", build)
}

/// "gcc (Debian 12.2.0-14) 12.2.0" of "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc
/// (...) 12.2.0, 64-bit".
fn compiler(version: &str) -> Option<&str> {
    let (_, rest) = version.split_once("compiled by ")?;
    Some(rest.rsplit_once(", ").map_or(rest, |(compiler, _)| compiler))
}

fn platform(version: &str) -> Option<&str> {
    let (_, rest) = version.split_once(" on ")?;
    rest.split(',').next().filter(|p| !p.is_empty())
}

/// What configure or meson was asked to build with: "llvm" of '--with-llvm' and of -Dllvm=enabled.
fn with(configure: &str) -> Vec<String> {
    let words = configure.split_whitespace();
    words
        .filter_map(|word| {
            let word = word.trim_matches('\'');
            let name = match word.strip_prefix("--with-") {
                Some(rest) => rest.split('=').next(),
                None => word.strip_prefix("-D")?.strip_suffix("=enabled"),
            };
            name.map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_build() {
        let version =
            "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit";
        assert_eq!(compiler(version), Some("gcc (Debian 12.2.0-14) 12.2.0"));
        assert_eq!(platform(version), Some("x86_64-pc-linux-gnu"));
        assert_eq!(compiler("PostgreSQL"), None);
        let configure = "'CFLAGS=-O2' '--with-llvm' '--with-uuid=e2fs' -Dlz4=enabled -Dzstd=disabled";
        assert_eq!(with(configure), ["llvm", "uuid", "lz4"]);
    }
}
