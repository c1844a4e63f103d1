//! Loads that several hosts drive together: each has a segment of the load's threads, and all begin
//! at one instant.

mod afar;
mod meeting;
mod part;
mod reach;

pub(crate) use afar::AskedOfHosts;
pub(crate) use part::{HostUse, JOB, Job, length};
pub(crate) use reach::{SERVERS, connect};

use crate::cli::Command;
use crate::context::Context;
use crate::failure::Usage;
use crate::ssh_way::{hand_on_stop, hosts_of, ssh_to_several, way_of_several};
use afar::LoadHostsAfar;
use meeting::Meeting;
use part::Part;
use pgdyno_engine::{Second, Segment, join_results, join_seconds};
use pgdyno_lab::{Generated, Generators, LoadFrom};
use pgdyno_record::GeneratorHost;
use pgdyno_remote::{InventoryHost, LoadHostWays, SharedLoad, SshHost};
use pgdyno_server::{Conninfo, for_other_host};
use pgdyno_workload::LoadPlan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The host that this process runs on.
pub(crate) const LOCAL: &str = "local";
/// What the names of others begin with.
const OVER_SSH: &str = "ssh:";
/// How long something is waited for before who asks for it is answered that it is not there yet.
const SOON: Duration = Duration::from_secs(1);
/// A host with less than this share of idle CPU could not drive more: what it measured is its own
/// limit.
const IDLE_MIN: f64 = 0.05;
/// A host that lost more than this share of its CPU to others.
const STEAL_MAX: f64 = 0.02;
/// A host with an interface at more than this share of its speed.
const NETWORK_MAX: f64 = 0.9;
/// Threads that had a CPU for more than this share of their time could not do more.
const THREADS_CPU_MAX: f64 = 0.9;
/// A host that began so much later than the others has missed some of what they did, and so has one
/// that began its transactions so late.
const LATE_MAX: Duration = Duration::from_millis(50);

/// Where a segment is driven.
enum Place {
    Here,
    /// There, with the first arguments of ssh.
    Ssh(SshHost, Vec<String>),
}

impl Place {
    /// The place of a host by its name: one of the inventory's group, where there is one of that
    /// name, else where ssh leads.
    fn of(context: &Context, name: &str) -> Result<Place, String> {
        if name == LOCAL {
            return Ok(Place::Here);
        }
        let program = |options: &[String]| ssh_to_several(options).map_err(|error| error.to_string());
        match context.load_group.iter().find(|host| name_of(host) == name) {
            Some(InventoryHost {
                ssh: Some(host),
                options,
                ..
            }) => Ok(Place::Ssh(host.clone(), program(options)?)),
            _ => Ok(Place::Ssh(name.parse()?, program(&[])?)),
        }
    }
}

/// How a host of an inventory is named as a load host.
fn name_of(host: &InventoryHost) -> String {
    match &host.ssh {
        Some(_) => format!("{OVER_SSH}{}", host.name),
        None => LOCAL.to_owned(),
    }
}

/// Takes the hosts of the group that the command line names for those that drive its load.
pub(crate) fn take_group(context: &mut Context, command: &mut Command) -> crate::failure::Result<()> {
    let Some((file, group)) = command.load_group() else {
        return Ok(());
    };
    context.load_group = hosts_of(file, group)?.into();
    // Of a run elsewhere, local is the host of the run.
    if command.runs_elsewhere()
        && let Some(host) = context.load_group.iter().find(|host| host.ssh.is_none())
    {
        let why = "ansible_connection is local, and a run on another host has no way to this one";
        return Err(Usage(format!("{}: {why}", host.name)).into());
    }
    command.set_load_hosts(&names_of_group(context));
    Ok(())
}

/// Names of the hosts of the command line's group; none without one.
pub(crate) fn names_of_group(context: &Context) -> Vec<String> {
    context.load_group.iter().map(name_of).collect()
}

/// The hosts that this user's ssh leads to.
pub(crate) struct LoadHosts<'a> {
    context: &'a Context,
    /// The host on which it has root's rights.
    sudo_on: Option<&'a SshHost>,
}

impl<'a> LoadHosts<'a> {
    pub(crate) fn new(context: &'a Context) -> LoadHosts<'a> {
        LoadHosts {
            context,
            sudo_on: None,
        }
    }
}

/// What leads to load hosts: this user's ssh, or the coordinator that this process serves.
pub(crate) fn generators_of(context: &Context) -> Box<dyn Generators + '_> {
    match context.coordinator() {
        Some(coordinator) => Box::new(LoadHostsAfar { coordinator }),
        None => Box::new(LoadHosts::new(context)),
    }
}

/// The hosts that a user names, each with connection strings for the servers.
fn ways_of_hosts(from: &LoadFrom<'_>, ways: &[&Conninfo]) -> Result<LoadHostWays, String> {
    let is_here =
        |way: &&&Conninfo| way.is_by_socket() || way.address().is_some_and(|address| address.is_loopback());
    let is_afar = from.hosts.iter().any(|name| name != LOCAL);
    if let Some(way) = ways
        .iter()
        .find(is_here)
        .filter(|_| is_afar && from.connection.is_none())
    {
        return Err(format!(
            "{} is a server's address on its own host alone, and would be another server's on a load host: --load-connection \
             host=..., or connection in the file's [load], says how load hosts reach it",
            way.place()
        ));
    }
    let hosts = from.hosts.iter().map(|name| {
        let connection = from.connection.filter(|_| name != LOCAL);
        let servers = ways.iter().map(|way| for_other_host(way, connection));
        let servers = servers.collect::<Result<Vec<String>, _>>();
        Ok((name.clone(), servers.map_err(|error| error.to_string())?))
    });
    hosts.collect::<Result<_, _>>().map(LoadHostWays)
}

/// The load of a plan for the hosts that a user names.
fn shared(from: &LoadFrom<'_>, ways: &[&Conninfo], plan: &LoadPlan) -> Result<SharedLoad, String> {
    let mut plan = plan.clone();
    // The CPUs of one host are not those of another.
    plan.drive.cpus.clear();
    Ok(SharedLoad {
        hosts: ways_of_hosts(from, ways)?,
        is_pooled: ways.iter().any(|way| way.is_proxied()),
        plan,
    })
}

impl Generators for LoadHosts<'_> {
    fn check(&self, from: &LoadFrom<'_>, ways: &[&Conninfo], stop: &AtomicBool) -> Vec<String> {
        match ways_of_hosts(from, ways) {
            Ok(hosts) => self.objections(&hosts, stop),
            Err(why) => vec![why],
        }
    }

    fn drive(
        &self,
        from: &LoadFrom<'_>,
        ways: &[&Conninfo],
        plan: &LoadPlan,
        stop: &AtomicBool,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Generated, String> {
        self.drive_shared(&shared(from, ways, plan)?, stop, on_second)
    }
}

impl LoadHosts<'_> {
    fn has_sudo_on(&self, host: &SshHost) -> bool {
        self.sudo_on.is_some_and(|own| own == host)
    }

    fn drive_shared(
        &self,
        shared: &SharedLoad,
        stop: &AtomicBool,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Generated, String> {
        let mut jobs = Vec::new();
        let among = u32::try_from(shared.hosts.0.len()).unwrap_or(u32::MAX);
        let segments = Segment::divide(&shared.plan.drive, among);
        for ((name, servers), segment) in shared.hosts.0.iter().zip(segments) {
            let place = Place::of(self.context, name)?;
            let job = Job {
                plan: shared.plan.clone(),
                segment,
                servers: servers.clone(),
                is_pooled: shared.is_pooled,
            };
            jobs.push((name, place, job));
        }
        let names = jobs.iter().map(|(name, ..)| (*name).clone()).collect();
        let meeting = Meeting::new(names, length(&shared.plan.drive));
        let stops: Vec<Arc<AtomicBool>> = jobs.iter().map(|_| Arc::default()).collect();
        let (sender, receiver) = channel();
        let is_over = AtomicBool::new(false);
        let (ended, seconds) = thread::scope(|scope| {
            let mut handles = Vec::new();
            for (number, ((name, place, job), stop)) in (0..).zip(jobs.iter().zip(&stops)) {
                let part = Part {
                    context: self.context,
                    number,
                    name,
                    job,
                    meeting: &meeting,
                    stop,
                    seconds: sender.clone(),
                };
                handles.push(scope.spawn(move || {
                    let ended = match place {
                        Place::Here => part.here(),
                        Place::Ssh(host, program) => {
                            part.there(way_of_several(program, host, self.has_sudo_on(host)))
                        }
                    };
                    if let Err(why) = &ended {
                        part.meeting.fail(why);
                    }
                    part.meeting.end(part.name);
                    let _ = part.seconds.send((part.number, None));
                    ended
                }));
            }
            drop(sender);
            // One that fails ends all, and so does a request to stop.
            scope.spawn(|| {
                let is_asked = || stop.load(Ordering::Relaxed) || meeting.has_failed();
                hand_on_stop(&is_asked, stops.iter().map(|stop| &**stop), &is_over);
            });
            let seconds = join_seconds(
                &receiver,
                u32::try_from(jobs.len()).unwrap_or(u32::MAX),
                on_second,
            );
            let ended: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
            is_over.store(true, Ordering::Relaxed);
            (ended, seconds)
        });
        if let Some(why) = meeting.failure() {
            return Err(why);
        }
        let (mut loads, mut hosts, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for (ended, (name, ..)) in ended.into_iter().zip(&jobs) {
            match ended {
                Ok(Ok(done)) => {
                    warnings.extend(saturation(name, &done.host));
                    hosts.push(((*name).clone(), done.host));
                    loads.push(done.load);
                }
                Ok(Err(why)) => return Err(why),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let load = join_results(loads, seconds).ok_or("no host has a part of it")?;
        Ok(Generated {
            load,
            hosts,
            warnings,
        })
    }
}

/// How it shows that a host could not drive its part.
fn saturation(name: &str, host: &GeneratorHost) -> Vec<String> {
    let percent = |share: f64| share * 100.0;
    let late = Duration::from_nanos(host.began_late_ns);
    let lag = host.lag_p99_ns.map(Duration::from_nanos);
    [
        host.idle.filter(|idle| *idle < IDLE_MIN).map(|idle| {
            format!(
                "load host {name}: its CPUs were idle for {:.1} % of the time; it may be what limits the load",
                percent(idle)
            )
        }),
        host.steal.filter(|steal| *steal > STEAL_MAX).map(|steal| {
            format!(
                "load host {name}: its hypervisor gave {:.1} % of its CPU to others",
                percent(steal)
            )
        }),
        host.network.filter(|share| *share > NETWORK_MAX).map(|share| {
            format!(
                "load host {name}: an interface of its network was at {:.0} % of its speed; it may be what limits the load",
                percent(share)
            )
        }),
        (late > LATE_MAX).then(|| {
            format!("load host {name}: it may have begun up to {} ms later than the others", late.as_millis())
        }),
        host.threads_cpu.filter(|share| *share > THREADS_CPU_MAX).map(|share| {
            format!(
                "load host {name}: its threads were on a CPU for {:.0} % of the time; they may be what limits the load",
                percent(share)
            )
        }),
        lag.filter(|lag| *lag > LATE_MAX).map(|lag| {
            format!(
                "load host {name}: 1 % of its transactions began {} ms or more after they were due; it, or its number of clients, may be what \
                 limits the load",
                lag.as_millis()
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_that_could_not_drive_its_part_is_named_with_its_reason() {
        let able = GeneratorHost {
            idle: Some(IDLE_MIN),
            steal: Some(STEAL_MAX),
            network: Some(NETWORK_MAX),
            began_late_ns: 50_000_000,
            threads: Some(1),
            threads_cpu: Some(THREADS_CPU_MAX),
            lag_p99_ns: Some(50_000_000),
        };
        let check = |host: GeneratorHost, expected: &[&str]| {
            let found = saturation("ssh:gen1", &host);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    found.starts_with("load host ssh:gen1: ") && found.contains(expected),
                    "{found}"
                );
            }
        };
        check(able, &[]);
        check(GeneratorHost::default(), &[]);
        let busy = GeneratorHost {
            idle: Some(0.049),
            ..able
        };
        check(busy, &["idle for 4.9 %"]);
        let robbed = GeneratorHost {
            steal: Some(0.03),
            ..busy
        };
        check(robbed, &["idle", "gave 3.0 %"]);
        let full = GeneratorHost {
            network: Some(0.95),
            ..able
        };
        check(full, &["at 95 % of its speed"]);
        let late = GeneratorHost {
            began_late_ns: 51_000_000,
            ..able
        };
        check(late, &["51 ms later"]);
        let full = GeneratorHost {
            threads_cpu: Some(0.97),
            ..able
        };
        check(full, &["on a CPU for 97 % of the time"]);
        let behind = GeneratorHost {
            lag_p99_ns: Some(80_000_000),
            ..able
        };
        check(behind, &["began 80 ms or more after"]);
    }
}
