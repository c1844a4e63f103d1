//! On which CPUs a sandbox's server runs.

use super::{Sandbox, SandboxError, State};
use pgdyno_host::{LocalHost, children};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

impl Sandbox {
    /// The CPUs that its server may run on; `None` if it does not run.
    pub fn cpus(&self) -> Option<Vec<usize>> {
        let State::Running(postmaster) = self.state() else {
            return None;
        };
        let set = sched_getaffinity(Pid::from_raw(postmaster.cast_signed())).ok()?;
        Some((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
    }

    /// Binds the running server to CPUs: its postmaster, and what it has started and will start. It
    /// holds until it is bound again or restarted. A server that does not run is left alone.
    pub fn bind_to_cpus(&self, cpus: &[usize]) -> Result<(), SandboxError> {
        let State::Running(postmaster) = self.state() else {
            return Ok(());
        };
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu);
        }
        let bind = |pid: u32| match Pid::from_raw(pid.cast_signed()) {
            Some(pid) => match sched_setaffinity(Some(pid), &set) {
                // Gone meanwhile.
                Err(Errno::SRCH) | Ok(()) => Ok(()),
                Err(error) => Err(SandboxError::Cpus(error.into())),
            },
            None => Ok(()),
        };
        // First the postmaster: whatever it starts from here on runs there, too.
        bind(postmaster)?;
        children(&LocalHost::new(), postmaster)
            .into_iter()
            .try_for_each(bind)
    }
}
