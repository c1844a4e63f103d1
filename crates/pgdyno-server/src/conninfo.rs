//! Where a server is: connection strings with libpq's environment and password file behind them.
//!
//! Source: PostgreSQL documentation, "Database Connection Control Functions" (strings, PG* variables, password file).

mod hosts;
mod keywords;

pub(crate) use hosts::Wanted;

use crate::server::ServerError;
use crate::tls::{self, Files, Mode, Roots};
use crate::users::User;
use hosts::Place;
use keywords::Words;
use pgdyno_host::LocalHost;
use postgres::Config;
use postgres::config::{ChannelBinding, Host, SslMode};
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How the environment is asked: only the program may read it.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Directories in which a local server's socket is looked for when no host is named.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const DEFAULT_PORT: u16 = 5432;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What "no limit" is where libpq has none: nobody waits longer for a server.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// A connection to one server. Displays as place, database and user; never as password.
#[derive(Clone)]
pub struct Conninfo {
    config: Config,
    tls: Option<Arc<ClientConfig>>,
    /// The words of the connection string that are about TLS, for writing it down.
    tls_words: String,
    ways: Ways,
    is_proxied: bool,
}

/// In which order TLS and plain text are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ways {
    One,
    TlsThenPlain,
    PlainThenTls,
}

/// The servers that a connection string names, and which of them is wanted.
pub(crate) struct Hosts {
    pub(crate) each: Vec<Conninfo>,
    pub(crate) wanted: Wanted,
    /// load_balance_hosts=random: in any order.
    pub(crate) shuffled: bool,
}

impl Hosts {
    /// Takes "key=value ..." or "postgresql://...", fills what is missing from the service, from PG* variables, then
    /// from libpq's defaults, and the passwords from PGPASSWORD or the password file.
    pub(crate) fn resolve(text: &str, environment: Lookup<'_>) -> Result<Hosts, ServerError> {
        let looks_right = text.is_empty()
            || text.contains('=')
            || text.starts_with("postgres://")
            || text.starts_with("postgresql://");
        if !looks_right {
            return Err(ServerError::NotATarget {
                word: text.to_owned(),
            });
        }
        let mut words = keywords::split(text).ok_or(ServerError::ConnectionString)?;
        if let Some(service) = service_of(&words, environment)? {
            words.fill(service);
        }
        if let Some(word) = words.not_done() {
            return Err(ServerError::NotDone { word });
        }
        let config = basis(&words, environment)?;
        let own = Own {
            words: &words.own,
            environment,
        };
        let secrecy = own.secrecy(&config)?;
        let each = own
            .places()?
            .into_iter()
            .map(|place| own.conninfo(config.clone(), &place, &secrecy))
            .collect::<Result<_, _>>()?;
        Ok(Hosts {
            each,
            wanted: own
                .named("target_session_attrs", "PGTARGETSESSIONATTRS", Wanted::named)?
                .unwrap_or(Wanted::Any),
            shuffled: own
                .named("load_balance_hosts", "PGLOADBALANCEHOSTS", |word| match word {
                    "disable" => Some(false),
                    "random" => Some(true),
                    _ => None,
                })?
                .unwrap_or(false),
        })
    }
}

/// What is the same for all hosts.
fn basis(words: &Words, environment: Lookup<'_>) -> Result<Config, ServerError> {
    // The parser's own words may quote a piece of a password, so they are not passed on.
    let mut config: Config = words
        .for_driver()
        .parse()
        .map_err(|_| ServerError::ConnectionString)?;
    if config.get_options().is_none()
        && let Some(options) = environment("PGOPTIONS")
    {
        config.options(&options);
    }
    if config.get_user().is_none() {
        let user = environment("PGUSER")
            .or_else(|| User::current(&LocalHost::new()).map(|user| user.name))
            .unwrap_or_else(|| "postgres".to_owned());
        config.user(&user);
    }
    if config.get_dbname().is_none() {
        let name = environment("PGDATABASE").or_else(|| config.get_user().map(str::to_owned));
        config.dbname(&name.unwrap_or_default());
    }
    match (
        config.get_channel_binding(),
        environment("PGCHANNELBINDING").as_deref(),
    ) {
        (ChannelBinding::Prefer, Some("require")) => {
            config.channel_binding(ChannelBinding::Require);
        }
        (ChannelBinding::Prefer, Some("disable")) => {
            config.channel_binding(ChannelBinding::Disable);
        }
        _ => {}
    }
    Ok(config)
}

/// How a connection over TCP is to be secured.
struct Secrecy {
    mode: Mode,
    tls: Option<Arc<ClientConfig>>,
    words: String,
}

/// The words that the driver is not given, with the environment behind them.
struct Own<'a> {
    words: &'a BTreeMap<String, String>,
    environment: Lookup<'a>,
}

impl Own<'_> {
    /// An empty word hides the variable and is none itself, as with libpq.
    fn word(&self, name: &str, variable: &str) -> Option<String> {
        self.words
            .get(name)
            .cloned()
            .or_else(|| (self.environment)(variable))
            .filter(|word| !word.is_empty())
    }

    /// A word of which there are few.
    fn named<T>(
        &self,
        name: &'static str,
        variable: &str,
        meaning: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ServerError> {
        self.word(name, variable)
            .map(|word| meaning(&word).ok_or(ServerError::Word { name, word }))
            .transpose()
    }

    fn places(&self) -> Result<Vec<Place>, ServerError> {
        let default_host = SOCKET_DIRECTORIES
            .iter()
            .find(|directory| Path::new(directory).is_dir())
            .unwrap_or(&"localhost");
        hosts::places(
            self.word("host", "PGHOST").as_deref(),
            self.word("hostaddr", "PGHOSTADDR").as_deref(),
            self.word("port", "PGPORT").as_deref(),
            default_host,
        )
        .map_err(|reason| ServerError::Hosts { reason })
    }

    /// libpq's connect_timeout: whole seconds, none or less for no limit.
    fn connect_timeout(&self) -> Result<Duration, ServerError> {
        let seconds = self.named("connect_timeout", "PGCONNECT_TIMEOUT", |word| {
            word.trim().parse::<i32>().ok()
        })?;
        Ok(match seconds.map(u64::try_from) {
            None => CONNECT_TIMEOUT,
            Some(Ok(seconds @ 1..)) => Duration::from_secs(seconds).min(CONNECT_TIMEOUT_MAX),
            Some(_) => CONNECT_TIMEOUT_MAX,
        })
    }

    fn conninfo(
        &self,
        mut config: Config,
        place: &Place,
        secrecy: &Secrecy,
    ) -> Result<Conninfo, ServerError> {
        if place.host.starts_with('@') {
            return Err(ServerError::Hosts {
                reason:
                    "it names a socket of the abstract namespace (@), where no server of pgdyno's listens"
                        .into(),
            });
        }
        // With an address, a directory is no socket but a name that nobody has.
        config.host(&place.host).port(place.port);
        if let Some(address) = place.address {
            config.hostaddr(address);
        }
        config.connect_timeout(self.connect_timeout()?);
        let config_binds = config.get_channel_binding() == ChannelBinding::Require;
        let mut conninfo = Conninfo {
            config,
            tls: secrecy.tls.clone(),
            tls_words: secrecy.words.clone(),
            is_proxied: false,
            ways: match secrecy.mode {
                // In plain text there is nothing to be bound to.
                _ if config_binds => Ways::One,
                Mode::Allow => Ways::PlainThenTls,
                Mode::Prefer => Ways::TlsThenPlain,
                _ => Ways::One,
            },
        };
        if conninfo.is_local() || secrecy.mode == Mode::Disable {
            conninfo = conninfo.without_tls();
        } else {
            conninfo.config.ssl_mode(match secrecy.mode {
                Mode::Disable | Mode::Allow | Mode::Prefer => SslMode::Prefer,
                Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
            });
        }
        if conninfo.config.get_password().is_none()
            && let Some(password) =
                (self.environment)("PGPASSWORD").or_else(|| self.passfile_password(&conninfo))
        {
            conninfo.config.password(password);
        }
        Ok(conninfo)
    }

    /// Sets TLS up as sslmode and its files say.
    fn secrecy(&self, config: &Config) -> Result<Secrecy, ServerError> {
        let usual = |file: &str| {
            let path = PathBuf::from((self.environment)("HOME")?)
                .join(".postgresql")
                .join(file);
            path.exists().then_some(path)
        };
        let roots = match self.word("sslrootcert", "PGSSLROOTCERT") {
            Some(word) if word == "system" => Roots::System,
            Some(path) => Roots::File(path.into()),
            None => usual("root.crt").map_or(Roots::None, Roots::File),
        };
        let mode = match self.word("sslmode", "PGSSLMODE") {
            Some(word) => Mode::named(&word).ok_or(ServerError::SslMode { word })?,
            None if roots == Roots::System => Mode::VerifyFull,
            None => Mode::Prefer,
        };
        if roots == Roots::System && !matches!(mode, Mode::VerifyFull | Mode::Disable) {
            return Err(ServerError::Tls {
                reason:
                    "sslrootcert=system without sslmode=verify-full would trust any certificate of any name"
                        .into(),
            });
        }
        let local = |place: &Place| place.address.is_none() && place.host.starts_with('/');
        if mode == Mode::Disable || self.places()?.iter().all(local) {
            return Ok(Secrecy {
                mode: Mode::Disable,
                tls: None,
                words: String::new(),
            });
        }
        let certificate = self
            .word("sslcert", "PGSSLCERT")
            .map_or_else(|| usual("postgresql.crt"), |path| Some(path.into()));
        let key = self
            .word("sslkey", "PGSSLKEY")
            .map_or_else(|| usual("postgresql.key"), |path| Some(path.into()));
        let certificate = match (certificate, key) {
            (None, _) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(certificate), None) => {
                return Err(ServerError::Tls {
                    reason: format!("{} has no key beside it (sslkey)", certificate.display()),
                });
            }
        };
        let files = Files {
            // Secrecy is taken where it is to be had; who is there is not asked.
            roots: if mode <= Mode::Prefer { Roots::None } else { roots },
            certificate,
        };
        Ok(Secrecy {
            mode,
            tls: Some(tls::client_config(mode, &files).map_err(|reason| ServerError::Tls { reason })?),
            words: self.tls_words(config),
        })
    }

    /// What was asked for about TLS, to be written down.
    fn tls_words(&self, config: &Config) -> String {
        let mut words = String::new();
        for (name, variable) in [
            ("sslmode", "PGSSLMODE"),
            ("sslrootcert", "PGSSLROOTCERT"),
            ("sslcert", "PGSSLCERT"),
            ("sslkey", "PGSSLKEY"),
        ] {
            if let Some(word) = self.word(name, variable) {
                words += &format!(" {name}={}", quoted(&word));
            }
        }
        match config.get_channel_binding() {
            ChannelBinding::Require => words += " channel_binding=require",
            ChannelBinding::Disable => words += " channel_binding=disable",
            _ => {}
        }
        words
    }

    fn passfile_password(&self, conninfo: &Conninfo) -> Option<String> {
        let path = self.word("passfile", "PGPASSFILE").or_else(|| {
            let home = (self.environment)("HOME")?;
            Some(format!("{home}/.pgpass"))
        })?;
        let open_to_others = std::fs::metadata(&path).is_ok_and(|m| m.mode() & 0o077 != 0);
        if open_to_others {
            // As libpq: a password file that others can read is not used.
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let (host, port) = match conninfo.host() {
            Host::Tcp(host) => (host, conninfo.port()),
            Host::Unix(directory)
                if SOCKET_DIRECTORIES
                    .iter()
                    .all(|usual| directory != Path::new(usual)) =>
            {
                (directory.display().to_string(), conninfo.port())
            }
            Host::Unix(_) => ("localhost".to_owned(), conninfo.port()),
        };
        let wanted = [&host, &port.to_string(), conninfo.database(), conninfo.user()];
        find_password(&text, &wanted)
    }
}

impl Conninfo {
    /// The one server that a connection string names. Nobody is asked: see [`crate::Found`] for a string that may
    /// name several.
    pub fn resolve(text: &str, environment: Lookup<'_>) -> Result<Conninfo, ServerError> {
        let mut each = Hosts::resolve(text, environment)?.each;
        match (each.pop(), each.len()) {
            (Some(one), 0) => Ok(one),
            (_, others) => Err(ServerError::Hosts {
                reason: format!("it names {} hosts, where one is meant", others + 1),
            }),
        }
    }

    /// What TLS is done with; `None` where it is not wanted.
    pub fn tls(&self) -> Option<&Arc<ClientConfig>> {
        self.tls.as_ref()
    }

    /// A connection that is known in full, as a sandbox's.
    pub fn from_config(config: Config) -> Conninfo {
        Conninfo {
            config,
            tls: None,
            tls_words: String::new(),
            ways: Ways::One,
            is_proxied: false,
        }
    }

    /// The same server without TLS.
    pub(crate) fn without_tls(mut self) -> Conninfo {
        self.config.ssl_mode(SslMode::Disable);
        Conninfo {
            tls: None,
            tls_words: " sslmode=disable".into(),
            ways: Ways::One,
            ..self
        }
    }

    /// The same server at one of its name's addresses.
    pub(crate) fn at(&self, address: IpAddr) -> Conninfo {
        let mut there = self.clone();
        there.config.hostaddr(address);
        there
    }

    /// The ways that sslmode allows, in its order.
    pub(crate) fn ways(&self) -> Vec<Conninfo> {
        match self.ways {
            Ways::One => vec![self.clone()],
            Ways::TlsThenPlain => vec![self.clone(), self.clone().without_tls()],
            Ways::PlainThenTls => vec![self.clone().without_tls(), self.clone()],
        }
    }

    /// Whether this is a way with TLS, where the server has it.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The configuration for a driver; it holds the password.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether it goes over a socket of this machine.
    pub fn is_local(&self) -> bool {
        self.address().is_none() && matches!(self.host(), Host::Unix(_))
    }

    /// Whether something stands between, a pooler perhaps: the server was asked, and saw the connection come in by
    /// another door than the one that was knocked at.
    pub fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// The same, behind something or not.
    pub(crate) fn proxied(self, is_proxied: bool) -> Conninfo {
        Conninfo { is_proxied, ..self }
    }

    /// The name of the host, or the directory of its socket.
    pub(crate) fn host(&self) -> Host {
        let host = self.config.get_hosts().first().cloned();
        host.unwrap_or_else(|| Host::Tcp("localhost".to_owned()))
    }

    /// Where the host is, if that is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.config.get_hostaddrs().first().copied()
    }

    pub(crate) fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(DEFAULT_PORT)
    }

    /// Host and port, or the socket's directory and port; and the address where it was chosen.
    pub fn place(&self) -> String {
        let (host, port) = (written(&self.host()), self.port());
        let place = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        match self.address().map(|address| address.to_string()) {
            Some(address) if address != host => format!("{place} ({address})"),
            _ => place,
        }
    }

    /// The database.
    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// The user.
    pub fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// A connection string without the password: what may be stored.
    pub fn without_password(&self) -> String {
        let address = self.address();
        let address = address.map_or_else(String::new, |address| format!(" hostaddr={address}"));
        format!(
            "host={}{address} port={} user={} dbname={}{}",
            quoted(&written(&self.host())),
            self.port(),
            quoted(self.user()),
            quoted(self.database()),
            self.tls_words
        )
    }
}

fn written(host: &Host) -> String {
    match host {
        Host::Tcp(host) => host.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The words of the service that is named in the string or by PGSERVICE.
fn service_of(words: &Words, environment: Lookup<'_>) -> Result<Option<Words>, ServerError> {
    let own = Own {
        words: &words.own,
        environment,
    };
    let Some(name) = own.word("service", "PGSERVICE") else {
        return Ok(None);
    };
    let of_user = own
        .word("servicefile", "PGSERVICEFILE")
        .or_else(|| environment("HOME").map(|home| format!("{home}/.pg_service.conf")));
    let of_all = environment("PGSYSCONFDIR").map(|directory| format!("{directory}/pg_service.conf"));
    let found = of_user
        .iter()
        .chain(&of_all)
        .find_map(|path| keywords::service(&std::fs::read_to_string(path).ok()?, &name));
    match found {
        Some(words) => Ok(Some(words)),
        None => Err(ServerError::Service {
            name,
            path: of_user.or(of_all).unwrap_or_default(),
        }),
    }
}

impl fmt::Display for Conninfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "database {} at {} as {}",
            self.database(),
            self.place(),
            self.user()
        )
    }
}

impl fmt::Debug for Conninfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The first line of a password file that fits: host:port:database:user:password, `*` fits all, `\` escapes.
fn find_password(text: &str, wanted: &[&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = split_escaped(line);
            let [parts @ .., password] = fields.as_slice() else {
                return None;
            };
            let fits = parts.len() == wanted.len()
                && parts
                    .iter()
                    .zip(wanted)
                    .all(|(part, wanted)| part == "*" || part == wanted);
            fits.then(|| password.clone())
        })
}

fn split_escaped(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, fields.last_mut()) {
            ('\\', Some(field)) => field.extend(characters.next()),
            // The password is the fifth field, and may hold further colons only escaped.
            (':', _) => fields.push(String::new()),
            (_, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| {
            pairs
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        }
    }

    #[test]
    fn variables_fill_what_the_string_leaves_out() {
        let env = environment(&[
            ("PGHOST", "db.example"),
            ("PGPORT", "6000"),
            ("PGUSER", "ann"),
            ("PGPASSWORD", "pw"),
        ]);
        let found = Conninfo::resolve("port=7000", &env).unwrap();
        assert_eq!(found.to_string(), "database ann at db.example:7000 as ann");
        assert_eq!(found.config().get_password(), Some(&b"pw"[..]));
    }

    #[test]
    fn a_password_is_never_shown() {
        let env = environment(&[]);
        let found = Conninfo::resolve("postgresql://ann:hunter2@db.example/x", &env).unwrap();
        let shown = format!(
            "{found} {found:?} {:?} {}",
            found.config(),
            found.without_password()
        );
        assert!(!shown.contains("hunter2"), "{shown}");
        for bad in [
            "host=a password=hunter2 secret hunter2",
            "postgresql://ann:hunter2@:::/x?hunter2",
        ] {
            if let Err(error) = Conninfo::resolve(bad, &env) {
                assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
            }
        }
    }

    /// What would lead questions and load to two servers, or past TLS, is refused.
    #[test]
    fn what_is_not_done_is_told() {
        let check = |text: &str, words: &str| {
            let error = Conninfo::resolve(text, &environment(&[]))
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{text}: {error}");
        };
        check("host=a,b", "2 hosts, where one is meant");
        check("host=a,b port=1,2,3", "that of ports 3");
        check("host=@abstract", "abstract namespace");
        check("host=db sslcrl=/x", "\"sslcrl\"");
        check(
            "host=db target_session_attrs=primarily",
            "target_session_attrs is \"primarily\"",
        );
        check("host=db connect_timeout=soon", "connect_timeout is \"soon\"");
        check(
            "host=db sslrootcert=system sslmode=require",
            "any certificate of any name",
        );
        check("host=db sslmode=verify-full", "no sslrootcert");
        let local = Conninfo::resolve("host=/tmp sslmode=require", &environment(&[])).unwrap();
        assert!(local.tls().is_none());
        let bound = Conninfo::resolve("host=db", &environment(&[("PGCHANNELBINDING", "require")])).unwrap();
        assert!(
            bound.without_password().contains("channel_binding=require"),
            "{}",
            bound.without_password()
        );
    }

    #[test]
    fn several_hosts_have_their_own_words() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "a:1:*:*:of a\n10.0.0.5:2:*:*:of c\n*:*:*:*:of others\n",
        )
        .unwrap();
        let text = format!(
            "postgres://ann@a:1,%2Ftmp,:2/x?hostaddr=,,10.0.0.5&sslmode=require&target_session_attrs=prefer-standby\
             &load_balance_hosts=random&passfile={}",
            file.path().display()
        );
        let hosts = Hosts::resolve(&text, &environment(&[("PGCONNECT_TIMEOUT", "3")])).unwrap();
        assert!(hosts.wanted == Wanted::PreferStandby && hosts.shuffled);
        let shown: Vec<String> = hosts.each.iter().map(Conninfo::place).collect();
        assert_eq!(shown, ["a:1", "/tmp:5432", "10.0.0.5:2"]);
        let passwords: Vec<_> = hosts
            .each
            .iter()
            .map(|each| each.config().get_password())
            .collect();
        assert_eq!(passwords, [&b"of a"[..], b"of others", b"of c"].map(Some));
        let secured: Vec<bool> = hosts.each.iter().map(Conninfo::has_tls).collect();
        assert_eq!(secured, [true, false, true]);
        for each in &hosts.each {
            assert_eq!(each.config().get_connect_timeout(), Some(&Duration::from_secs(3)));
        }
    }

    #[test]
    fn an_address_is_written_down_beside_its_name() {
        let check = |text: &str, place: &str, written: &str| {
            let found = Conninfo::resolve(text, &environment(&[])).unwrap();
            assert_eq!(found.place(), place);
            assert_eq!(found.without_password(), written);
            let again = Conninfo::resolve(written, &environment(&[])).unwrap();
            assert_eq!(again.without_password(), written);
        };
        check(
            "host=db hostaddr=10.0.0.5 user=ann",
            "db:5432 (10.0.0.5)",
            "host='db' hostaddr=10.0.0.5 port=5432 user='ann' dbname='ann'",
        );
        check(
            "hostaddr=::1 user=ann sslmode=disable",
            "[::1]:5432",
            "host='::1' hostaddr=::1 port=5432 user='ann' dbname='ann' sslmode=disable",
        );
    }

    #[test]
    fn prefer_and_allow_have_two_ways() {
        let check = |mode: &str, expected: &[bool]| {
            let found = Conninfo::resolve(&format!("host=db sslmode={mode}"), &environment(&[])).unwrap();
            let ways: Vec<bool> = found.ways().iter().map(Conninfo::has_tls).collect();
            assert_eq!(ways, expected, "{mode}");
        };
        check("disable", &[false]);
        check("allow", &[false, true]);
        check("prefer", &[true, false]);
        check("require", &[true]);
        let local = Conninfo::resolve("host=/tmp", &environment(&[])).unwrap();
        assert_eq!(local.ways().len(), 1);
    }

    #[test]
    fn a_word_is_not_a_target() {
        assert!(matches!(
            Conninfo::resolve("demo", &environment(&[])),
            Err(ServerError::NotATarget { .. })
        ));
    }

    proptest! {
        #[test]
        fn what_is_written_down_is_the_same_server(
            words in proptest::collection::vec(
                ("(host|hostaddr|port|user|dbname|sslmode|password|connect_timeout|target_session_attrs|x)",
                 "(a|,|/tmp|::1|10.0.0.5|7|prefer|allow|disable|any|' |\\\\'|[ -~]{0,6})"),
                0..6
            ),
            uri in "[a-z0-9:@/?&=%,.\\[\\]-]{0,40}",
        ) {
            let pairs: Vec<String> = words.iter().map(|(name, value)| format!("{name}={value}")).collect();
            for text in [pairs.join(" "), format!("postgresql://{uri}"), format!("postgres://{uri}?{}", pairs.join("&"))] {
                let Ok(found) = Conninfo::resolve(&text, &environment(&[])) else {
                    continue;
                };
                let written = found.without_password();
                let again = Conninfo::resolve(&written, &environment(&[])).unwrap();
                prop_assert_eq!(&written, &again.without_password());
                prop_assert_eq!(found.to_string(), again.to_string());
            }
        }
    }

    #[test]
    fn the_password_file_is_libpqs() {
        let text = "# comment\nother:5432:*:*:no\ndb\\:x:*:shop:ann:p\\:w\\\\d\n*:*:*:*:last\n";
        assert_eq!(
            find_password(text, &["db:x", "1", "shop", "ann"]).as_deref(),
            Some("p:w\\d")
        );
        assert_eq!(
            find_password(text, &["db", "1", "shop", "ann"]).as_deref(),
            Some("last")
        );
        assert_eq!(find_password("a:b\n", &["a", "b", "c", "d"]), None);
    }
}
