//! Settings that are one word in all versions of PostgreSQL, and not one thing.

use pgdyno_testing::Home;
use pgdyno_testing::machine::newest;

/// `on` is another method since version 19, and an experiment over versions would compare the two
/// under one name.
#[test]
fn method_of_compression_that_took_effect_is_stored_of_the_newest_version() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x", "--version", &newest()])
        .fine();
    let text = "name = \"test\"\nquestion = \"Which one is it?\"\ndesign = \"a-b\"\nblocks = 1\n[target]\nsandbox = \"x\"\n\
        restart = \"when-needed\"\n[data]\nscale = 1\n[load]\nworkload = \"tpcb\"\nclients = 1\nrate = \"100\"\nwarmup_s = 0\n\
        measure_s = 1\n[[step]]\nname = \"compressed\"\nsettings.wal_compression = true\n";
    let path = home.write("experiment.toml", text);
    home.run(&["run", &path.to_string_lossy()]).fine();
    let json = home.run(&["report", "--format", "json"]).fine().json();
    let setting = &json["treatments"][1]["settings"][0];
    let method = if newest() == "18" { "pglz" } else { "zstd" };
    assert_eq!(
        (&setting["value"], &setting["effective"]),
        (&"on".into(), &method.into()),
        "{setting}"
    );
    home.run(&["sandbox", "destroy", "x"]).fine();
}
