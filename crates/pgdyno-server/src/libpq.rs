//! The keywords of libpq's connection strings.

/// What the driver does not know, or not in all of libpq's ways.
pub(crate) const OWN: [&str; 14] = [
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "target_session_attrs",
    "load_balance_hosts",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "service",
    "servicefile",
    "passfile",
];

/// Words of libpq that change nothing here, unless they ask for what is in [`ASKS_FOR_MORE`]: names
/// of programs, Kerberos where it is not insisted on, and TLS as it is done anyway (1.2 or later,
/// with the server's name).
pub(crate) const WITHOUT_EFFECT: [&str; 9] = [
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "sslcompression",
    "sslsni",
    "ssl_min_protocol_version",
];

pub(crate) const ASKS_FOR_MORE: [&str; 2] = ["require", "TLSv1.3"];

/// Words of libpq that ask for what is not done; going on without them would be less than what was
/// asked for.
pub(crate) const NOT_DONE: [&str; 11] = [
    "max_protocol_version",
    "min_protocol_version",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "ssl_max_protocol_version",
    "sslcertmode",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
];

/// Words of libpq that the driver gets, whether it knows them or not.
const DRIVERS: [&str; 20] = [
    "application_name",
    "channel_binding",
    "dbname",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "oauth_ca_file",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "options",
    "password",
    "scram_client_key",
    "scram_server_key",
    "sslkeylogfile",
    "tcp_user_timeout",
    "user",
];

/// Whether a connection string may have this word: any of libpq's.
pub(crate) fn is_known(name: &str) -> bool {
    let lists: [&[&str]; 4] = [&OWN, &WITHOUT_EFFECT, &NOT_DONE, &DRIVERS];
    lists.iter().any(|names| names.contains(&name))
}
