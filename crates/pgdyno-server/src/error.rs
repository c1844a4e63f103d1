//! Why a server could not be reached or asked.

use crate::given::Given;
use crate::version::VERSION_MIN;
use pgdyno_record::ErrorClass;

/// Why a server could not be reached or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The target is neither a sandbox nor a connection string.
    #[error("{} is neither a sandbox nor a connection string", Given(word))]
    NotATarget {
        /// The target as it was given.
        word: String,
    },
    /// A connection string that cannot be read. It is not quoted, for it may hold a password.
    #[error(
        "the connection string cannot be read; expected key=value pairs or postgresql://user@host:port/database"
    )]
    ConnectionString,
    /// A parameter of libpq that pgdyno does not implement as far.
    #[error("the connection string holds \"{word}\" in a way that pgdyno does not do")]
    NotDone {
        /// Name of the parameter, as libpq has it.
        word: &'static str,
    },
    /// Lists of hosts, addresses and ports that do not go together.
    #[error("the connection string cannot be used: {reason}")]
    Hosts {
        /// Which list, and what is wrong with it.
        reason: String,
    },
    /// A parameter with a value that libpq does not have.
    #[error("{name} is {}; expected {}", Given(word), expected(name))]
    Word {
        /// Name of the parameter, as libpq has it.
        name: &'static str,
        /// Value that was given for it.
        word: String,
    },
    /// None of several servers is of the kind that target_session_attrs asks for.
    #[error("no server for target_session_attrs={wanted}: {each}")]
    NoneFits {
        /// Value of target_session_attrs.
        wanted: String,
        /// Each server that was tried, with the reason.
        each: String,
    },
    /// An sslmode that libpq does not have.
    #[error(
        "sslmode {} is unknown; there are disable, allow, prefer, require, verify-ca and verify-full",
        Given(word)
    )]
    SslMode {
        /// Value of sslmode as it was given.
        word: String,
    },
    /// A service without an entry.
    #[error("there is no service {} in {}", Given(name), Given(path))]
    Service {
        /// Name of the service.
        name: String,
        /// Path of the service file that was read.
        path: String,
    },
    /// Certificates or keys that cannot be used.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// File that cannot be used, and why.
        reason: String,
    },
    /// No connection could be made.
    #[error("no server answers for {target}: {reason}")]
    Unreachable {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// Error of the system call, or of the resolver.
        reason: String,
    },
    /// TLS is required, and cannot be had or verified.
    #[error("no TLS with the server for {target}: {reason}")]
    NoTls {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// What is wrong with the server's TLS.
        reason: String,
    },
    /// It answers, and takes no connection now.
    #[error("the server refused the connection for {target}: {reason} (SQLSTATE {sqlstate})")]
    Refused {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// Message of the server.
        reason: String,
        /// SQLSTATE of the error: "53300".
        sqlstate: String,
    },
    /// The server does not accept user or password.
    #[error("the server refused the login for {target}: {reason}")]
    Login {
        /// Database, place and user of the connection, without a password.
        target: String,
        /// Message of the server.
        reason: String,
        /// Whether the server refused the user of the operating system (`peer`), and no password.
        is_peer: bool,
    },
    /// The server has no such database.
    #[error("there is no such database: {target}")]
    NoDatabase {
        /// Database, place and user of the connection, without a password.
        target: String,
    },
    /// The server's version is older than pgdyno reads.
    #[error("PostgreSQL {version} at {place} is too old; pgdyno reads {VERSION_MIN} and later")]
    TooOld {
        /// Host and port of the server.
        place: String,
        /// Major version of the server.
        version: u32,
    },
    /// The server ended a statement with an error.
    #[error("{what}: {reason} (SQLSTATE {sqlstate})")]
    Statement {
        /// What the statement was for: "reading pg_stat_statements".
        what: String,
        /// Message of the server.
        reason: String,
        /// SQLSTATE of the error: "42501".
        sqlstate: String,
    },
    /// A list that ALTER SYSTEM cannot write.
    #[error("ALTER SYSTEM cannot write {name} = '{value}'; a line of postgresql.auto.conf can")]
    NotWritable {
        /// Name of the parameter.
        name: String,
        /// Value that was to be written, a list.
        value: String,
    },
    /// The connection broke during a statement.
    #[error("{what}: the connection to the server broke: {reason}")]
    Broken {
        /// What the statement was for.
        what: String,
        /// Error of the system call.
        reason: String,
    },
    /// The server has the statement and sends nothing.
    #[error("{what}: the server said nothing for {waited_s} s, and the connection was given up")]
    Silent {
        /// What the statement was for.
        what: String,
        /// Seconds that were waited for an answer.
        waited_s: u64,
    },
    /// The server sends more than any answer has.
    #[error("{what}: {sent} came from the server and no end of its answer; the connection was given up")]
    Flood {
        /// What the statement was for.
        what: String,
        /// Bytes and messages that came, as text.
        sent: String,
    },
    /// The server sends what the protocol does not allow.
    #[error(
        "{what}: the server does not keep to PostgreSQL's protocol: {reason}; the connection was given up"
    )]
    Protocol {
        /// What the statement was for.
        what: String,
        /// Message that came, and why it is not allowed.
        reason: String,
    },
    /// An answer of another form than documented.
    #[error("{what}: expected {expected}, the server said \"{found}\"")]
    Answer {
        /// What the statement was for.
        what: String,
        /// Form that was expected: "a number".
        expected: &'static str,
        /// Answer that came.
        found: String,
    },
}

impl ServerError {
    /// A target that is none is a mistake of the command line.
    pub fn class(&self) -> ErrorClass {
        match self {
            ServerError::NotATarget { .. } | ServerError::ConnectionString => ErrorClass::Usage,
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            ServerError::NotATarget { .. } => {
                "name a sandbox as sandbox:NAME, or give a connection string such as \"host=db user=postgres\""
            }
            ServerError::Unreachable { .. } => {
                "is it running, and is this the right host and port? `pgdyno sandbox create` makes a private server"
            }
            ServerError::Login { is_peer: true, .. } => {
                "the server takes over its socket only the user of the operating system who has the role's name (peer in its \
                 pg_hba.conf): run the command as that user (`sudo -u postgres pgdyno ...`) or as root"
            }
            ServerError::Login { .. } => {
                "set PGPASSWORD or a line in ~/.pgpass (readable by you alone), or name another user"
            }
            ServerError::NoDatabase { .. } => "name another with dbname=..., or create it",
            ServerError::Refused { sqlstate, .. } if sqlstate == "53300" => {
                "a larger max_connections on the server, or fewer other clients"
            }
            ServerError::NoneFits { .. } => {
                "another target_session_attrs, or the hosts that are meant; each was asked in its order"
            }
            ServerError::Silent { .. } => {
                "check whether the server or its host is stopped (a process in state T or D in ps), or the network \
                 drops packets"
            }
            ServerError::Flood { .. } | ServerError::Protocol { .. } => {
                "is this a PostgreSQL server? another program on this port, or a proxy before the server, may be at fault"
            }
            ServerError::TooOld { .. } => "upgrade the server; experiments need 14 or later",
            _ => return None,
        })
    }

    /// Whether nothing more can be asked over the connection.
    pub(crate) fn is_end(&self) -> bool {
        matches!(
            self,
            ServerError::Broken { .. }
                | ServerError::Silent { .. }
                | ServerError::Flood { .. }
                | ServerError::Protocol { .. }
        )
    }
}

/// Values that a parameter of libpq may have, as text.
fn expected(name: &str) -> &'static str {
    match name {
        "target_session_attrs" => "any, read-write, read-only, primary, standby or prefer-standby",
        "load_balance_hosts" => "disable or random",
        "sslnegotiation" => "postgres or direct",
        _ => "a whole number of seconds",
    }
}
