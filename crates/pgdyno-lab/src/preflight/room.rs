//! Room for what an experiment makes: data, WAL, copies of files, and servers of its own, each on
//! the file system where it goes.

use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::file::{Place, Reset};
use crate::foreign::ProgramData;
use crate::measure::endpoint;
use crate::plan::{Plan, ServerVariant, Treatment, data_of};
use pgdyno_host::{Directory, HostAccess, Space, size_bytes, tree_bytes};
use pgdyno_sandbox::FileSystemKind;
use pgdyno_server::{Server, ServerError};
use pgdyno_workload::{DataPlan, tables_there};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A new server's files, WAL included, as initdb makes them.
const SERVER_BYTES: u64 = 64 << 20;

/// Something that is made, and where.
pub(super) struct Need {
    pub(super) what: &'static str,
    pub(super) place: PathBuf,
    pub(super) bytes: u64,
}

impl Preflight<'_> {
    /// What a sandbox's file systems have to hold.
    pub(super) fn sandbox_needs(
        &self,
        plan: &Plan,
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<Vec<Need>, ServerError> {
        let Some(data) = self.target.data.clone() else {
            return Ok(Vec::new());
        };
        let here = self.here(plan);
        let keys: BTreeSet<_> = here.iter().filter_map(|treatment| data_of(treatment)).collect();
        let has = |reset: Reset| here.iter().any(|t| t.data.reset == Some(reset));
        let all: u64 = keys.iter().map(|key| key.plan().bytes()).sum();
        let mut there = 0;
        for key in &keys {
            there += self.bytes_there(server, plan.database_of(key).as_deref(), &key.plan())?;
        }
        let times = if has(Reset::Template) { 2 } else { 1 };
        let mut needs = vec![Need {
            what: "data",
            place: data.clone(),
            bytes: (all * times).saturating_sub(there) * (1 + self.standbys()),
        }];
        if has(Reset::Copy) {
            let kept = tree_bytes(&data) + all.saturating_sub(there);
            needs.push(Need {
                what: "a copy of the files",
                place: self.scratch.to_owned(),
                bytes: kept,
            });
        }
        let of_programs = here.iter().filter_map(|treatment| ProgramData::of(treatment));
        let of_programs: BTreeSet<_> = of_programs.map(|data| data.database()).collect();
        let unproven = of_programs
            .iter()
            .map(|database| format!("room for the data of {database}, which a program makes"));
        found.unproven.extend(unproven);
        let most = needs[0].bytes;
        needs.extend(self.wal_need(server, most)?);
        needs.extend(of_own_servers(plan, (&self.examined, &data), found));
        Ok(needs)
    }

    /// The WAL that the server keeps, beyond what it has now, but no more than `most`.
    pub(super) fn wal_need(&self, server: &mut Server, most: u64) -> Result<Option<Need>, ServerError> {
        let Some(data) = &self.target.data else {
            return Ok(None);
        };
        let sql = "SELECT setting::bigint << 20 FROM pg_settings WHERE name = 'max_wal_size'";
        let kept = server.value("asking for the size of the WAL", sql)?;
        let kept: u64 = kept.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let wal = data.join("pg_wal");
        let place = Directory::open(&wal)
            .and_then(|wal| wal.resolved())
            .unwrap_or(wal);
        Ok(Some(Need {
            what: "WAL",
            bytes: kept.saturating_sub(tree_bytes(&place)).min(most),
            place,
        }))
    }

    /// Bytes of this data that the server has already; what is made again takes their place.
    fn bytes_there(
        &self,
        server: &mut Server,
        database: Option<&str>,
        data: &DataPlan,
    ) -> Result<u64, ServerError> {
        let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
        let sql = match database {
            Some(name) => format!(
                "SELECT sum(pg_database_size(oid)) FROM pg_database WHERE datname IN ({0}, {0} || '_template')",
                literal(name)
            ),
            None => {
                let tables = tables_there(&endpoint(&self.target.conninfo), data.dataset).unwrap_or_default();
                let tables: Vec<String> = tables.iter().map(|name| literal(name)).collect();
                format!(
                    "SELECT sum(pg_total_relation_size(relid)) FROM unnest(ARRAY[{}]::text[]) AS name, \
                     LATERAL (SELECT to_regclass(quote_ident(name)) UNION SELECT p.relid FROM pg_partition_tree(quote_ident(name)) p) \
                     AS part (relid)",
                    tables.join(", ")
                )
            }
        };
        let bytes = server.value("asking for the size of the data", &sql)?;
        Ok(bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0))
    }
}

/// What servers of the experiment's own take beside the data of the one that is examined, in
/// `beside`; that one is there already.
pub(super) fn of_own_servers(
    plan: &Plan,
    (examined, beside): (&ServerVariant, &Path),
    found: &mut PreflightReport,
) -> Vec<Need> {
    // A server has all of its data sets at once.
    let mut servers: BTreeMap<ServerVariant, BTreeMap<_, u64>> = BTreeMap::new();
    for number in plan.tested() {
        let treatment = &plan.treatments[number];
        let bytes = treatment.data_bytes().unwrap_or(0);
        for variant in treatment
            .variants()
            .into_iter()
            .filter(|variant| !variant.is_target() && variant != examined)
        {
            servers
                .entry(variant)
                .or_default()
                .insert(data_of(treatment), bytes);
        }
    }
    let mut needs = Vec::new();
    for (variant, data) in servers {
        let need = |place: &Path, bytes: u64| Need {
            what: "servers of the experiment's own",
            place: place.to_owned(),
            bytes,
        };
        for (on, bytes) in [
            (&variant.data_on, SERVER_BYTES + data.values().sum::<u64>()),
            (&variant.wal_on, 0),
            (&variant.temp_on, 0),
        ] {
            match on.as_deref().map(Place::named) {
                Some(Ok(Place::Directory(directory))) => needs.push(need(&directory, bytes)),
                Some(Ok(Place::Made(made))) if made.kind == FileSystemKind::Tmpfs => {
                    let what = format!("memory for a file system of {} MB in it", made.size_bytes >> 20);
                    found.unproven.push(what);
                }
                Some(Ok(Place::Made(made))) => needs.push(need(beside, made.size_bytes)),
                _ => needs.push(need(beside, bytes)),
            }
        }
    }
    needs
}

/// Whether all fits where it goes, and leaves what the file's guard needs on the file system of
/// `data`.
pub(super) fn check_room(
    host: &dyn HostAccess,
    plan: &Plan,
    data: &Path,
    needs: &[Need],
    found: &mut PreflightReport,
) {
    let mut systems: Vec<(Space, Vec<&Need>)> = Vec::new();
    let space_at = |place: &Path| host.space_of(&there(place).to_string_lossy())?.ok();
    for need in needs {
        let Some(space) = space_at(&need.place) else {
            let place = need.place.display();
            found.unproven.push(format!("free space on {place}: not known"));
            continue;
        };
        match systems.iter_mut().find(|(other, _)| is_same(other, &space)) {
            Some((_, needs)) => needs.push(need),
            None => systems.push((space, vec![need])),
        }
    }
    let guard = plan.file.guard.disk_free_min.as_deref();
    let least = guard.and_then(|least| size_bytes(least).ok());
    let of_data = space_at(data);
    for (space, needs) in systems {
        let place = there(&needs[0].place).display().to_string();
        let (needed, free) = (needs.iter().map(|need| need.bytes).sum::<u64>(), space.free_bytes);
        if needed > free {
            let each: Vec<String> = needs
                .iter()
                .filter(|need| need.bytes > 0)
                .map(|need| format!("{} {} MB", need.what, need.bytes >> 20))
                .collect();
            let what = format!(
                "this experiment needs about {} MB on {place} ({}), and {} MB are free; use a smaller scale or another place",
                needed >> 20,
                each.join(", "),
                free >> 20
            );
            let scale = plan.file.data.scale.unwrap_or(1);
            // A tenth stays free.
            let fits = u128::from(scale) * u128::from(free) * 9 / (u128::from(needed.max(1)) * 10);
            let mends = [format!("--set data.scale={}", fits.max(1))];
            found.add(Finding::new(FindingKind::Other, what, &mends));
        }
        if let Some(least) =
            least.filter(|_| of_data.as_ref().is_some_and(|of_data| is_same(of_data, &space)))
            && free.saturating_sub(needed) < least
        {
            let what = format!(
                "[guard] disk_free_min: {} MB are free on {place}, of which the experiment takes {} MB, and the bound is {} MB",
                free >> 20,
                needed >> 20,
                least >> 20
            );
            let mends = [format!(
                "--set guard.disk_free_min={}MB",
                (free.saturating_sub(needed) / 2) >> 20
            )];
            found.add(Finding::new(FindingKind::Other, what, &mends));
        }
    }
}

/// The nearest directory that is there.
fn there(path: &Path) -> &Path {
    path.ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"))
}

/// Some file systems in memory have no number.
fn is_same(one: &Space, other: &Space) -> bool {
    (one.id, one.bytes) == (other.id, other.bytes)
}

impl Preflight<'_> {
    /// The tested treatments whose server is examined.
    pub(super) fn here<'p>(&self, plan: &'p Plan) -> Vec<&'p Treatment> {
        let tested = plan.tested().into_iter().map(|i| &plan.treatments[i]);
        tested
            .filter(|treatment| treatment.variant() == self.examined)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ExperimentFile;
    use crate::plan::ProfileSettings;
    use pgdyno_knobs::Catalogue;

    fn needs(place: &str) -> Vec<u64> {
        let text = format!(
            "name='x'\nquestion='?'\ndesign='full-factorial'\nblocks=3\n[load]\nworkload='tpcb'\nclients=1\nwarmup_s=0\n\
             measure_s=1\n[data]\nscale=1\n[[factor]]\nname='place'\nof='server.data_on'\nvalues=['disk', '{place}']\n[[factor]]\nname='size'\n\
             of='data.scale'\nvalues=[1, 2, 3]\n"
        );
        let file = ExperimentFile::parse(&text, Path::new("x"), &Catalogue::shipped().unwrap()).unwrap();
        let plan = Plan::unasked(file, &ProfileSettings::new(), 7).unwrap();
        let examined = (&ServerVariant::default(), Path::new("/x"));
        let needs = of_own_servers(&plan, examined, &mut PreflightReport::default());
        needs
            .iter()
            .map(|need| need.bytes)
            .filter(|bytes| *bytes > 0)
            .collect()
    }

    /// It is there already: what it needs is asked of it.
    #[test]
    fn examined_server_is_none_that_is_made() {
        let text = "name='x'\nquestion='?'\ndesign='a-a'\nblocks=3\n[load]\nworkload='tpcb'\nclients=1\nwarmup_s=0\nmeasure_s=1\n[data]\nscale=1\n\
                    [server]\ndata_on='ext4:4G'\n";
        let file = ExperimentFile::parse(text, Path::new("x"), &Catalogue::shipped().unwrap()).unwrap();
        let plan = Plan::unasked(file, &ProfileSettings::new(), 7).unwrap();
        let examined = plan.first_variant();
        assert!(!examined.is_target());
        let needs = of_own_servers(
            &plan,
            (&examined, Path::new("/x")),
            &mut PreflightReport::default(),
        );
        assert!(needs.is_empty());
    }

    #[test]
    fn server_of_several_data_sets_has_one_file_system() {
        assert_eq!(needs("ext4:4G"), [4 << 30]);
    }

    #[test]
    fn server_of_several_data_sets_is_made_once_and_holds_all_of_them() {
        let of_scale = |scale: u32| DataPlan::new(pgdyno_workload::Dataset::Pgbench, scale).bytes();
        assert_eq!(
            needs("/srv/other"),
            [SERVER_BYTES + of_scale(1) + of_scale(2) + of_scale(3)]
        );
    }
}
