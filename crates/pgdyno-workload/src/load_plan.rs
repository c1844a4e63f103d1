//! What to drive and for how long.

use crate::script::Scripts;
use crate::workload::{Control, Workload};
use pgdyno_engine::Protocol;
use pgdyno_engine::{Arrivals, Engine, Plan};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The source of a load's transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A built-in workload.
    Workload(Workload),
    /// Scripts in the language of pgbench.
    Scripts(Scripts),
}

impl From<Workload> for Work {
    fn from(workload: Workload) -> Work {
        Work::Workload(workload)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Workload(workload) => f.write_str(workload.name()),
            Work::Scripts(scripts) => {
                let names = scripts.scripts.iter().map(|script| script.name.as_str());
                f.write_str(&names.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A load: its transactions, and how they are driven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Workload or scripts that transactions are made by.
    pub work: Work,
    /// Protocol of queries.
    pub protocol: Protocol,
    /// How statements are grouped to transactions; scripts do that themselves.
    pub control: Control,
    /// Whether tpcc's clients stay at their warehouse, type and think (clause 5.2.5).
    pub paced: bool,
    /// Options of the clients' sessions, as libpq's `options` has them; empty without.
    pub session_options: String,
    /// Clients, times and arrivals of the load.
    pub drive: Plan,
    /// Whether each host that drives a part of it chooses its threads by its own CPUs; the plan has
    /// one for each host then.
    pub threads_by_host: bool,
}

impl LoadPlan {
    /// A closed loop of prepared statements, as it is usual for the workload.
    pub fn closed(workload: Workload, clients: u32, threads: u32) -> LoadPlan {
        LoadPlan {
            work: workload.into(),
            protocol: Protocol::Prepared,
            control: workload.usual_control(),
            paced: false,
            session_options: String::new(),
            drive: Plan::closed(clients, threads),
            threads_by_host: false,
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    ///
    /// What contradicts what.
    pub fn check(&self) -> Result<(), String> {
        self.drive.check()?;
        match &self.work {
            Work::Workload(workload) if workload.is_empty() && self.control == Control::None => {
                return Err(format!(
                    "the workload {workload} has nothing to do without a transaction; use --transaction explicit or pipelined (transaction in an experiment's [load])"
                ));
            }
            Work::Workload(Workload::Tpcc) if self.control == Control::None => {
                return Err(
                    "the transactions of tpcc have many statements; use --transaction explicit or pipelined (transaction in an experiment's [load])"
                        .into(),
                );
            }
            Work::Workload(workload) if workload.is_tpcc() && self.protocol == Protocol::Simple => {
                return Err(
                    "tpcc sends its values apart from its statements; use --protocol extended or prepared (protocol in an experiment's [load])"
                        .into(),
                );
            }
            Work::Scripts(scripts) if scripts.scripts.is_empty() => return Err("there is no script".into()),
            Work::Scripts(scripts) if scripts.scripts.iter().all(|script| script.weight == 0) => {
                return Err("at least one script must have a weight above 0".into());
            }
            _ => {}
        }
        let is_tpcc = matches!(self.work, Work::Workload(workload) if workload.is_tpcc());
        if self.paced && !(is_tpcc && matches!(self.drive.arrivals, Arrivals::Closed { .. })) {
            return Err("keying and think times are tpcc's, in a closed loop".into());
        }
        if self.paced && self.drive.engine == Engine::Blocking && !self.drive.connect {
            return Err("the blocking engine waits for replies alone; leave --engine at auto".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_is_refused_for_its_numbers_and_for_its_work() {
        let closed = |workload| LoadPlan::closed(workload, 1, 1);
        let check = |plan: LoadPlan, expected: &str| {
            let error = plan.check().err().unwrap_or_default();
            assert!(error.starts_with(expected), "{plan:?}: {error}");
            assert_eq!(error.is_empty(), expected.is_empty(), "{plan:?}: {error}");
        };
        check(closed(Workload::Simple), "");
        let plan = LoadPlan::closed(Workload::Simple, 0, 1);
        check(plan, "clients must be 1 to");
        let plan = LoadPlan {
            control: Control::None,
            ..closed(Workload::Empty)
        };
        check(plan, "the workload empty has nothing to do");
        let plan = LoadPlan {
            work: Work::Scripts(Scripts::default()),
            ..closed(Workload::Simple)
        };
        check(plan, "there is no script");
        let paced = |workload| LoadPlan {
            paced: true,
            ..closed(workload)
        };
        check(paced(Workload::Tpcc), "");
        check(paced(Workload::Simple), "keying and think times are tpcc's");
        let mut plan = paced(Workload::Tpcc);
        plan.drive.engine = Engine::Blocking;
        check(plan, "the blocking engine waits for replies alone");
    }
}
