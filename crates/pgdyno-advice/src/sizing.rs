//! Sizes: what memory, pools and WAL a server needs, worked out term by term. Pure functions over
//! numbers; which facts the numbers are is in catalog/advice/sizing.toml. Advice and profiles take
//! the same facts `sizing.NAME`. What changes from one minute to the next (free memory, sessions,
//! free space) decides no size by itself.

use crate::even::{even, even_down, power_above, power_down};
use crate::expression::{Expression, size_text as size};
use crate::known::{Known, number_of};
use pgdyno_host::{Fact, numbers_of_list};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The first word of the facts that sizes become.
const ROOM: &str = "sizing";
const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * KB;
const GB: f64 = 1024.0 * MB;
/// Sorts and hashes that a session has at a time in the worst case. A plan may have more; few have.
const NODES: f64 = 2.0;
/// Beside what autovacuum may take, as many sessions run maintenance (an index build) in the worst
/// case.
const MAINTENANCE_SESSIONS: f64 = 1.0;
/// What of the memory a server may plan for: the kernel, other programs and the page cache need the
/// rest.
const PLANNED: f64 = 0.9;
/// Pages in a pool beyond those needed, as `vm.nr_hugepages = "auto"` of an experiment takes them.
const POOL_SPARE: f64 = 1.02;
/// Shared memory that is not buffers, as a part of a pool: descriptors, locks, WAL buffers.
const BESIDE_BUFFERS: f64 = 0.03;
/// Numbers of sessions are advised in such steps.
const SESSIONS_STEP: f64 = 10.0;
/// WAL between checkpoints: the most before its rate is known, what is advised before the memory is
/// known too, and the most at all.
const WAL_USUAL_MAX: f64 = 16.0 * GB;
const WAL_UNKNOWN: f64 = 4.0 * GB;
const WAL_MAX: f64 = 64.0 * GB;
/// An entry of a page table (x86-64, arm64 and s390x alike).
const TABLE_ENTRY_BYTES: f64 = 8.0;

/// A formula with its terms, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Title of the line: what is sized.
    pub title: String,
    /// Terms: a text, and bytes (or a plain number, where `is_bytes` of the line is false).
    pub terms: Vec<Term>,
    /// Result of the formula, in bytes or as a plain number.
    pub total: f64,
    /// Whether the total is bytes.
    pub is_bytes: bool,
    /// Bound that the total is compared with, or what follows from it.
    pub note: Option<String>,
    /// Study or manual that the formula is from.
    pub source: &'static str,
}

/// A term of a formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// Description of how the term is worked out.
    pub text: String,
    /// Value in bytes, or a plain number.
    pub value: f64,
}

/// All sizes of a target, as facts and as formulas.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sizing {
    /// As facts `sizing.NAME`, those that cannot be worked out among them with the reason.
    pub(crate) facts: Vec<Fact>,
    /// Formulas with their terms, in the order in which they are shown.
    pub(crate) lines: Vec<Line>,
}

/// Which facts the inputs are: the file catalog/advice/sizing.toml.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    inputs: BTreeMap<String, Vec<Expression>>,
    stock: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    inputs: BTreeMap<String, Vec<String>>,
    stock: BTreeMap<String, f64>,
}

impl Sources {
    /// Those of the file that pgdyno is shipped with, read once.
    pub(crate) fn shipped() -> Result<Sources, String> {
        static SHIPPED: LazyLock<Result<Sources, String>> =
            LazyLock::new(|| Sources::parse(include_str!("../catalog/advice/sizing.toml")));
        SHIPPED.clone()
    }

    fn parse(text: &str) -> Result<Sources, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut inputs = BTreeMap::new();
        for (name, texts) in file.inputs {
            let read: Result<Vec<Expression>, _> = texts.iter().map(|text| Expression::parse(text)).collect();
            inputs.insert(name, read.map_err(|error| error.to_string())?);
        }
        Ok(Sources {
            inputs,
            stock: file.stock,
        })
    }

    /// The value of an input by the first expression whose facts are known; else the first one's
    /// reason.
    fn value(&self, name: &str, known: &Known) -> Result<Value, String> {
        let mut reason = None;
        for expression in self.inputs.get(name).into_iter().flatten() {
            match expression.evaluate(known) {
                Ok(value) => return Ok(value),
                Err(error) => {
                    reason.get_or_insert_with(|| error.reason());
                }
            }
        }
        Err(reason.unwrap_or_else(|| format!("nothing says what {name} is")))
    }
}

/// The inputs of one target.
struct Inputs<'k> {
    sources: &'k Sources,
    known: &'k Known,
}

impl Inputs<'_> {
    fn number(&self, name: &str) -> Result<f64, String> {
        let value = self.sources.value(name, self.known)?;
        value
            .as_f64()
            .ok_or_else(|| format!("{name}: expected a number, found {value}"))
    }

    /// The number, else that of a server as initdb leaves it.
    fn number_or_stock(&self, name: &str) -> Result<f64, String> {
        self.number(name)
            .or_else(|why| self.sources.stock.get(name).copied().ok_or(why))
    }

    fn truth(&self, name: &str) -> Result<bool, String> {
        let value = self.sources.value(name, self.known)?;
        value
            .as_bool()
            .ok_or_else(|| format!("{name}: expected true or false, found {value}"))
    }

    /// The nodes that have a pool of a page size, with its free pages.
    fn nodes(&self, page_bytes: f64) -> Vec<(u64, f64)> {
        let pools = self.known.get("huge_pages.pools").ok().and_then(Value::as_array);
        let of_size = pools
            .into_iter()
            .flatten()
            .filter(|pool| pool.get("page_bytes").and_then(Value::as_f64) == Some(page_bytes));
        of_size
            .filter_map(|pool| Some((pool.get("node")?.as_u64()?, pool.get("free")?.as_f64()?)))
            .collect()
    }

    /// All sizes of huge pages that there are.
    fn page_sizes(&self) -> Vec<f64> {
        let sizes = self.known.get("huge_pages.sizes").ok().and_then(Value::as_array);
        sizes
            .into_iter()
            .flatten()
            .filter_map(|size| size.get("page_bytes")?.as_f64())
            .collect()
    }

    /// Pools of one page size on the memory nodes that the server may use: (pages, free pages).
    fn pool(&self, page_bytes: f64) -> Result<(f64, f64), String> {
        let nodes = self.sources.value("memory_nodes", self.known).ok();
        let allowed = |node: Option<u64>| match (node, nodes.as_ref().and_then(Value::as_str)) {
            (Some(node), Some(list)) => is_in_list(node, list),
            _ => true,
        };
        let pools = self
            .known
            .get("huge_pages.pools")
            .or_else(|_| self.known.get("huge_pages.sizes"))
            .map_err(|lacking| lacking.to_string())?;
        let pools = pools.as_array().ok_or("the list of pools is not a list")?;
        let field = |pool: &Value, name: &str| pool.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let ours = pools.iter().filter(|pool| {
            field(pool, "page_bytes") == page_bytes && allowed(pool.get("node").and_then(Value::as_u64))
        });
        Ok(ours.fold((0.0, 0.0), |(total, free), pool| {
            (total + field(pool, "total"), free + field(pool, "free"))
        }))
    }
}

/// Whether a list such as 0-3,8 names a number.
fn is_in_list(number: u64, list: &str) -> bool {
    let numbers = numbers_of_list(list).unwrap_or_default();
    u32::try_from(number).is_ok_and(|number| numbers.contains(&number))
}

/// A quarter of the memory: [ibm-z] T1, PostgreSQL's documentation of shared_buffers.
pub(crate) fn buffers(memory_bytes: f64) -> f64 {
    even(memory_bytes / 4.0)
}

/// Buffers whose shared memory fits a pool of huge pages.
pub(crate) fn buffers_of_pool(pool_bytes: f64) -> f64 {
    floor_to(pool_bytes * (1.0 - BESIDE_BUFFERS), 64.0 * MB)
}

/// Three quarters of the memory: [ibm-z] T1.
pub(crate) fn cache(memory_bytes: f64) -> f64 {
    3.0 * buffers(memory_bytes)
}

/// A sixteenth of the memory, 32 MB to 1 GB: the usual rule (pgtune), capped where vacuum before 17
/// used no more.
pub(crate) fn maintenance(memory_bytes: f64) -> f64 {
    even(memory_bytes / 16.0).clamp(32.0 * MB, GB)
}

/// Dirty pages at which the kernel begins to write back, and at which a writing process has to:
/// [ibm-z] R1, less on small hosts.
pub(crate) fn write_back(ram_bytes: f64) -> (f64, f64) {
    (
        even(ram_bytes / 64.0).clamp(8.0 * MB, 64.0 * MB),
        even(ram_bytes / 8.0).clamp(64.0 * MB, 512.0 * MB),
    )
}

/// WAL that a server of this memory may write between two checkpoints, where nothing is known of
/// its load.
pub(crate) fn usual_wal(memory_bytes: f64) -> f64 {
    even(memory_bytes / 2.0).clamp(2.0 * GB, WAL_USUAL_MAX)
}

/// What the kernel needs to map shared memory into every session: an entry per page and session
/// ([percona-hugepages]: 224 sessions and 188 GB by pages of 4 kB took 82 GB).
pub(crate) fn page_tables(sessions: f64, shared_bytes: f64, page_bytes: f64) -> f64 {
    sessions * shared_bytes / page_bytes * TABLE_ENTRY_BYTES
}

/// Pages of a pool for the shared memory.
pub(crate) fn pages(shared_bytes: f64, page_bytes: f64) -> f64 {
    (shared_bytes / page_bytes).ceil()
}

/// The WAL between two checkpoints by time: the rate over an interval and the part of it that the
/// one before is still being written (PostgreSQL docs, WAL Configuration), twice, for a rate is not
/// even.
pub(crate) fn wal_between_checkpoints(bytes_per_s: f64, interval_s: f64, spread: f64) -> f64 {
    2.0 * bytes_per_s * interval_s * (1.0 + spread)
}

/// How many times work_mem a session may take at once: sorts and hashes at work, each hash as much
/// as hash_mem_multiplier (`hash_factor`) says.
pub fn session_sorts(hash_factor: Option<f64>) -> f64 {
    hash_factor.unwrap_or(1.0).max(1.0) * NODES
}

/// Memory that all sessions and workers of a server may take at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wants {
    /// Number of sessions that the sizes are for.
    pub(crate) sessions: f64,
    /// Memory that a sort may take: work_mem.
    pub(crate) sort_bytes: f64,
    /// How many times as much a hash may take.
    pub(crate) hash_factor: f64,
    /// Shared memory of the server, buffers included.
    pub(crate) shared_bytes: f64,
    /// Memory that a maintenance command may take: maintenance_work_mem.
    pub(crate) maintenance_bytes: f64,
    /// Memory that an autovacuum worker may take.
    pub(crate) vacuum_bytes: f64,
    /// Number of autovacuum workers.
    pub(crate) vacuum_workers: f64,
    /// Page tables of a session.
    pub(crate) tables_bytes_per_session: f64,
}

impl Wants {
    /// What a session may take: sorts and hashes at work (PostgreSQL docs: each node may use as
    /// much), and page tables.
    fn per_session(&self) -> f64 {
        self.sort_bytes * self.hash_factor * NODES + self.tables_bytes_per_session
    }

    /// Bytes that are taken whatever the number of sessions.
    fn fixed(&self) -> f64 {
        self.shared_bytes
            + self.maintenance_bytes * MAINTENANCE_SESSIONS
            + self.vacuum_bytes * self.vacuum_workers
    }

    /// Bytes that all sessions and workers may take together.
    pub(crate) fn worst_case(&self) -> f64 {
        self.fixed() + self.sessions * self.per_session()
    }

    /// The most a sort may take so that the worst case stays within what may be planned for; never
    /// below zero.
    pub(crate) fn sort_that_fits(&self, memory_bytes: f64) -> f64 {
        let left = memory_bytes * PLANNED - self.fixed() - self.sessions * self.tables_bytes_per_session;
        (left / (self.sessions * self.hash_factor * NODES)).max(0.0)
    }

    /// The most sessions that fit; never below zero.
    pub(crate) fn sessions_that_fit(&self, memory_bytes: f64) -> f64 {
        ((memory_bytes * PLANNED - self.fixed()) / self.per_session())
            .floor()
            .max(0.0)
    }
}

fn floor_to(bytes: f64, step: f64) -> f64 {
    (bytes / step).floor() * step
}

impl Sizing {
    /// Works out what can be worked out.
    pub(crate) fn of(sources: &Sources, known: &Known) -> Sizing {
        let inputs = Inputs { sources, known };
        let mut sizing = Sizing::default();
        sizing.memory(&inputs);
        sizing.pool(&inputs);
        sizing.other_pools(&inputs);
        sizing.worst_case(&inputs);
        sizing.wal(&inputs);
        sizing
    }

    fn note(&mut self, name: &str, outcome: Result<f64, String>) {
        self.facts.push(Fact::new(
            &format!("{ROOM}.{name}"),
            "catalog/advice/sizing.toml",
            outcome.map(number_of),
        ));
    }

    fn memory(&mut self, inputs: &Inputs<'_>) {
        let memory = inputs.number("memory_bytes");
        self.note("buffers_bytes", memory.clone().map(buffers));
        self.note("cache_bytes", memory.clone().map(cache));
        self.note("maintenance_bytes", memory.clone().map(maintenance));
        let ram = inputs.number("ram_bytes");
        self.note("dirty_background_bytes", ram.clone().map(|ram| write_back(ram).0));
        self.note("dirty_bytes", ram.map(|ram| write_back(ram).1));
        self.note("shared_bytes", inputs.number("shared_bytes"));
        self.facts.push(Fact::new(
            &format!("{ROOM}.on_huge_pages"),
            "catalog/advice/sizing.toml",
            inputs.truth("on_huge_pages"),
        ));
        let Ok(memory) = memory else { return };
        let mut terms = Vec::new();
        if let Ok(ram) = inputs.number("ram_bytes") {
            terms.push(term("a quarter of the RAM", buffers(ram)));
        }
        if let Ok(limit) = inputs.number("group_limit_bytes") {
            terms.push(term("a quarter of the control group's limit", buffers(limit)));
        }
        let pool = inputs
            .number("huge_page_bytes")
            .and_then(|page| Ok(inputs.pool(page)?.0 * page));
        if let Ok(pool) = pool
            && pool > 0.0
        {
            terms.push(term("what the pool of huge pages holds", buffers_of_pool(pool)));
        }
        let now = inputs.number("buffers_bytes").ok();
        self.lines.push(Line {
            title: "Buffer cache".into(),
            terms,
            total: buffers(memory),
            is_bytes: true,
            note: now.map(|now| format!("now {}", size(now))),
            source: "[ibm-z] T1; PostgreSQL docs, Resource Consumption",
        });
    }

    fn pool(&mut self, inputs: &Inputs<'_>) {
        let sized = Pool::of(inputs);
        let pick = |pick: fn(&Pool) -> f64| sized.as_ref().map(pick).map_err(Clone::clone);
        self.note("pool_needed_pages", pick(|pool| pool.needed));
        self.note("pool_wanted_pages", pick(Pool::wanted));
        self.note("pool_lacks_pages", pick(Pool::lacks));
        self.note("pool_bytes", pick(|pool| pool.total * pool.page_bytes));
        self.note("pool_free_pages", pick(|pool| pool.free));
        self.note("pool_free_bytes", pick(|pool| pool.free * pool.page_bytes));
        self.note(
            "buffers_of_pool_bytes",
            pick(|pool| buffers_of_pool(pool.total * pool.page_bytes)),
        );
        let Ok(pool) = sized else { return };
        let mut terms = vec![
            term(
                if pool.is_reported {
                    "needed, as the server says"
                } else {
                    "needed, by the size of its shared memory"
                },
                pool.needed,
            ),
            term("with 2 % more, and what others use", pool.wanted()),
            term("in the pool", pool.total),
            term("of these free", pool.free),
            term("of these the server's own", pool.own),
        ];
        let nodes = inputs.nodes(pool.page_bytes);
        if nodes.len() > 1 {
            terms.extend(
                nodes
                    .into_iter()
                    .map(|(node, free)| term(&format!("free on memory node {node}"), free)),
            );
        }
        self.lines.push(Line {
            title: format!("Huge pages of {}", size(pool.page_bytes)),
            terms,
            total: pool.lacks(),
            is_bytes: false,
            note: Some("lacking in the pool".into()),
            source: "PostgreSQL docs, Linux Huge Pages; [percona-hugepages]",
        });
    }

    /// What the shared memory would take of pages of other sizes, which the server has to be
    /// configured to use.
    fn other_pools(&mut self, inputs: &Inputs<'_>) {
        let (Ok(used), Ok(shared)) = (inputs.number("huge_page_bytes"), inputs.number("shared_bytes")) else {
            return;
        };
        for page_bytes in inputs.page_sizes() {
            let Ok((total, free)) = inputs.pool(page_bytes) else {
                continue;
            };
            // A page that is larger than all that it would hold is none to think of.
            if page_bytes == used || page_bytes > shared {
                continue;
            }
            let needed = pages(shared, page_bytes);
            self.lines.push(Line {
                title: format!("Huge pages of {}", size(page_bytes)),
                terms: vec![
                    term("needed, by the size of its shared memory", needed),
                    term("in the pool", total),
                    term("of these free", free),
                ],
                total: (needed - free).max(0.0),
                is_bytes: false,
                note: Some("lacking in the pool, if the server took this size".into()),
                source: "PostgreSQL docs, Linux Huge Pages; [percona-hugepages]",
            });
        }
    }

    fn worst_case(&mut self, inputs: &Inputs<'_>) {
        let wants = wants(inputs);
        self.note(
            "worst_case_bytes",
            wants.as_ref().map(Wants::worst_case).map_err(Clone::clone),
        );
        let memory = inputs.number("memory_bytes");
        let sort = memory
            .clone()
            .and_then(|memory| Ok(even_down(planned(inputs, memory)?.sort_that_fits(memory))));
        self.note("work_mem_bytes", sort.clone());
        let sessions = match (&wants, &memory) {
            (Ok(wants), Ok(memory)) => Ok(floor_to(wants.sessions_that_fit(*memory), SESSIONS_STEP)),
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        };
        self.note("sessions_that_fit", sessions);
        let (Ok(wants), Ok(memory)) = (wants, memory) else {
            return;
        };
        let sessions = format!(
            "{} sessions x {} a sort x {} for a hash x {NODES} at a time",
            wants.sessions,
            size(wants.sort_bytes),
            wants.hash_factor
        );
        self.lines.push(Line {
            title: "Worst case of memory".into(),
            terms: vec![
                term(
                    &sessions,
                    wants.sessions * wants.sort_bytes * wants.hash_factor * NODES,
                ),
                term("shared memory", wants.shared_bytes),
                term(
                    "maintenance of one session",
                    wants.maintenance_bytes * MAINTENANCE_SESSIONS,
                ),
                term(
                    &format!(
                        "{} autovacuum workers x {}",
                        wants.vacuum_workers,
                        size(wants.vacuum_bytes)
                    ),
                    wants.vacuum_bytes * wants.vacuum_workers,
                ),
                term(
                    "page tables, if every session touches all of the shared memory",
                    wants.sessions * wants.tables_bytes_per_session,
                ),
            ],
            total: wants.worst_case(),
            is_bytes: true,
            note: Some(format!(
                "of {} that may be used; {} a sort would stay within {} %",
                size(memory),
                size(sort.unwrap_or_default()),
                PLANNED * 100.0
            )),
            source: "PostgreSQL docs, Resource Consumption; [percona-hugepages] for page tables",
        });
    }

    fn wal(&mut self, inputs: &Inputs<'_>) {
        let between = || -> Result<f64, String> {
            Ok(wal_between_checkpoints(
                inputs.number("wal_bytes_per_s")?,
                inputs.number("checkpoint_interval_s")?,
                inputs.number("checkpoint_spread")?,
            ))
        };
        let between = between();
        let wanted = || -> Result<f64, String> {
            // A server elsewhere does not show its memory.
            let usual = inputs.number("memory_bytes").map_or(WAL_UNKNOWN, usual_wal);
            let now = inputs.number_or_stock("wal_limit_bytes")?;
            let measured = between.as_ref().map_or(0.0, |bytes| power_above(*bytes));
            let wanted = usual.max(measured).min(WAL_MAX);
            // What is free changes by the minute: it counts in powers of two, and only where it is
            // scarce.
            let share = inputs.number("wal_volume_bytes")? * inputs.number("wal_volume_share")?;
            let free = inputs
                .number("wal_room_bytes")
                .map_or(WAL_MAX, |room| power_down(room / 2.0));
            // Never less than now: a volume that has too little room is another rule's matter.
            Ok(wanted.min(even_down(share)).min(free).max(now))
        };
        let wanted = wanted();
        self.note("wal_bytes", wanted.clone());
        let (Ok(between), Ok(wanted), Ok(now)) = (between, wanted, inputs.number("wal_limit_bytes")) else {
            return;
        };
        self.lines.push(Line {
            title: "WAL between checkpoints".into(),
            terms: vec![
                term("written from one checkpoint by time to the next, twice", between),
                term("allowed now", now),
            ],
            total: wanted,
            is_bytes: true,
            note: Some("to be allowed where checkpoints come by the amount of WAL".into()),
            source: "PostgreSQL docs, WAL Configuration",
        });
    }
}

fn term(text: &str, value: f64) -> Term {
    Term {
        text: text.to_owned(),
        value,
    }
}

fn wants(inputs: &Inputs<'_>) -> Result<Wants, String> {
    let shared_bytes = inputs.number("shared_bytes")?.round();
    let on_huge = inputs.truth("on_huge_pages").unwrap_or(false);
    let page_bytes = match on_huge {
        true => inputs.number("huge_page_bytes")?,
        // Of a server elsewhere the page is not known; all that run servers by the thousand have
        // this one.
        false => inputs.number("page_bytes").unwrap_or(4096.0),
    };
    Ok(Wants {
        sessions: inputs.number("sessions")?.max(1.0),
        sort_bytes: inputs.number("sort_bytes")?,
        hash_factor: inputs.number("hash_factor")?.max(1.0),
        shared_bytes,
        maintenance_bytes: inputs.number("maintenance_bytes")?,
        vacuum_bytes: inputs.number("vacuum_bytes")?,
        vacuum_workers: inputs.number("vacuum_workers")?,
        tables_bytes_per_session: page_tables(1.0, shared_bytes, page_bytes),
    })
}

/// What they want once the other sizes here are set too, so that applying all of them does not make
/// one too large. A server that is not asked is one as initdb leaves it.
fn planned(inputs: &Inputs<'_>, memory_bytes: f64) -> Result<Wants, String> {
    let buffers = buffers(memory_bytes);
    let maintenance = maintenance(memory_bytes);
    // What the buffers bring with them, as in catalog/advice/sizing.toml.
    let shared_bytes = (buffers * 1.02 + 24.0 * MB).max(inputs.number("shared_bytes").unwrap_or(0.0));
    let page_bytes = match inputs.truth("on_huge_pages").unwrap_or(false) {
        true => inputs.number("huge_page_bytes")?,
        false => inputs.number("page_bytes").unwrap_or(4096.0),
    };
    Ok(Wants {
        sessions: inputs.number_or_stock("sessions")?.max(1.0),
        sort_bytes: inputs.number_or_stock("sort_bytes")?,
        hash_factor: inputs.number_or_stock("hash_factor")?.max(1.0),
        shared_bytes,
        maintenance_bytes: inputs.number_or_stock("maintenance_bytes")?.max(maintenance),
        vacuum_bytes: match inputs.number("vacuum_own_bytes") {
            Ok(own) if own > 0.0 => own,
            _ => inputs.number_or_stock("vacuum_bytes")?.max(maintenance),
        },
        vacuum_workers: inputs.number_or_stock("vacuum_workers")?,
        tables_bytes_per_session: page_tables(1.0, shared_bytes, page_bytes),
    })
}

/// A pool of huge pages, in pages.
struct Pool {
    page_bytes: f64,
    needed: f64,
    /// Whether the server itself says what it needs.
    is_reported: bool,
    total: f64,
    free: f64,
    /// What the server has of it.
    own: f64,
}

impl Pool {
    fn of(inputs: &Inputs<'_>) -> Result<Pool, String> {
        let page_bytes = inputs.number("huge_page_bytes")?;
        if page_bytes < 1.0 {
            return Err("the kernel has no huge pages".into());
        }
        let reported = inputs
            .number("huge_pages_needed")
            .ok()
            .filter(|needed| *needed > 0.0);
        let needed = match reported {
            Some(needed) => needed,
            None => pages(inputs.number("shared_bytes")?, page_bytes),
        };
        let (total, free) = inputs.pool(page_bytes)?;
        let own = match inputs.number("own_huge_bytes") {
            Ok(own_bytes) => own_bytes / page_bytes,
            // Without the rights to look, it has what it needs.
            Err(_) if inputs.truth("on_huge_pages").unwrap_or(false) => needed.min(total - free),
            Err(_) => 0.0,
        };
        Ok(Pool {
            page_bytes,
            needed,
            is_reported: reported.is_some(),
            total,
            free,
            own,
        })
    }

    /// What the whole pool should have: others keep what they have of it.
    fn wanted(&self) -> f64 {
        let of_others = (self.total - self.free - self.own).max(0.0);
        of_others.ceil() + (self.needed * POOL_SPARE).ceil()
    }

    fn lacks(&self) -> f64 {
        (self.needed - self.free - self.own).max(0.0).ceil()
    }
}

#[cfg(test)]
mod tests;
