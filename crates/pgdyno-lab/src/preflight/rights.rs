//! Rights that a trial needs of the role beside those of its settings, and sessions that it may
//! have.

use super::wants::OWN_SESSIONS;
use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::file::Prewarm;
use crate::plan::Plan;
use crate::real::ASIDE;
use pgdyno_knobs::DROP_CACHES;
use pgdyno_server::{OF_OTHERS, Server, ServerError};

/// The first version in which a role other than a superuser may ask for a checkpoint.
const CHECKPOINT_SINCE: u32 = 15;

/// What the connected role may do.
struct Role {
    /// As SQL has it.
    name: String,
    is_superuser: bool,
    may_checkpoint: bool,
    /// Sessions of the role, and of all roles in the database; `None` where there is no limit.
    sessions: Option<u32>,
    sessions_of_database: Option<u32>,
    /// Sessions of others that they have now.
    held: u32,
    held_of_database: u32,
    database: String,
}

impl Role {
    fn ask(server: &mut Server) -> Result<Role, ServerError> {
        let may_checkpoint = match server.version().major >= CHECKPOINT_SINCE {
            true => "pg_has_role('pg_checkpoint', 'USAGE')",
            false => "rolsuper",
        };
        let sql = format!(
            "SELECT quote_ident(rolname), rolsuper, {may_checkpoint}, rolconnlimit, datconnlimit, \
             (SELECT count(*) FROM pg_stat_activity a WHERE a.usesysid = r.oid AND {OF_OTHERS}), \
             (SELECT count(*) FROM pg_stat_activity a WHERE a.datid = d.oid AND {OF_OTHERS}), quote_ident(datname) \
             FROM pg_roles r, pg_database d WHERE rolname = current_user AND datname = current_database()"
        );
        let rows = server.rows("asking for the role's rights", &sql)?;
        let mut fields = rows.into_iter().next().unwrap_or_default().into_iter();
        let mut next = || fields.next().flatten().unwrap_or_default();
        Ok(Role {
            name: next(),
            is_superuser: next() == "t",
            may_checkpoint: next() == "t",
            // -1 is no limit.
            sessions: next().parse().ok(),
            sessions_of_database: next().parse().ok(),
            held: next().parse().unwrap_or(0),
            held_of_database: next().parse().unwrap_or(0),
            database: next(),
        })
    }
}

impl Preflight<'_> {
    pub(super) fn rights(
        &self,
        plan: &Plan,
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        let role = Role::ask(server)?;
        if plan.file.target.checkpoints() && !role.may_checkpoint {
            let mend = match server.version().major >= CHECKPOINT_SINCE {
                true => format!("GRANT pg_checkpoint TO {}", role.name),
                false => format!("ALTER ROLE {} SUPERUSER", role.name),
            };
            let what = format!(
                "the role {} may not run CHECKPOINT, which precedes each load",
                role.name
            );
            found.add(Finding::new(FindingKind::Right, what, &[mend]));
        }
        let unreadable = match plan.tested().iter().any(|&i| reads_all(plan, i)) {
            true => unreadable(server)?,
            false => Vec::new(),
        };
        let undropped = self.host.writable(DROP_CACHES).err();
        for number in plan.tested() {
            let treatment = &plan.treatments[number];
            let of_it = |finding: Finding| Finding {
                treatments: vec![treatment.name.clone()],
                ..finding
            };
            let wanted = treatment.load.clients.unwrap_or(1) + OWN_SESSIONS;
            let limits = [
                (role.sessions, role.held, "role", &role.name, "ROLE"),
                (
                    role.sessions_of_database,
                    role.held_of_database,
                    "database",
                    &role.database,
                    "DATABASE",
                ),
            ];
            for (limit, held, of, name, keyword) in limits
                .iter()
                .filter(|_| !role.is_superuser && !treatment.has_pooler())
            {
                let held = if self.target.conninfo.is_proxied() {
                    0
                } else {
                    *held
                };
                if let Some(limit) = limit.filter(|limit| wanted + held > *limit) {
                    let what = format!(
                        "the {of} {name} may have {limit} sessions; a trial needs {wanted}, and others have {held} now"
                    );
                    let mend = format!("ALTER {keyword} {name} CONNECTION LIMIT -1");
                    found.add(of_it(Finding::new(FindingKind::Right, what, &[mend])));
                }
            }
            if treatment.load.checkpoint_cycles.is_some() {
                let asked = Server::connect(&self.target.conninfo.with_database(ASIDE));
                if let Err(error) = asked {
                    let what = format!("checkpoints are counted from the database {ASIDE}: {error}");
                    let mend = format!("GRANT CONNECT ON DATABASE {ASIDE} TO {}", role.name);
                    found.add(of_it(Finding::new(FindingKind::Right, what, &[mend])));
                }
            }
            if treatment.data.prewarm == Some(Prewarm::Cold)
                && let Some(why) = &undropped
            {
                let what = format!("the kernel's page cache cannot be dropped: {why}");
                let mend = "run pgdyno as root".to_owned();
                found.add(of_it(Finding::new(FindingKind::Right, what, &[mend])));
            }
            if reads_all(plan, number) && !unreadable.is_empty() {
                let what = format!("the role {} may not read all tables into caches", role.name);
                found.add(of_it(Finding::new(FindingKind::Right, what, &unreadable)));
            }
        }
        Ok(())
    }
}

fn reads_all(plan: &Plan, number: usize) -> bool {
    matches!(
        plan.treatments[number].data.prewarm,
        Some(Prewarm::Read | Prewarm::PgPrewarm)
    )
}

/// The grants that the role lacks to read the tables that are read into caches.
fn unreadable(server: &mut Server) -> Result<Vec<String>, ServerError> {
    let sql = "SELECT format('GRANT SELECT ON TABLE %I.%I TO %s', n.nspname, c.relname, quote_ident(current_user)) \
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' \
               AND c.relkind = 'r' AND NOT has_table_privilege(c.oid, 'SELECT') ORDER BY 1";
    let rows = server.rows("asking which tables may be read", sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| row.into_iter().next()?)
        .collect())
}
