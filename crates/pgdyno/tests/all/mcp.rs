//! `pgdyno mcp` as an agent uses it: what it may do, what it may not, and what is left when it goes
//! away.

use common::{Home, signal, until, until_is};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client of the protocol, as plain lines.
struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Agent {
    fn start(home: &Home, arguments: &[&str]) -> Agent {
        let mut command = home.command(&[&["mcp"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("started");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut agent = Agent {
            process,
            input,
            output,
            number: 0,
        };
        let begun = agent.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }),
        );
        assert_eq!(begun["result"]["serverInfo"]["name"], "pgdyno");
        agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: Value) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{message}").expect("sent");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let id = self.number;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Text of a tool's answer, and whether it is a refusal.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        match result["content"][0]["text"].as_str() {
            Some(text) => (text.to_owned(), result["isError"] == true),
            None => (answer["error"]["message"].to_string(), true),
        }
    }

    fn fine(&mut self, tool: &str, arguments: Value) -> String {
        let (text, refused) = self.call(tool, arguments);
        assert!(!refused, "{tool}: {text}");
        text
    }

    fn refuses(&mut self, tool: &str, arguments: Value, expected: &str) {
        let (text, refused) = self.call(tool, arguments);
        assert!(refused && text.contains(expected), "{tool}: {text}");
    }

    fn status(&mut self) -> Value {
        serde_json::from_str(&self.fine("status", json!({}))).expect("JSON")
    }

    /// Runs a plan until a trial has its setting; the process that runs it.
    fn changes(&mut self, plan: Value) -> u32 {
        let made: Value = serde_json::from_str(&self.fine("plan", plan)).expect("JSON");
        self.fine("run", json!({ "plan": made["plan"] }));
        until("a trial has its setting", || {
            let status = self.status();
            let process = status["changed"][0]["pid"].as_u64();
            let process = process.and_then(|process| u32::try_from(process).ok());
            process
                .filter(|_| status.to_string().contains("work_mem"))
                .ok_or(status)
        })
    }

    /// Waits until nothing runs.
    fn ends(&mut self) {
        until_is("the run has ended", Value::Null, || {
            self.status()["running"].clone()
        });
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn plan(measure_s: u32, settings: &Value) -> Value {
    json!({
        "target": "sandbox:x", "question": "Does it pay?", "workload": "select-only", "clients": 1, "measure_s": measure_s, "blocks": 3,
        "treatments": [{ "name": "more", "settings": settings }],
    })
}

#[test]
fn an_agent_reads_plans_runs_and_goes_away_without_a_trace() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let before = common::auto_conf(&home);
    let elsewhere = "host=/nowhere user=postgres";
    let mut agent = Agent::start(&home, &["sandbox:x", elsewhere, "--budget", "2m"]);

    let targets = agent.fine("targets", json!({}));
    assert!(
        targets.contains("target-2") && !targets.contains("nowhere"),
        "{targets}"
    );
    let facts: Value = serde_json::from_str(&agent.fine(
        "facts",
        json!({ "target": "sandbox:x", "about": "server.version" }),
    ))
    .expect("JSON");
    let names: Vec<&str> = facts["facts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|fact| fact["name"].as_str())
        .collect();
    assert!(
        names.contains(&"server.version") && names.iter().all(|name| name.starts_with("server.version")),
        "{names:?}"
    );
    // Nothing that takes a person can be had, in whatever words.
    agent.refuses("facts", json!({ "target": elsewhere }), "there is no target");
    agent.refuses("plan", plan(1, &json!({ "fsync": "off" })), "people alone");
    agent.refuses(
        "plan",
        plan(1, &json!({ "vm.swappiness": "1" })),
        "outside the sandbox",
    );
    agent.refuses(
        "plan",
        plan(1, &json!({ "shared_preload_libraries": "x" })),
        "names code",
    );
    let mut of_other = plan(1, &json!({}));
    of_other["target"] = "target-2".into();
    agent.refuses("plan", of_other, "is not a sandbox");
    agent.refuses("run", json!({ "plan": 1 }), "there is no plan 1");

    let long: Value =
        serde_json::from_str(&agent.fine("plan", plan(600, &json!({ "work_mem": "16MB" })))).expect("JSON");
    agent.refuses("run", json!({ "plan": long["plan"] }), "of the budget are left");

    let made: Value =
        serde_json::from_str(&agent.fine("plan", plan(8, &json!({ "work_mem": "16MB" })))).expect("JSON");
    assert_eq!(made["trials"], 6, "{made}");
    agent.fine("run", json!({ "plan": made["plan"] }));
    agent.refuses("run", json!({ "plan": made["plan"] }), "is running");
    agent.refuses(
        "plan",
        plan(1, &json!({ "work_mem": "8MB" })),
        "an experiment is running",
    );
    until("a trial has its setting", || match agent.status() {
        status if status["changed"].to_string().contains("work_mem") => Ok(()),
        status => Err(status),
    });
    let scratch = home.file("state/scratch");
    assert!(
        scratch
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_some())
    );

    // The agent goes: what it had begun is ended in order.
    drop(agent.input.take());
    until_is("it has ended", true, || {
        agent.process.try_wait().is_ok_and(|ended| ended.is_some())
    });
    assert_eq!(common::auto_conf(&home), before);
    let listed = home.run(&["list", "--json"]).fine().json();
    assert!(listed.to_string().contains("interrupted"), "{listed}");
    assert!(
        scratch
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_none())
    );
}

#[test]
fn what_an_agent_s_killed_server_left_is_restored_by_the_next() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let before = common::auto_conf(&home);
    let mut agent = Agent::start(&home, &["sandbox:x"]);
    let run = agent.changes(plan(6, &json!({ "work_mem": "16MB" })));
    for (arguments, expected) in [
        (json!({ "limit": 1 }), 1),
        (json!({ "limit": 0 }), 0),
        (json!({ "search": "no such" }), 0),
    ] {
        let listed: Value = serde_json::from_str(&agent.fine("list", arguments)).expect("JSON");
        assert_eq!(listed.as_array().map(Vec::len), Some(expected), "{listed}");
    }
    signal(run, "-KILL");
    agent.ends();
    agent.fine("restore", json!({}));
    assert_eq!(common::auto_conf(&home), before);
    // A signal ends it though its input is open.
    signal(agent.process.id(), "-TERM");
    until_is("it has ended", true, || {
        agent.process.try_wait().is_ok_and(|ended| ended.is_some())
    });
}

#[test]
fn what_was_left_on_another_sandbox_is_for_a_person_to_restore() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.sandbox("y", &[]);
    let mut other = Agent::start(&home, &["sandbox:y"]);
    let mut of_other = plan(6, &json!({ "work_mem": "16MB" }));
    of_other["target"] = "sandbox:y".into();
    let run = other.changes(of_other);
    signal(run, "-KILL");
    other.ends();
    drop(other);

    let mut agent = Agent::start(&home, &["sandbox:x"]);
    let made = agent.fine("plan", plan(1, &json!({ "work_mem": "8MB" })));
    let made: Value = serde_json::from_str(&made).expect("JSON");
    agent.fine("run", json!({ "plan": made["plan"] }));
    agent.ends();
    let status = agent.status();
    assert_eq!(status["ended"]["exit_code"], 4, "{status}");
    let progress = status["progress"].to_string();
    assert!(
        progress.contains("a person must run `pgdyno restore`"),
        "{status}"
    );
    assert!(status["changed"].to_string().contains("work_mem"), "{status}");
    home.run(&["restore"]).fine();
    agent.fine("run", json!({ "plan": made["plan"] }));
    agent.ends();
    let status = agent.status();
    assert_eq!(status["ended"]["exit_code"], 0, "{status}");
    assert_eq!(status["changed"], json!([]));
}

#[test]
fn a_target_with_a_password_is_refused_before_anything_shows_it() {
    let home = Home::new();
    let refused = home
        .run(&["mcp", "postgres://me:sesame@db/x"])
        .fails(2, &["has a password in it"]);
    assert!(!refused.err.contains("sesame"), "{}", refused.err);
}
