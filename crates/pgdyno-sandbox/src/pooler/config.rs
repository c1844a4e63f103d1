//! What a pooler is given: its files and arguments. Touches nothing.

use super::{CLIENTS_MAX, PoolMode, PoolerError, PoolerKind, PoolerPlan};
use crate::sandbox::process::{self, socket_path_objection};
use pgdyno_server::Conninfo;
use postgres::config::Host;
use std::path::Path;

/// Ports of a pooler on 127.0.0.1.
pub(super) struct Ports {
    /// Port that clients connect to.
    pub(super) clients: u16,
    /// For pgpool's own control program: the name of its socket only.
    pub(super) control: u16,
}

impl Ports {
    /// Whether nobody else listens where clients connect to.
    pub(super) fn are_free(&self) -> bool {
        process::is_free(self.clients)
    }
}

/// Parameters that say where it is, for whom, and where its files are.
fn is_our_own(kind: PoolerKind, name: &str) -> bool {
    let ours: &[&str] = match kind {
        PoolerKind::PgBouncer => &[
            "listen_addr",
            "listen_port",
            "unix_socket_dir",
            "auth_type",
            "auth_file",
            "auth_hba_file",
            "auth_query",
            "pool_mode",
            "default_pool_size",
            "max_client_conn",
            "logfile",
            "pidfile",
            "user",
        ],
        PoolerKind::Pgpool => &[
            "listen_addresses",
            "port",
            "socket_dir",
            "unix_socket_directories",
            "pcp_listen_addresses",
            "pcp_port",
            "pcp_socket_dir",
            "wd_ipc_socket_dir",
            "backend_clustering_mode",
            "backend_hostname0",
            "backend_port0",
            "num_init_children",
            "max_pool",
            "enable_pool_hba",
            "pool_passwd",
            "allow_clear_text_frontend_auth",
            "logdir",
            "work_dir",
            "pid_file_name",
        ],
    };
    ours.contains(&name)
}

/// What of a plan the program could not keep.
pub(super) fn check(plan: &PoolerPlan) -> Result<(), PoolerError> {
    let program = plan.kind.program();
    let wrong = |reason: String| Err(PoolerError::Plan(reason));
    if plan.kind == PoolerKind::Pgpool {
        if plan.mode != PoolMode::Session {
            return wrong(format!(
                "pgpool has no {} mode; it keeps a session for each client",
                plan.mode.name()
            ));
        }
        if plan.pool_size < plan.clients_max {
            return wrong(format!(
                "pgpool needs a session for each client: {} clients, {} sessions",
                plan.clients_max, plan.pool_size
            ));
        }
    }
    for (what, number) in [("clients", plan.clients_max), ("sessions", plan.pool_size)] {
        if !(1..=CLIENTS_MAX).contains(&number) {
            return wrong(format!("expected 1 to {CLIENTS_MAX} {what}, found {number}"));
        }
    }
    for (name, value) in &plan.extra {
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_name {
            return wrong(format!("expected the name of a parameter, found \"{name}\""));
        }
        if is_our_own(plan.kind, name) {
            return wrong(format!("{name} is set by pgdyno for {program}"));
        }
        if value.contains(['\n', '\r', '\0']) {
            return wrong(format!("the value of {name} has more than one line"));
        }
    }
    Ok(())
}

/// What it is started with, in its directory: it stays in the foreground.
pub(super) fn arguments(kind: PoolerKind) -> &'static [&'static str] {
    match kind {
        PoolerKind::PgBouncer => &["pooler.ini"],
        PoolerKind::Pgpool => &["-n", "-f", "pooler.conf", "-F", "pcp.conf", "-a", "hba.conf"],
    }
}

/// Names of all files that any pooler gets: some hold its password.
pub(super) const FILES: [&str; 6] = [
    "pooler.ini",
    "users",
    "pooler.conf",
    "pcp.conf",
    "hba.conf",
    "passwords",
];

/// Configuration files of the program: name and content.
pub(super) fn files(
    plan: &PoolerPlan,
    server: &Conninfo,
    directory: &Path,
    ports: &Ports,
    password: &str,
) -> Result<Vec<(&'static str, String)>, PoolerError> {
    let host = match server.address() {
        Some(address) => address.to_string(),
        None => match server.host() {
            Host::Tcp(name) => name,
            Host::Unix(directory) => directory.display().to_string(),
        },
    };
    for (what, text) in [("user", server.user()), ("password", password), ("host", &host)] {
        if text.contains(['\n', '\r', '\0', '"', '\'', ':']) && (what != "host" || !text.contains(':')) {
            let reason = format!(
                "the {what} has a quote, a colon or more than one line, which {} does not accept",
                plan.kind.program()
            );
            return Err(PoolerError::Plan(reason));
        }
    }
    match plan.kind {
        PoolerKind::PgBouncer => Ok(pgbouncer(plan, server, &host, ports, password)),
        PoolerKind::Pgpool => pgpool(plan, server, &host, directory, ports, password),
    }
}

/// md5 for clients: SCRAM would cost both sides some milliseconds of CPU time for each connection,
/// which a load that connects for each transaction would measure.
fn pgbouncer(
    plan: &PoolerPlan,
    server: &Conninfo,
    host: &str,
    ports: &Ports,
    password: &str,
) -> Vec<(&'static str, String)> {
    let mut text = format!(
        "[databases]\n* = host='{host}' port={}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
         unix_socket_dir =\nauth_type = md5\nauth_file = users\npool_mode = {}\ndefault_pool_size = {}\n\
         max_client_conn = {}\n",
        server.port(),
        ports.clients,
        plan.mode.name(),
        plan.pool_size,
        plan.clients_max,
    );
    for (name, value) in &plan.extra {
        text.push_str(&format!("{name} = {value}\n"));
    }
    vec![
        ("pooler.ini", text),
        ("users", format!("\"{}\" \"{password}\"\n", server.user())),
    ]
}

/// Raw mode: one server, nothing watched, nothing balanced, no control over the network.
fn pgpool(
    plan: &PoolerPlan,
    server: &Conninfo,
    host: &str,
    directory: &Path,
    ports: &Ports,
    password: &str,
) -> Result<Vec<(&'static str, String)>, PoolerError> {
    let socket = directory.join(format!(".s.PGSQL.{}", ports.clients));
    if let Some(why) = socket_path_objection(&socket) {
        return Err(PoolerError::Plan(format!("{}: {why}", socket.display())));
    }
    let here = directory.display().to_string();
    let quoted = |value: &str| format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"));
    let place = quoted(&here);
    let mut text = format!(
        "backend_clustering_mode = 'raw'\nlisten_addresses = '127.0.0.1'\nport = {}\nsocket_dir = {place}\n\
         unix_socket_directories = {place}\npcp_listen_addresses = ''\npcp_port = {}\npcp_socket_dir = {place}\n\
         wd_ipc_socket_dir = {place}\nbackend_hostname0 = {}\nbackend_port0 = {}\nbackend_weight0 = 1\n\
         num_init_children = {}\nmax_pool = 1\nreserved_connections = 0\nenable_pool_hba = on\n\
         pool_passwd = 'passwords'\nlogdir = {place}\nwork_dir = {place}\npid_file_name = {}\nsr_check_period = 0\n\
         health_check_period = 0\n",
        ports.clients,
        ports.control,
        quoted(host),
        server.port(),
        plan.clients_max,
        quoted(&format!("{here}/pid")),
    );
    for (name, value) in &plan.extra {
        text.push_str(&format!("{name} = {}\n", quoted(value)));
    }
    Ok(vec![
        ("pooler.conf", text),
        ("pcp.conf", String::new()),
        ("hba.conf", "host all all 127.0.0.1/32 md5\n".to_owned()),
        ("passwords", format!("{}:TEXT{password}\n", server.user())),
    ])
}
