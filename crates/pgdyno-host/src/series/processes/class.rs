//! What a process of the server does, from its title in /proc/PID/cmdline.

use crate::access::HostAccess;

/// Kinds of processes, as the server names them in their titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Class {
    /// The postmaster, which starts all others.
    Postmaster,
    /// A backend that serves a client.
    Client,
    Parallel,
    Checkpointer,
    BackgroundWriter,
    WalWriter,
    /// The launcher of autovacuum, and its workers.
    Autovacuum,
    IoWorker,
    WalSender,
    WalReceiver,
    Startup,
    Archiver,
    /// Launcher, apply and table synchronisation workers.
    LogicalReplication,
    Logger,
    /// Workers of extensions and whatever else.
    Other,
    /// Has no title yet, or shows a client's before who it is for is known.
    Starting,
    /// No process: what those that have ended had used since they were last read.
    Ended,
}

impl Class {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Class::Postmaster => "postmaster",
            Class::Client => "client backend",
            Class::Parallel => "parallel worker",
            Class::Checkpointer => "checkpointer",
            Class::BackgroundWriter => "background writer",
            Class::WalWriter => "walwriter",
            Class::Autovacuum => "autovacuum",
            Class::IoWorker => "io worker",
            Class::WalSender => "walsender",
            Class::WalReceiver => "walreceiver",
            Class::Startup => "startup",
            Class::Archiver => "archiver",
            Class::LogicalReplication => "logical replication",
            Class::Logger => "logger",
            Class::Other => "other",
            Class::Starting => "starting",
            Class::Ended => "ended",
        }
    }

    /// Whether it will be the same as long as the process lives.
    pub(super) fn is_sure(self) -> bool {
        self != Class::Starting
    }
}

/// Titles that are all of a title, or its beginning up to a blank.
const TITLES: [(&str, Class); 15] = [
    ("checkpointer", Class::Checkpointer),
    ("background writer", Class::BackgroundWriter),
    ("walwriter", Class::WalWriter),
    ("autovacuum launcher", Class::Autovacuum),
    ("autovacuum worker", Class::Autovacuum),
    ("io worker", Class::IoWorker),
    ("walsender", Class::WalSender),
    ("walreceiver", Class::WalReceiver),
    ("startup", Class::Startup),
    ("archiver", Class::Archiver),
    ("logical replication", Class::LogicalReplication),
    ("slotsync worker", Class::LogicalReplication),
    ("logger", Class::Logger),
    ("parallel worker", Class::Parallel),
    ("client backend", Class::Starting),
];

/// The class of a process; `Starting` where its title cannot be read (it may be gone).
pub(super) fn of(host: &dyn HostAccess, pid: u32) -> Class {
    host.read(&format!("/proc/{pid}/cmdline"))
        .map_or(Class::Starting, |line| of_title(&line))
}

/// A title is "postgres: ", the cluster's name and ": " where it has one, and what the process
/// does; for a client "user database host(port) activity". The file pads it with NUL.
pub(super) fn of_title(line: &str) -> Class {
    let title = line.trim_end_matches('\0').trim_end();
    let Some(title) = title.strip_prefix("postgres: ") else {
        return Class::Starting;
    };
    // A user may be called like a process, so a client's title is known by its host; only a
    // sender's has one too.
    let is_client = title.split(' ').skip(2).any(is_host);
    let mut rest = Some(title);
    while let Some(title) = rest {
        let found = TITLES.iter().find(|(start, class)| {
            let fits = title
                .strip_prefix(start)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            fits && (!is_client || *class == Class::WalSender)
        });
        if let Some((_, class)) = found {
            return *class;
        }
        // The cluster's name may itself hold a colon.
        rest = title.split_once(": ").map(|(_, rest)| rest);
    }
    if is_client { Class::Client } else { Class::Other }
}

/// "[local]", or an address or a name with the port in brackets.
fn is_host(word: &str) -> bool {
    if word == "[local]" {
        return true;
    }
    word.strip_suffix(')')
        .and_then(|word| word.split_once('('))
        .is_some_and(|(host, port)| {
            !host.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn titles_have_classes() {
        let check = |title: &str, class: Class| assert_eq!(of_title(title), class, "{title}");
        check("postgres: checkpointer \0\0\0", Class::Checkpointer);
        check("postgres: background writer ", Class::BackgroundWriter);
        check("postgres: 18/main: walwriter ", Class::WalWriter);
        check("postgres: a: b: autovacuum launcher ", Class::Autovacuum);
        check("postgres: autovacuum worker shop", Class::Autovacuum);
        check("postgres: io worker 2", Class::IoWorker);
        check(
            "postgres: startup recovering 0000000100000000000000A1",
            Class::Startup,
        );
        check("postgres: parallel worker for PID 4711 ", Class::Parallel);
        check(
            "postgres: logical replication launcher ",
            Class::LogicalReplication,
        );
        check("postgres: logger ", Class::Logger);
        check("postgres: stats collector ", Class::Other);
        check("postgres: pg_cron launcher ", Class::Other);
        check("postgres: alice shop [local] idle", Class::Client);
        check("postgres: alice shop 10.0.0.7(51234) SELECT", Class::Client);
        check(
            "postgres: main: alice shop ::1(51234) idle in transaction",
            Class::Client,
        );
        check(
            "postgres: walsender rep 10.0.0.9(4242) streaming 0/3000148",
            Class::WalSender,
        );
        check(
            "postgres: main: walsender rep shop [local] START_REPLICATION",
            Class::WalSender,
        );
        // A user of this name.
        check("postgres: checkpointer shop [local] idle", Class::Client);
        check("postgres: client backend initializing", Class::Starting);
        check(
            "/usr/lib/postgresql/18/bin/postgres\0-D\0/data\0",
            Class::Starting,
        );
        check("", Class::Starting);
    }

    proptest! {
        #[test]
        fn no_title_makes_it_panic(title in ".{0,80}") {
            let _ = of_title(&title);
            let _ = of_title(&format!("postgres: {title}"));
        }
    }
}
