//! Load hosts before any load: whether ssh leads to them, and they to the servers.

use super::meeting::WHY_CHARACTERS_MAX;
use super::part::{Remarks, request};
use super::{LoadHosts, Place};
use crate::context::variable;
use crate::failure::with_hint;
use crate::output::cut;
use crate::ssh_way::{hand_on_stop, run_on, way_of_several};
use pgdyno_remote::{Listener, LoadHostWays, Output, SENT_WITHIN, SshHost};
use pgdyno_server::{Found, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the file with the servers' connection strings, which is carried to a host and is on no
/// disk.
pub(crate) const SERVERS: &str = "servers.json";

/// The longest that a host may take to be reached, and to reach the servers, beside the time that
/// its program takes to be sent.
const WITHIN: Duration = Duration::from_secs(120);

/// Hears what a host prints, and whether its program is sent first.
struct Heard<'a> {
    remarks: Remarks,
    sends_program: &'a AtomicBool,
}

impl Listener for Heard<'_> {
    fn sends_program(&mut self) {
        self.sends_program.store(true, Ordering::Relaxed);
    }

    fn printed(&mut self, output: Output<'_>) {
        self.remarks.printed(output);
    }
}

/// Connects to each server from this host.
pub(crate) fn connect(servers: &[String]) -> Result<(), String> {
    servers.iter().try_for_each(|text| {
        let found = Found::find(text, &variable).map_err(with_hint)?;
        Server::connect(&found.conninfo).map(drop).map_err(with_hint)
    })
}

impl LoadHosts<'_> {
    /// What keeps hosts from driving a load, each with its host.
    pub(super) fn objections(&self, hosts: &LoadHostWays, stop: &AtomicBool) -> Vec<String> {
        let begun = Instant::now();
        let sends_program = AtomicBool::new(false);
        let within = || match sends_program.load(Ordering::Relaxed) {
            true => WITHIN + SENT_WITHIN,
            false => WITHIN,
        };
        let is_late = || begun.elapsed() > within();
        let is_over = AtomicBool::new(false);
        let stops: Vec<AtomicBool> = hosts.0.iter().map(|_| AtomicBool::new(false)).collect();
        thread::scope(|scope| {
            let each = hosts.0.iter().zip(&stops);
            let asked: Vec<_> = each
                .map(|((name, servers), stop)| {
                    let (sends_program, within) = (&sends_program, &within);
                    let ask = move || {
                        let found = match Place::of(self.context, name)? {
                            Place::Here => connect(servers),
                            Place::Ssh(host, program) => {
                                self.connected_there(&host, &program, (servers, sends_program), stop)
                            }
                        };
                        // What ended it then is that it was asked to end.
                        let late = || format!("no answer within {} s", within().as_secs());
                        found.map_err(|why| if begun.elapsed() > within() { late() } else { why })
                    };
                    (name, scope.spawn(ask))
                })
                .collect();
            scope.spawn(|| {
                let is_asked = || stop.load(Ordering::Relaxed) || is_late();
                hand_on_stop(&is_asked, stops.iter(), &is_over);
            });
            let ended: Vec<_> = asked
                .into_iter()
                .map(|(name, asked)| (name, asked.join()))
                .collect();
            is_over.store(true, Ordering::Relaxed);
            let wrong = ended.into_iter().filter_map(|(name, ended)| {
                let why = ended
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    .err()?;
                Some(format!("load host {name}: {}", cut(&why, WHY_CHARACTERS_MAX)))
            });
            wrong.collect()
        })
    }

    fn connected_there(
        &self,
        host: &SshHost,
        program: &[String],
        (servers, sends_program): (&[String], &AtomicBool),
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let servers = serde_json::to_string(servers).map_err(|error| error.to_string())?;
        let request = request(SERVERS, servers);
        let mut heard = Heard {
            remarks: Remarks::default(),
            sends_program,
        };
        let way = way_of_several(program, host, self.has_sudo_on(host));
        let code = run_on(self.context, way, &request, &mut heard, stop).map_err(with_hint)?;
        match code {
            0 => Ok(()),
            _ => Err(heard.remarks.text()),
        }
    }
}
