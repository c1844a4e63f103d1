//! Several servers at once, each with the whole load: bound to parts of the host, with huge pages,
//! and after a kill.

use crate::experiment::until_loaded;
use common::machine::quiet_machine;
use common::{Home, kernel};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const POOL: &str = "/proc/sys/vm/nr_hugepages";

fn trials(home: &Home) -> Vec<Value> {
    let report = home.run(&["report", "1", "--format", "json"]).fine().json();
    report["trials"].as_array().expect("trials").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Names of the sandboxes that there are.
fn sandboxes(home: &Home) -> Vec<String> {
    let list = home.run(&["sandbox", "list", "--json"]).fine().json();
    let names = list.as_array().expect("sandboxes").iter();
    names
        .map(|sandbox| sandbox["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn servers_have_parts_of_the_host_and_a_pool_for_all_of_them() {
    let _machine = quiet_machine();
    let home = Home::on_disk();
    home.run(&["sandbox", "create", "x", "--memory", "512M"]).fine();
    let pool = kernel(POOL);
    let (seen, script) = (home.path.path().join("seen"), home.path.path().join("look.sh"));
    // It begins before the load, when all servers run.
    let look = format!(
        "for f in {0}/state/sandboxes/*/data/postmaster.pid; do\n  sed -n 's/Cpus_allowed_list:.//p' /proc/$(head -n 1 $f)/status >> {1}\n\
         done\nsed -n 's/HugePages_Total: *//p' /proc/meminfo >> {1}\necho end >> {1}\nexec sleep 100\n",
        home.path.path().display(),
        seen.display()
    );
    fs::write(&script, look).expect("a script");
    let text = format!(
        "name = \"several\"\nquestion = \"Do parts pay?\"\ndesign = \"full-factorial\"\nblocks = 1\n[target]\nsandbox = \"x\"\n\
         [data]\nscale = 1\n[load]\nworkload = \"select-only\"\nclients = 2\nrate = \"200\"\nwarmup_s = 0.5\nmeasure_s = 2.5\n\
         [server]\nneighbour = \"sh {}\"\n\
         [[factor]]\nname = \"placed\"\n[[factor.level]]\nname = \"free\"\nsettings.huge_pages = \"off\"\n\
         [[factor.level]]\nname = \"bound\"\n[factor.level.settings]\nhuge_pages = \"on\"\n\"vm.nr_hugepages\" = \"auto\"\n\
         \"cgroup.cpus\" = \"part\"\n\"cgroup.memory_nodes\" = \"part\"\n\
         [[factor]]\nname = \"servers\"\ncondition = true\nof = \"server.count\"\nvalues = [1, 2]\n",
        script.display()
    );
    let file = home.write("several.toml", &text);
    let run = home.run(&["run", &file.to_string_lossy()]).fine();
    assert!(!run.err.contains("FAILED"), "{}", run.err);
    assert_eq!((kernel(POOL), sandboxes(&home)), (pool, vec!["x".to_owned()]));
    let trials = trials(&home);
    assert_eq!(trials.len(), 4, "{trials:?}");
    for trial in &trials {
        assert_eq!(trial["status"], "finished", "{trial}");
        assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
        let name = trial["treatment"].as_str().expect("a name");
        let figures = &trial["figures"];
        if name.contains("servers=1") {
            assert!(figures["server_tps_min"].is_null(), "{trial}");
            continue;
        }
        let (least, most) = (&figures["server_tps_min"], &figures["server_tps_max"]);
        assert!(number(&figures["server_tps_spread"]) >= 0.0, "{trial}");
        if trial["unsettled_s"].as_f64().unwrap_or(0.0) == 0.0 {
            let sum = number(least) + number(most);
            assert!((sum / number(&trial["tps"]) - 1.0).abs() < 1e-6, "{trial}");
        }
    }
    // What the script has seen of each load: how many servers ran, on which CPUs, and with how
    // large a pool.
    let seen = fs::read_to_string(&seen).expect("what was seen");
    let mut looks = BTreeSet::new();
    for look in seen.split("end\n").filter(|look| !look.is_empty()) {
        let mut cpus: Vec<&str> = look.lines().collect();
        let pages: u64 = cpus.pop().and_then(|pages| pages.parse().ok()).expect("pages");
        cpus.sort_unstable();
        looks.insert((cpus.join(" "), pages > 0));
    }
    let expected = [("0 1", true), ("0-1", false), ("0-1", true), ("0-1 0-1", false)];
    let expected = expected.map(|(cpus, has_pool)| (cpus.to_owned(), has_pool));
    assert_eq!(looks, BTreeSet::from(expected), "{seen}");
}

#[test]
fn several_servers_that_a_kill_leaves_are_restored_and_resumed() {
    let home = Home::new();
    home.sandbox("x", &["--set", "work_mem=5MB"]);
    let text = "name = \"several\"\nquestion = \"?\"\ndesign = \"a-b\"\nblocks = 2\n[target]\nsandbox = \"x\"\n[data]\nscale = 1\n\
                reset = \"recreate\"\n[load]\nworkload = \"tpcb\"\nclients = 2\nrate = \"100\"\nwarmup_s = 0.5\nmeasure_s = 2\n[server]\ncount = 2\n\
                [[step]]\nname = \"more\"\nsettings.work_mem = \"9MB\"\n";
    let path = home.write("several.toml", text).to_string_lossy().into_owned();
    let conf = fs::read(home.data("x").join("postgresql.auto.conf")).expect("a file");
    let mut child = home.spawn(&["run", &path]);
    until_loaded(&home, &mut child);
    child.kill().expect("a process");
    child.wait().expect("its end");
    home.run(&["restore"]).fine();
    let made = sandboxes(&home);
    assert_eq!(made.len(), 2, "{made:?}");
    for name in &made {
        let text = fs::read_to_string(home.data(name).join("postgresql.auto.conf")).expect("a file");
        assert!(!text.contains("9MB"), "{name}: {text}");
        let text = fs::read_to_string(home.data(name).join("postgresql.conf")).expect("a file");
        assert!(text.contains("\nwork_mem = '5MB'\n"), "{name} is as the first is");
    }
    home.run(&["resume"]).fine();
    assert_eq!(
        fs::read(home.data("x").join("postgresql.auto.conf")).expect("a file"),
        conf
    );
    assert_eq!(sandboxes(&home), ["x"]);
    let trials = trials(&home);
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_eq!(
            (&trial["status"], &trial["cross_check"]["agrees"]),
            (&"finished".into(), &true.into()),
            "{trial}"
        );
        assert!(number(&trial["figures"]["server_tps_min"]) > 0.0, "{trial}");
    }
}
