//! Commands of this program as processes of their own, bounded in time and in what they print.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// Time in which a command that is asked to end does so.
const ENDING: Duration = Duration::from_secs(10);
/// Longest output of a command that is handed on.
const OUTPUT_MAX: usize = 512 << 10;
/// Longest text of what went wrong.
const ERRORS_MAX: usize = 16 << 10;

/// What a command printed, and how it ended.
pub(super) struct Output {
    /// Exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// A command of this program, in a group of its own: the keyboard's Ctrl-C is for the one that speaks with the agent.
pub(super) fn command(arguments: &[&str]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own file: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    Ok(command)
}

/// Runs a command to its end, which it is given if it takes longer than `limit`.
pub(super) async fn ask(arguments: &[&str], limit: Duration) -> Result<Output, String> {
    let failed = |error: std::io::Error| format!("the command could not be run: {error}");
    let mut command = command(arguments)?;
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(failed)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (out, err) = tokio::try_join!(start_of(out, OUTPUT_MAX), start_of(err, ERRORS_MAX))?;
        if out.len() > OUTPUT_MAX {
            return Ok(Err(format!(
                "the answer is longer than {OUTPUT_MAX} bytes: ask for less"
            )));
        }
        let status = child.wait().await?;
        Ok(Ok(Output {
            code: status.code(),
            out,
            err,
        }))
    };
    match tokio::time::timeout(limit, ended).await {
        Ok(ended) => ended.map_err(failed)?,
        Err(_) => {
            // What it has made is removed by itself; whatever still runs then is killed.
            signal(&child, Signal::TERM);
            let _ = tokio::time::timeout(ENDING, child.wait()).await;
            Err(format!("it did not end within {} s", limit.as_secs()))
        }
    }
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
async fn start_of(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(most as u64 + 1).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
