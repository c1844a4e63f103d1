//! `pgdyno mcp`: reading and experiments for agents, by the Model Context Protocol on standard
//! input and output.
//!
//! Each tool is a command of this program, run as a process of its own: what an agent asks for has
//! no more rights, time or output than that. Targets are named at the start, and an agent chooses
//! among them. No command gets a flag that gives consent, experiments are made of checked values
//! and run on sandboxes alone, and all of them together within a budget.

mod arguments;
mod child;
mod plan;
mod work;

use crate::cli::McpArgs;
use crate::commands::restore::RESTORES;
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Failure, InContext as _, Result, Usage};
use arguments::{ExperimentArgs, FactsArgs, KnobArgs, ListArgs, PairArgs, RunArgs, ShowArgs, TargetArgs};
use child::{Limit, Output, ask, command};
use pgdyno_host::{Directory, Owner, USUAL_MODE, make_directory};
use pgdyno_knobs::Catalogue;
use pgdyno_server::may_hold_password;
use plan::PlanArgs;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;
use work::{Planned, Running, Work, end, keep_watch};

/// What reading may take.
const ANSWERING: Duration = Duration::from_mins(2);
const READING: Limit = Limit::Ends(ANSWERING);
/// What measuring may take.
const MEASURING: Duration = Duration::from_mins(5);
/// What a check of everything takes about.
const CHECK_S: f64 = 30.0;
/// So long an agent waits for what is restored: servers may be stopped and started for it.
const RESTORING: Limit = Limit::GoesOn(Duration::from_mins(5));
/// So long what goes on without the agent is waited for, in the end.
const LEAVING: Duration = Duration::from_mins(30);
/// Commands that run at a time, however many an agent asks for.
const AT_ONCE: usize = 2;
/// Commands that wait for their turn.
const WAITING_MAX: usize = 16;
/// Longest answer.
const ANSWER_BYTES_MAX: usize = 512 << 10;
/// Trials of an answer.
const TRIALS_SHOWN: usize = 500;
/// Plans that are kept.
const PLANS_MAX: usize = 1000;
/// Last lines of a running experiment that are shown.
const LINES: usize = 20;
/// Experiments that are listed where an agent does not say how many.
const LISTED: u16 = 100;
const LOG_BYTES: u64 = 16 << 10;
/// For this user alone: what agents plan is nobody else's.
const PRIVATE_MODE: u32 = 0o700;
/// How often it is checked whether this program is to end.
const TICK: Duration = Duration::from_millis(200);
const SANDBOX: &str = "sandbox:";

pub(crate) fn run(context: &Context, args: &McpArgs) -> Result<u8> {
    for target in &args.targets {
        if may_hold_password(target) {
            let message = "a target has a password in it, which commands would show";
            let error = Failure::from(Usage(message.to_owned()));
            return Err(error.with_hint("put it into PGPASSWORD, a password file or a service"));
        }
    }
    let (scratch, name) = (context.scratch(), format!("mcp-{}", std::process::id()));
    let scratch = make_directory(&scratch, USUAL_MODE).with_context(|| scratch.display().to_string())?;
    // Of a process that had this number before, and was killed.
    let _ = scratch.remove_tree(&name);
    let directory = Arc::new(
        scratch
            .make(&name, PRIVATE_MODE)
            .context("a directory for plans")?,
    );
    let (say_gone, gone) = watch::channel(false);
    let tools = Tools {
        catalogue: context.catalogue.clone(),
        targets: args.targets.clone(),
        store: args
            .store
            .place()
            .map(|place| place.to_string_lossy().into_owned()),
        directory: Arc::clone(&directory),
        turns: Arc::new(Semaphore::new(AT_ONCE)),
        waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        gone,
        measuring: Arc::default(),
        charging: Arc::default(),
        work: Arc::new(Mutex::new(Work {
            budget_s: args.budget.as_secs_f64(),
            ..Work::default()
        })),
    };
    let stop = stop_flag()?;
    let (work, turns) = (Arc::clone(&tools.work), Arc::clone(&tools.turns));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the runtime")?;
    let outcome = runtime.block_on(async {
        let served = async {
            let service = tools
                .serve(rmcp::transport::stdio())
                .await
                .map_err(|error| error.to_string())?;
            service
                .waiting()
                .await
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        let ended = tokio::select! {
            ended = served => ended,
            () = asked_to_end(&stop) => Ok(()),
        };
        // Nobody is there any more to hear of it.
        let _ = say_gone.send(true);
        end(&work).await;
        let all = u32::try_from(AT_ONCE).unwrap_or(1);
        let _ = timeout(LEAVING, turns.acquire_many(all)).await;
        ended
    });
    // Standard input may never end.
    runtime.shutdown_background();
    // Whatever stays takes no room to speak of.
    let _ = scratch.remove_tree(&name);
    outcome.map_err(Failure::new)?;
    Ok(exit::FINE)
}

#[derive(Clone)]
struct Tools {
    catalogue: Catalogue,
    targets: Vec<String>,
    store: Option<String>,
    /// Where plans are kept while this runs.
    directory: Arc<Directory>,
    /// For commands at a time.
    turns: Arc<Semaphore>,
    /// For those that wait for that.
    waiting: Arc<Semaphore>,
    /// Whether the agent has gone.
    gone: watch::Receiver<bool>,
    /// Held while a check measures.
    measuring: Arc<Mutex<()>>,
    /// Held by a command whose time counts: the next one knows what is left.
    charging: Arc<Mutex<()>>,
    work: Arc<Mutex<Work>>,
}

type Answer = Result<CallToolResult, ErrorData>;

/// What a tool says, as text; JSON as it is.
fn answer(text: impl Into<String>) -> Answer {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
}

/// A refusal that an agent can read and act on.
fn refused(why: impl Into<String>) -> Answer {
    Ok(CallToolResult::error(vec![ContentBlock::text(why)]))
}

#[tool_router]
impl Tools {
    #[tool(
        description = "List the targets that may be read, and whether experiments may run on them.",
        annotations(read_only_hint = true)
    )]
    async fn targets(&self) -> Answer {
        let left_s = self.work.lock().await.left_s();
        let targets: Vec<Value> = (0..self.targets.len())
            .map(|number| json!({ "target": self.name(number), "experiments": self.targets[number].starts_with(SANDBOX) }))
            .collect();
        answer(json!({ "targets": targets, "budget_left_s": left_s }).to_string())
    }

    #[tool(
        description = "Show what a server and its host are, with the source of each fact.",
        annotations(read_only_hint = true)
    )]
    async fn facts(&self, Parameters(args): Parameters<FactsArgs>) -> Answer {
        let about = args.about;
        self.of_target(
            &args.target,
            READING,
            |target| vec!["facts", target, "--json"],
            move |out| {
                let mut facts: Value = serde_json::from_str(&out).unwrap_or_default();
                let mut keep = |list: &str, before: &str| {
                    if let Some(list) = facts[list].as_array_mut() {
                        list.retain(|of| {
                            of["name"]
                                .as_str()
                                .is_some_and(|name| format!("{before}{name}").starts_with(&about))
                        });
                    }
                };
                keep("facts", "");
                keep("settings", "setting.");
                facts.to_string()
            },
        )
        .await
    }

    #[tool(
        description = "Measure commit latency, flushes, reads and noise of a server and its host, with a verdict for each. Makes load for about half a minute, which counts as the budget's."
    )]
    async fn check(&self, Parameters(args): Parameters<TargetArgs>) -> Answer {
        let Ok(_measuring) = self.measuring.try_lock() else {
            return refused("a check is under way, which another would disturb");
        };
        {
            let mut work = self.work.lock().await;
            work.look();
            if work.running.is_some() {
                return refused("an experiment is running, which a check would disturb");
            }
            let left_s = work.left_s();
            if left_s < CHECK_S {
                return refused(format!(
                    "a check takes about {CHECK_S:.0} s, and {left_s:.0} s of the budget are left"
                ));
            }
        }
        match self.target(&args.target) {
            Ok(target) => {
                let found = self.charged(&["check", target, "--json"], MEASURING).await;
                shown_as(found, |out| out)
            }
            Err(why) => refused(why),
        }
    }

    #[tool(
        description = "Show what to change on a server and its host, why, and what is to be expected of it.",
        annotations(read_only_hint = true)
    )]
    async fn advise(&self, Parameters(args): Parameters<TargetArgs>) -> Answer {
        self.of_target(
            &args.target,
            READING,
            |target| vec!["advise", target, "--json"],
            |out| out,
        )
        .await
    }

    #[tool(
        description = "List the knobs of the catalogue, or explain one: what it does, costs and risks.",
        annotations(read_only_hint = true)
    )]
    async fn knobs(&self, Parameters(args): Parameters<KnobArgs>) -> Answer {
        let Some(id) = args.knob else {
            let ids: Vec<&str> = self.catalogue.iter().map(|knob| knob.id.as_str()).collect();
            return answer(ids.join(" "));
        };
        match self.catalogue.get(&id) {
            Ok(knob) => {
                self.command(&["knobs", &knob.id, "--json"], READING, |out| out)
                    .await
            }
            Err(error) => refused(error.to_string()),
        }
    }

    #[tool(
        description = "List the newest experiments in the store.",
        annotations(read_only_hint = true)
    )]
    async fn list(&self, Parameters(args): Parameters<ListArgs>) -> Answer {
        let limit = args.limit.unwrap_or(LISTED).to_string();
        let search = format!("--search={}", args.search);
        self.command(&["list", "--json", "--limit", &limit, &search], READING, |out| {
            out
        })
        .await
    }

    #[tool(
        description = "Show one experiment: its trials with their numbers, 500 at a time.",
        annotations(read_only_hint = true)
    )]
    async fn show(&self, Parameters(args): Parameters<ShowArgs>) -> Answer {
        let shown = |out: String| {
            let mut experiment: Value = serde_json::from_str(&out).unwrap_or_default();
            if let Some(trials) = experiment["trials"].as_array_mut() {
                trials.drain(..args.skip.min(trials.len()));
                let left = trials.len().saturating_sub(TRIALS_SHOWN);
                trials.truncate(TRIALS_SHOWN);
                experiment["trials_left"] = left.into();
            }
            experiment.to_string()
        };
        self.command(&["show", &args.id.to_string(), "--json"], READING, shown)
            .await
    }

    #[tool(
        description = "Report the verdicts of one experiment, as Markdown: what is better, worse or undecided, with intervals.",
        annotations(read_only_hint = true)
    )]
    async fn verdict(&self, Parameters(args): Parameters<ExperimentArgs>) -> Answer {
        let number = args.id.to_string();
        let arguments = ["report", &number, "--format", "md", "--output", "-"];
        self.command(&arguments, READING, |out| out).await
    }

    #[tool(
        description = "Compare two experiments, or treatments of experiments.",
        annotations(read_only_hint = true)
    )]
    async fn compare(&self, Parameters(args): Parameters<PairArgs>) -> Answer {
        for side in [&args.a, &args.b] {
            if !side.starts_with(|first: char| first.is_ascii_digit()) {
                return refused(format!(
                    "{side:?}: expected the number of an experiment, or 3:treatment"
                ));
            }
        }
        self.command(&["compare", &args.a, &args.b, "--json"], READING, |out| out)
            .await
    }

    #[tool(
        description = "Plan an experiment on a sandbox: checks all of it, and says how long it takes. Nothing is changed. `run` runs it. The time of the checks counts as the budget's."
    )]
    async fn plan(&self, Parameters(args): Parameters<PlanArgs>) -> Answer {
        let target = match self.target(&args.target) {
            Ok(target) => target,
            Err(why) => return refused(why),
        };
        let Some(sandbox) = target.strip_prefix(SANDBOX) else {
            return refused(format!(
                "{} is not a sandbox; experiments run only on sandboxes",
                args.target
            ));
        };
        let file = match args.file(sandbox, &self.catalogue) {
            Ok(file) => file,
            Err(why) => return refused(why),
        };
        let number = {
            let mut work = self.work.lock().await;
            if work.plans_made == PLANS_MAX {
                return refused(format!(
                    "{PLANS_MAX} plans were made, which is the most; one of them can be run"
                ));
            }
            work.look();
            if work.left_s() <= 0.0 {
                return refused("nothing of the budget is left");
            }
            work.plans_made += 1;
            work.plans_made
        };
        let name = format!("plan-{number}.toml");
        let written = self.directory.replace(&name, file.as_bytes(), Owner::own(0o600));
        if let Err(error) = written {
            return refused(format!("the plan could not be kept: {error}"));
        }
        let path = self.directory.path().join(name);
        let arguments = ["run", &path.to_string_lossy(), "--dry-run", "--json"];
        let found = match self.charged(&arguments, ANSWERING).await {
            Ok(found) if found.code == Some(0) => found,
            Ok(found) => return refused(format!("{}{}", found.out, found.err)),
            Err(why) => return refused(why),
        };
        let mut found: Value = serde_json::from_str(&found.out).unwrap_or_default();
        let seconds = found["seconds"].as_f64().unwrap_or(f64::INFINITY);
        let mut work = self.work.lock().await;
        work.plans.insert(number, Planned { file: path, seconds });
        found["plan"] = number.into();
        found["budget_left_s"] = work.left_s().into();
        // One line per trial is more than anybody reads.
        found["trials"] = found["trials"].as_array().map_or(0, Vec::len).into();
        answer(found.to_string())
    }

    #[tool(
        description = "Run a plan: it goes on in the background, and `status` shows how far it is. One at a time, within the budget."
    )]
    async fn run(&self, Parameters(args): Parameters<RunArgs>) -> Answer {
        let mut work = self.work.lock().await;
        work.look();
        if let Some(running) = &work.running {
            return refused(format!("plan {} is running; `stop` ends it", running.plan));
        }
        if self.measuring.try_lock().is_err() || self.charging.try_lock().is_err() {
            return refused("a check is under way, which an experiment would disturb");
        }
        let Some(planned) = work.plans.get(&args.plan) else {
            return refused(format!("there is no plan {}; `plan` makes one", args.plan));
        };
        if planned.seconds > work.left_s() {
            return refused(format!(
                "the plan takes {:.0} s, and {:.0} s of the budget are left: fewer blocks or shorter trials fit",
                planned.seconds,
                work.left_s()
            ));
        }
        let path = planned.file.to_string_lossy().into_owned();
        // The run keeps to it by itself, should this process be gone.
        let budget = format!("budget.time=\"{}s\"", work.left_s().ceil());
        // Of a plan that ran before.
        let _ = self.directory.remove(log_of(args.plan));
        let begun = self.directory.create(log_of(args.plan), 0o600).and_then(|log| {
            let mut command = self
                .own(&["run", &path, "--set", &budget, "--json"])
                .map_err(std::io::Error::other)?;
            command.stdout(Stdio::null()).stderr(Stdio::from(log)).spawn()
        });
        match begun {
            Ok(process) => {
                work.running = Some(Running {
                    plan: args.plan,
                    begun: Instant::now(),
                    process,
                });
                drop(work);
                tokio::spawn(keep_watch(Arc::clone(&self.work)));
                answer(format!("plan {} is running", args.plan))
            }
            Err(error) => refused(format!("it could not be run: {error}")),
        }
    }

    #[tool(
        description = "Show how far a running experiment is, what is changed on this host now, and what is left of the budget.",
        annotations(read_only_hint = true)
    )]
    async fn status(&self) -> Answer {
        let (running, ended, left_s) = {
            let mut work = self.work.lock().await;
            work.look();
            let running = work.running.as_ref().map(|running| running.plan);
            (running, work.ended, work.left_s())
        };
        let shown = running.or(ended.map(|(plan, _)| plan));
        let log = shown.and_then(|plan| {
            let name = log_of(plan);
            let from = self.directory.size(&name).ok()?.saturating_sub(LOG_BYTES);
            self.directory.tail(&name, from, LOG_BYTES).ok()
        });
        let log = log.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let lines: Vec<&str> = log.iter().flat_map(|log| log.lines()).collect();
        let progress = &lines[lines.len().saturating_sub(LINES)..];
        let changed = match self.ask(&["status", "--json"], READING).await {
            Ok(found) => serde_json::from_str(&found.out).unwrap_or(Value::String(found.err)),
            Err(why) => Value::String(why),
        };
        answer(
            json!({
                "running": running, "ended": ended.map(|(plan, code)| json!({ "plan": plan, "exit_code": code })),
                "progress": progress, "budget_left_s": left_s, "changed": changed,
            })
            .to_string(),
        )
    }

    #[tool(
        description = "Stop the running experiment cleanly: it restores everything first. Finished trials are kept."
    )]
    async fn stop(&self) -> Answer {
        let mut work = self.work.lock().await;
        work.look();
        match work.stop() {
            false => refused("nothing is running"),
            true => answer("it was asked to end; `status` shows when it has"),
        }
    }

    #[tool(
        description = "Restore what killed experiments on the named sandboxes have changed, those of people too. What `pgdyno apply` has set stays."
    )]
    async fn restore(&self) -> Answer {
        let named: Vec<&str> = self.sandboxes().flat_map(|name| ["--sandbox", name]).collect();
        if named.is_empty() {
            return refused("none of the targets is a sandbox");
        }
        let arguments = [&["restore", "--interrupted"], &named[..]].concat();
        self.command(&arguments, RESTORING, |out| out).await
    }
}

impl Tools {
    /// Names of the sandboxes among the targets.
    fn sandboxes(&self) -> impl Iterator<Item = &str> {
        let targets = self.targets.iter();
        targets.filter_map(|target| target.strip_prefix(SANDBOX))
    }

    /// The name of a target for agents: no place and no user.
    fn name(&self, number: usize) -> String {
        match self.targets[number].starts_with(SANDBOX) {
            true => self.targets[number].clone(),
            false => format!("target-{}", number + 1),
        }
    }

    /// The target of a name.
    fn target(&self, name: &str) -> std::result::Result<&str, String> {
        let number = (0..self.targets.len()).find(|number| self.name(*number) == name);
        let known = || {
            (0..self.targets.len())
                .map(|number| self.name(number))
                .collect::<Vec<_>>()
                .join(", ")
        };
        number
            .map(|number| self.targets[number].as_str())
            .ok_or_else(|| format!("there is no target {name:?}; there are {}", known()))
    }

    /// A place among those that wait, until it is given up.
    fn place(&self) -> std::result::Result<SemaphorePermit<'_>, String> {
        let place = self.waiting.try_acquire();
        place.map_err(|_| format!("{WAITING_MAX} requests wait already; wait for their answers"))
    }

    async fn turn(&self) -> std::result::Result<OwnedSemaphorePermit, String> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        turn.map_err(|error| error.to_string())
    }

    /// Runs a command, when it is its turn.
    async fn ask(&self, arguments: &[&str], limit: Limit) -> std::result::Result<Output, String> {
        let place = self.place()?;
        let turn = self.turn().await?;
        drop(place);
        ask(self.own(arguments)?, limit, turn, self.gone.clone()).await
    }

    /// The same, whose time counts as the budget's, and which ends with that.
    async fn charged(&self, arguments: &[&str], limit: Duration) -> std::result::Result<Output, String> {
        let place = self.place()?;
        let _charging = self.charging.lock().await;
        let turn = self.turn().await?;
        drop(place);
        let left_s = {
            let mut work = self.work.lock().await;
            work.look();
            // It may have begun while this waited.
            if work.running.is_some() {
                return Err("an experiment is running, which this would disturb".to_owned());
            }
            work.left_s()
        };
        if left_s <= 0.0 {
            return Err("nothing of the budget is left".to_owned());
        }
        let limit = Limit::Ends(limit.min(Duration::from_secs_f64(left_s)));
        let begun = Instant::now();
        let found = ask(self.own(arguments)?, limit, turn, self.gone.clone()).await;
        self.work.lock().await.used_s += begun.elapsed().as_secs_f64();
        found
    }

    /// A command of this program with the sandboxes and the store of this one, which may have a
    /// password in its name.
    fn own(&self, arguments: &[&str]) -> std::result::Result<Command, String> {
        let mut command = command(arguments)?;
        command.env(RESTORES, self.sandboxes().collect::<Vec<_>>().join(","));
        if let Some(store) = &self.store {
            command.env("PGDYNO_STORE", store);
        }
        Ok(command)
    }

    async fn of_target(
        &self,
        name: &str,
        limit: Limit,
        arguments: impl FnOnce(&str) -> Vec<&str>,
        shown: impl FnOnce(String) -> String,
    ) -> Answer {
        match self.target(name) {
            Ok(target) => self.command(&arguments(target), limit, shown).await,
            Err(why) => refused(why),
        }
    }

    /// Runs a command, and shows what it prints.
    async fn command(
        &self,
        arguments: &[&str],
        limit: Limit,
        shown: impl FnOnce(String) -> String,
    ) -> Answer {
        shown_as(self.ask(arguments, limit).await, shown)
    }
}

/// What a command prints is the answer also where it has found something (exit codes 3 and 5).
fn shown_as(found: std::result::Result<Output, String>, shown: impl FnOnce(String) -> String) -> Answer {
    match found {
        Ok(found) if matches!(found.code, Some(0 | 3 | 5)) => match shown(found.out) {
            text if text.len() > ANSWER_BYTES_MAX => refused(format!(
                "the answer is longer than {ANSWER_BYTES_MAX} bytes: ask for less"
            )),
            text => answer(text),
        },
        Ok(found) => refused(format!("{}{}", found.out, found.err)),
        Err(why) => refused(why),
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("pgdyno", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "pgdyno measures the effect of settings of PostgreSQL and of its host. Read with facts, check, advise and knobs; plan an \
                 experiment on a sandbox, run it, look at its status, and read its verdict: a difference counts only where the verdict says \
                 better or worse. What is outside the sandbox, or can lose data, is for people: suggest the command to them.",
            )
    }
}

/// The file of what a run of a plan prints.
fn log_of(plan: usize) -> String {
    format!("plan-{plan}.log")
}

/// Returns once a signal has asked this program to end.
async fn asked_to_end(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(TICK).await;
    }
}
