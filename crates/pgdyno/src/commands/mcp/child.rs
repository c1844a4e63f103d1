//! Commands of this program as processes of their own, bounded in time and in what they print.

use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{sleep, timeout};

/// Time in which a command that is asked to end does so.
const ENDING: Duration = Duration::from_secs(10);
/// Longest output of a command that is read; of that an answer may have a part.
const OUTPUT_MAX: usize = 16 << 20;
/// Longest text of what went wrong.
const ERRORS_MAX: usize = 16 << 10;

/// What a command printed, and how it ended.
pub(super) struct Output {
    /// Exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// A command of this program, in a group of its own: the keyboard's Ctrl-C is for the one that
/// speaks with the agent.
pub(super) fn command(arguments: &[&str]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own file: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    Ok(command)
}

/// How long a command may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// Then it is asked to end, as it is when the agent goes.
    Ends(Duration),
    /// Then it is waited for no longer, and goes on: in the middle of it a server may be stopped.
    GoesOn(Duration),
}

/// Runs a command, which holds `turn` to its end. `gone` becomes true when the agent goes.
pub(super) async fn ask(
    mut command: Command,
    limit: Limit,
    turn: OwnedSemaphorePermit,
    gone: watch::Receiver<bool>,
) -> Result<Output, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(matches!(limit, Limit::Ends(_)));
    let child = command.spawn().map_err(failed)?;
    let (say, said) = oneshot::channel();
    // Whoever waits for the answer may go away; the command does not go with them.
    tokio::spawn(async move {
        let _turn = turn;
        let _ = say.send(hear(child, limit, gone).await);
    });
    let lost = |_| Err("the command was lost".to_owned());
    match limit {
        Limit::Ends(_) => said.await.unwrap_or_else(lost),
        Limit::GoesOn(limit) => match timeout(limit, said).await {
            Ok(said) => said.unwrap_or_else(lost),
            Err(_) => Err(format!(
                "it has not ended within {} s, and goes on; `status` shows what is still changed",
                limit.as_secs()
            )),
        },
    }
}

fn failed(error: io::Error) -> String {
    format!("the command could not be run: {error}")
}

/// What a command prints until it ends.
async fn hear(mut child: Child, limit: Limit, mut gone: watch::Receiver<bool>) -> Result<Output, String> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (out, err) = tokio::try_join!(start_of(out, OUTPUT_MAX), start_of(err, ERRORS_MAX))?;
        if out.len() > OUTPUT_MAX {
            return Ok(Err(format!("it has printed more than {OUTPUT_MAX} bytes")));
        }
        let status = child.wait().await?;
        Ok(Ok(Output {
            code: status.code(),
            out,
            err,
        }))
    };
    let Limit::Ends(limit) = limit else {
        return ended.await.map_err(failed)?;
    };
    let why = tokio::select! {
        ended = ended => return ended.map_err(failed)?,
        () = sleep(limit) => format!("it did not end within {} s", limit.as_secs()),
        _ = gone.wait_for(|gone| *gone) => "the agent has gone".to_owned(),
    };
    // What it has made is removed by itself; whatever still runs then is killed.
    signal(&child, Signal::TERM);
    let _ = timeout(ENDING, child.wait()).await;
    Err(why)
}

/// Sends a signal to a process that may have ended meanwhile.
pub(super) fn signal(process: &Child, signal: Signal) {
    let pid = process
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}

/// Reads to the end; what is more than a byte beyond `most` is dropped.
async fn start_of(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(most as u64 + 1).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    /// A command that answers, then takes a moment, and writes down how it ended.
    fn slow(ended: &Path) -> Command {
        let mut command = Command::new("sh");
        let script = "trap 'echo asked >\"$0\"; exit 1' TERM; echo begun >\"$0\"; sleep 0.3 & wait $!; echo whole >\"$0\"";
        command.args(["-c", script]).arg(ended);
        command
    }

    /// The answer to somebody who waits for no time, and how the command has ended.
    fn outcome(limit: Limit, goes: bool) -> (String, String) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ended");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let answer = runtime.block_on(async {
            let turns = Arc::new(Semaphore::new(1));
            let turn = Arc::clone(&turns).acquire_owned().await.expect("a turn");
            let (say_gone, gone) = watch::channel(false);
            let command = slow(&file);
            let asked = tokio::spawn(ask(command, limit, turn, gone));
            while !file.exists() {
                sleep(Duration::from_millis(5)).await;
            }
            let _ = say_gone.send(goes);
            let answer = asked.await.expect("an answer");
            // The turn comes back when the command has ended.
            let _ = turns.acquire().await.expect("a turn");
            answer
                .map(|found| format!("{:?}", found.code))
                .unwrap_or_else(|why| why)
        });
        let ended = std::fs::read_to_string(&file).expect("an end");
        (answer, ended.trim().to_owned())
    }

    #[test]
    fn command_that_restores_goes_on_whoever_waits_for_it() {
        let (answer, ended) = outcome(Limit::GoesOn(Duration::ZERO), true);
        assert!(answer.contains("and goes on"), "{answer}");
        assert_eq!(ended, "whole");
        let (answer, ended) = outcome(Limit::GoesOn(Duration::from_mins(1)), true);
        assert_eq!((&*answer, &*ended), ("Some(0)", "whole"));
    }

    #[test]
    fn any_other_is_asked_to_end() {
        let (answer, ended) = outcome(Limit::Ends(Duration::from_mins(1)), true);
        assert_eq!((&*answer, &*ended), ("the agent has gone", "asked"));
        let (answer, ended) = outcome(Limit::Ends(Duration::from_mins(1)), false);
        assert_eq!((&*answer, &*ended), ("Some(0)", "whole"));
    }
}
