//! What a statement is that facts are asked with.

/// What a statement needs beyond a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// What others do: pg_read_all_stats, which pg_monitor has.
    Stats,
    /// Reads pg_ls_waldir().
    WalDirectory,
    /// Reads pg_shmem_allocations.
    SharedMemory,
    /// Reads pg_config().
    Config,
    /// Reads pg_file_settings and calls pg_stat_file().
    Files,
    /// pg_stat_statements of at least this version (1.8 is 108), and pg_read_all_stats for what
    /// others asked.
    Statements(u32),
}

/// Statements that are sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// A few rows of views.
    Light,
    /// Those that read every table, index or statement once.
    Catalog,
}

/// One statement and the facts that it gives.
#[derive(Debug)]
pub(super) struct Statement {
    /// Is sent in a comment in it, for those who read the server's log.
    pub(super) name: &'static str,
    /// First major version that understands it.
    pub(super) since: u32,
    /// First major version that no longer does.
    pub(super) until: u32,
    pub(super) group: Group,
    pub(super) needs: Need,
    /// Where the server has it from, for people.
    pub(super) source: &'static str,
    /// The keys of its object.
    pub(super) facts: &'static [&'static str],
    /// What it means when a value is NULL.
    pub(super) when_null: &'static str,
    /// `{statements}` is replaced by the schema of pg_stat_statements.
    pub(super) sql: &'static str,
}

impl Statement {
    /// What is sent. Its name is behind the first word: the server's own statistics omit what is
    /// before.
    pub(super) fn text(&self, statements_schema: &str) -> String {
        let (first, rest) = self.sql.split_once(' ').unwrap_or((self.sql, ""));
        let rest = rest.replace("{statements}", statements_schema);
        format!("{first} /* pgdyno facts: {} */ {rest}", self.name)
    }
}

/// What most statements are: asked of every version, by any role.
pub(super) const LIGHT: Statement = Statement {
    name: "",
    since: crate::version::VERSION_MIN,
    until: u32::MAX,
    group: Group::Light,
    needs: Need::Nothing,
    source: "",
    facts: &[],
    when_null: "the server does not say",
    sql: "",
};
/// The same of those that read every table, index or statement.
pub(super) const CATALOG: Statement = Statement {
    group: Group::Catalog,
    ..LIGHT
};
