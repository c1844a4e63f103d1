//! Loads that hosts over ssh drive: what they do together is what one host does, to the transaction
//! and to the key.

use crate::remote::{Pair, SECRET, find, is_in_no_process};
use pgdyno_testing::ssh::{FAR, FAR_ADDRESS};
use pgdyno_testing::{Said, Started, said, signal, until};
use serde_json::Value;
use std::process::Stdio;

/// What a client writes down is all that it has drawn.
const SCRIPT: &str = "\\set k random(1, 1000000000)\nINSERT INTO seen VALUES (:client_id, :k);\n";

struct Driven(Pair);

impl Driven {
    fn new() -> Driven {
        let pair = Pair::new();
        pair.home.sandbox("main", &[]);
        pair.home.ask("main", "CREATE TABLE seen (client int, k bigint)");
        pair.home.write("seen.sql", SCRIPT);
        Driven(pair)
    }

    /// The server's socket is a file, which the other host has too.
    fn connection(&self) -> String {
        let socket = self.0.home.file("state/sandboxes/main/socket");
        format!("host={}", socket.display())
    }

    fn bench(&self, more: &[&str]) -> Vec<String> {
        let script = self.0.home.file("seen.sql").to_string_lossy().into_owned();
        let mut all: Vec<String> = ["bench", "sandbox:main", "-f"].map(str::to_owned).to_vec();
        all.push(script);
        all.extend(more.iter().map(|word| (*word).to_owned()));
        all
    }

    fn run(&self, more: &[&str]) -> Said {
        let all = self.bench(more);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        said(
            self.0
                .far
                .command(&self.0.home, &all)
                .output()
                .expect("pgdyno runs"),
        )
    }

    fn seen(&self) -> String {
        let all = self.0.home.ask(
            "main",
            "SELECT count(*) || ' ' || md5(string_agg(client || ':' || k, ',' ORDER BY client, k)) FROM seen",
        );
        self.0.home.ask("main", "TRUNCATE seen");
        all
    }

    fn hosts<'a>(&self, connection: &'a str) -> Vec<&'a str> {
        vec![
            "--load-host",
            FAR,
            "--load-host",
            "local",
            "--load-connection",
            connection,
        ]
    }
}

#[test]
fn hosts_together_do_what_one_does_to_the_key() {
    let driven = Driven::new();
    let connection = driven.connection();
    let load = ["-c", "5", "-t", "40", "--json", "--seed", "11"];
    let one = driven.run(&[&load[..], &["-j", "2"]].concat()).fine().json();
    let by_one = driven.seen();
    let two = driven
        .run(&[&load[..], &["-j", "1"], &driven.hosts(&connection)].concat())
        .fine()
        .json();
    assert_eq!(driven.seen(), by_one);
    assert!(by_one.starts_with("200 "), "{by_one}");
    for field in ["all", "committed", "failed", "skipped", "clients"] {
        assert_eq!(two[field], one[field], "{field} of {two:#}");
    }
    assert_eq!(two["cross_check"]["agrees"], Value::Bool(true), "{two:#}");
    assert_eq!(one["load_hosts"], Value::Array(Vec::new()));

    // An open loop, over a time.
    let open = [
        "-R",
        "300",
        "--spacing",
        "constant",
        "-c",
        "4",
        "-j",
        "1",
        "-d",
        "2s",
        "--warmup",
        "1s",
        "--json",
    ];
    let found = driven
        .run(&[&open[..], &driven.hosts(&connection)].concat())
        .fine()
        .json();
    let all = found["all"].as_u64().unwrap_or_default();
    // A host that is busy ends its last second late; twice the rate would be 1200.
    assert!((590..660).contains(&all), "{found:#}");
    let hosts = found["load_hosts"].as_array().expect("hosts");
    let names: Vec<&Value> = hosts.iter().map(|host| &host["host"]).collect();
    assert_eq!(names, [FAR, "local"]);
    for host in hosts {
        assert!(
            host["idle"].is_number() && host["began_late_ms"].is_number(),
            "{host}"
        );
    }
    assert_eq!(found["cross_check"]["agrees"], Value::Bool(true), "{found:#}");
}

#[test]
fn host_that_cannot_or_is_lost_ends_the_load() {
    let driven = Driven::new();
    let connection = driven.connection();
    let load = ["-c", "4", "-j", "1", "-d", "60s"];
    driven
        .run(&[&load[..], &["--load-host", "ssh:nowhere"]].concat())
        .fails(1, &["another server's on a load host", "--load-connection"]);
    driven
        .run(
            &[
                &load[..],
                &["--load-host", "ssh:nowhere", "--load-connection", &connection],
            ]
            .concat(),
        )
        .fails(
            1,
            &[
                "ssh:nowhere could not be reached",
                "`ssh HOST true` must work first",
            ],
        );
    let three = [
        "--load-host",
        FAR,
        "--load-host",
        FAR,
        "--load-host",
        "local",
        "-c",
        "2",
    ];
    driven
        .run(&[&three[..], &["--load-connection", &connection]].concat())
        .fails(2, &["3 load hosts for 2 clients"]);
    driven
        .run(
            &[
                &load[..],
                &["--load-host", FAR, "--load-connection", "host=127.0.0.1 port=1"],
            ]
            .concat(),
        )
        .fails(1, &["ssh:far: ", "127.0.0.1:1"]);
    driven
        .run(&[&load[..], &["--load-host", "far"]].concat())
        .fails(2, &["expected ssh:HOST"]);
    driven
        .run(&[&load[..], &["--load-host", FAR, "--warmup", "auto"]].concat())
        .fails(2, &["warm-up of a length"]);
    let all = driven.bench(&[&load[..], &driven.hosts(&connection)].concat());
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let started = driven.0.start_here(&all);
    driven.0.home.until_driven("main");
    for pid in driven.0.agents() {
        signal(pid, "-KILL");
    }
    started
        .end()
        .fails(1, &["driven: the connection to ssh:far was lost"]);
    until("the end of all agents", || match &*driven.0.agents() {
        [] => Ok(()),
        others => Err(others.to_vec()),
    });
}

#[test]
fn password_goes_to_load_hosts_and_is_seen_nowhere() {
    let driven = Driven::new();
    let pair = &driven.0;
    let record = pair.home.record("main");
    let target = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        record["port"]
    );
    pair.home
        .ask("main", &format!("ALTER ROLE postgres PASSWORD '{SECRET}'"));
    let connection = driven.connection();
    let script = pair.home.file("seen.sql").to_string_lossy().into_owned();
    let load = ["-f", &script, "-c", "4", "-j", "1", "-d", "60s", "--store"];
    let mut arguments = vec!["bench", &*target];
    arguments.extend(load);
    arguments.extend(driven.hosts(&connection));
    let mut command = pair.far.command(&pair.home, &arguments);
    command
        .env("PGPASSWORD", SECRET)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Started::of(command.spawn().expect("pgdyno runs"));
    pair.home.until_driven("main");
    is_in_no_process(started.id());
    started.interrupt();
    let said = started.end();
    assert!(
        !said.out.contains(SECRET) && !said.err.contains(SECRET),
        "{}",
        said.err
    );
    let mut found = Vec::new();
    for place in [pair.home.file("data"), pair.far.file("home")] {
        find(&place, &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn experiment_takes_its_load_from_other_hosts() {
    let driven = Driven::new();
    let pair = &driven.0;
    let file = |create: &str, hosts: &str, connection: &str| {
        let text = format!(
            "name = \"far\"\nquestion = \"Does it matter?\"\ndesign = \"a-b\"\nblocks = 2\nseed = 7\n[target]\n\
             {create}\n[data]\nscale = 1\n[load]\nworkload = \"tpcb\"\n\
             hosts = [{hosts}]\nconnection = \"{connection}\"\nclients = 4\nrate = \"200\"\nwarmup_s = 0.5\nmeasure_s = 2.0\n\
             [[step]]\nname = \"more\"\ntitle = \"More memory\"\nsettings.work_mem = \"7MB\"\n"
        );
        let path = pair.home.write("load.toml", &text);
        path.to_string_lossy().into_owned()
    };
    let check = |ran: Said| {
        let found = ran.fine().json();
        assert_eq!(pgdyno_testing::ended(&found, "finished"), 4);
        for trial in found["trials"].as_array().expect("trials") {
            assert_eq!(trial["cross_check"]["agrees"], Value::Bool(true), "{trial:#}");
        }
    };
    let main = "sandbox = \"main\"";
    let here = file(main, "\"local\", \"ssh:far\"", &driven.connection());
    let arguments = ["run", &here, "--json"];
    check(said(
        pair.far
            .command(&pair.home, &arguments)
            .output()
            .expect("pgdyno runs"),
    ));
    // The run is on the other host, and so is the load, by a connection of its own and over its
    // network.
    let create = format!("sandbox = \"there\"\ncreate = {{ listen = \"{FAR_ADDRESS}/30\" }}");
    let there = file(&create, "\"local\", \"ssh:far\"", &format!("host={FAR_ADDRESS}"));
    check(pair.run(&["run", &there, "--json"]));
    let password = file(main, "\"ssh:far\"", "host=x password=secret");
    pair.home.run(&["run", &password]).fails(2, &["password"]);
    let odd = file(main, "\"ssh:-oProxyCommand=x\"", "host=x");
    pair.home
        .run(&["run", &odd])
        .fails(2, &["is not a host of a load"]);
    // Before the first trial each host is asked, and asks the server.
    let dry = |file: &str| {
        let mut command = pair.far.command(&pair.home, &["run", file, "--dry-run"]);
        said(command.output().expect("pgdyno runs"))
    };
    let driven_by = |hosts: &str, connection: &str| file(main, hosts, connection);
    dry(&driven_by("\"local\", \"ssh:far\"", &driven.connection())).fine();
    dry(&driven_by("\"ssh:nowhere\"", &driven.connection())).fails(1, &["load host", "ssh:nowhere"]);
    // Those of the command line are in place of the file's.
    let named = driven_by("\"local\"", "host=x");
    let connection = driven.connection();
    let more = ["--load-host", "ssh:nowhere", "--load-connection", &*connection];
    let mut command = pair
        .far
        .command(&pair.home, &[&["run", &named, "--dry-run"][..], &more].concat());
    said(command.output().expect("pgdyno runs")).fails(1, &["load host", "ssh:nowhere"]);
    let deaf = driven_by("\"ssh:far\"", "host=127.0.0.1 port=1");
    let why = ["load host ssh:far: ", "no server answers", "127.0.0.1:1"];
    dry(&deaf).fails(1, &why);
    let begun = pair.home.run(&["list"]).fine().out;
    let mut command = pair.far.command(&pair.home, &["run", &deaf]);
    said(command.output().expect("pgdyno runs")).fails(1, &why);
    assert_eq!(pair.home.run(&["list"]).fine().out, begun, "nothing is begun");
    // A group of an inventory in place of the file's hosts: its way is in there, and its name is in
    // the results.
    let inventory = format!(
        "[gens]\ngen1 ansible_host=far\n[gens:vars]\nansible_ssh_common_args='-o LogLevel=ERROR'\n\
         [elsewhere]\ngen2 ansible_host={FAR_ADDRESS} ansible_ssh_private_key_file=/no/such/key\n"
    );
    let inventory = pair.home.write("hosts.ini", &inventory);
    let inventory = inventory.to_string_lossy();
    let group = |name: &'static str| ["--inventory", &*inventory, "--load-group", name];
    let with_group = |more: &[&str]| {
        let of_file = driven_by("\"ssh:nowhere\"", &driven.connection());
        let mut command = pair
            .far
            .command(&pair.home, &[&["run", &of_file, "--json"], more].concat());
        said(command.output().expect("pgdyno runs"))
    };
    let ran = with_group(&group("gens"));
    assert!(ran.out.contains("ssh:gen1"), "{}", ran.out);
    check(ran);
    // Of a run there, the group is this host's.
    let there = file(&create, "\"ssh:nowhere\"", &format!("host={FAR_ADDRESS}"));
    check(pair.run(&[&["run", &there, "--json"][..], &group("gens")].concat()));
    pair.run(&["run", &there, "--dry-run"])
        .fails(1, &["load host", "ssh:nowhere"]);
    let deaf = file(&create, "\"ssh:far\"", "host=127.0.0.1 port=1");
    pair.run(&["run", &deaf, "--dry-run"]).fails(1, &why);
    pair.run(&["sandbox", "destroy", "there"]).fine();
    with_group(&group("elsewhere")).fails(1, &["ssh:gen2"]);
    with_group(&group("none")).fails(2, &["none"]);
    let none = file(main, "\"gen1\"", "host=x");
    pair.home
        .run(&["run", &none])
        .fails(2, &["\"gen1\" is not a host of a load"]);
}
