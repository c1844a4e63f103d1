//! Where a server is: connection strings with libpq's environment and password file behind them.
//!
//! Source: PostgreSQL documentation, "Database Connection Control Functions" (strings, PG* variables, password file).

mod keywords;

use crate::server::ServerError;
use crate::tls::{self, Files, Mode, Roots};
use crate::users::User;
use keywords::Words;
use pgdyno_host::LocalHost;
use postgres::Config;
use postgres::config::{ChannelBinding, Host, SslMode};
use std::collections::BTreeMap;
use std::fmt;
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

/// A resolved connection. Displays as place, database and user; never as password.
#[derive(Clone)]
pub struct Conninfo {
    config: Config,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// The words of the connection string that are about TLS, for writing it down.
    tls_words: String,
}

impl Conninfo {
    /// Takes "key=value ..." or "postgresql://...", fills what is missing from PG* variables, then from libpq's
    /// defaults, and the password from PGPASSWORD or the password file.
    pub fn resolve(text: &str, environment: Lookup<'_>) -> Result<Conninfo, ServerError> {
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
            if words.uri.is_some() {
                return Err(not_done("a service beside a URI; write it as key=value pairs"));
            }
            words.fill(service);
        }
        // The parser's own words may quote a piece of a password, so they are not passed on.
        let mut config: Config = words
            .for_driver()
            .parse()
            .map_err(|_| ServerError::ConnectionString)?;
        // Questions and load must go to one and the same server.
        if config.get_hosts().len() > 1 {
            return Err(not_done("several hosts; name the one that is meant"));
        }
        if !config.get_hostaddrs().is_empty() || environment("PGHOSTADDR").is_some() {
            return Err(not_done("hostaddr; put the address into host"));
        }
        if config.get_options().is_none()
            && let Some(options) = environment("PGOPTIONS")
        {
            config.options(&options);
        }
        let number = |name: &str| environment(name).and_then(|value| value.parse::<u16>().ok());
        if config.get_hosts().is_empty() {
            match environment("PGHOST") {
                Some(host) => config.host(&host),
                None => match SOCKET_DIRECTORIES.iter().find(|dir| Path::new(dir).is_dir()) {
                    Some(directory) => config.host_path(directory),
                    None => config.host("localhost"),
                },
            };
        }
        if config.get_ports().is_empty() {
            config.port(number("PGPORT").unwrap_or(DEFAULT_PORT));
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
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let own = words.own;
        let mut conninfo = Conninfo {
            config,
            tls: None,
            tls_words: String::new(),
        };
        conninfo.secure(&own, environment)?;
        if conninfo.config.get_password().is_none()
            && let Some(password) = environment("PGPASSWORD")
                .or_else(|| conninfo.passfile_password(own.get("passfile"), environment))
        {
            conninfo.config.password(password);
        }
        Ok(conninfo)
    }

    /// Sets TLS up as sslmode and its files say; not over a Unix socket, as libpq.
    fn secure(&mut self, own: &BTreeMap<String, String>, environment: Lookup<'_>) -> Result<(), ServerError> {
        let word = |name: &str, variable: &str| own.get(name).cloned().or_else(|| environment(variable));
        let usual = |file: &str| {
            let path = PathBuf::from(environment("HOME")?).join(".postgresql").join(file);
            path.exists().then_some(path)
        };
        let roots = match word("sslrootcert", "PGSSLROOTCERT") {
            Some(word) if word == "system" => Roots::System,
            Some(path) => Roots::File(path.into()),
            None => usual("root.crt").map_or(Roots::None, Roots::File),
        };
        let mode = match word("sslmode", "PGSSLMODE") {
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
        match (
            self.config.get_channel_binding(),
            environment("PGCHANNELBINDING").as_deref(),
        ) {
            (ChannelBinding::Prefer, Some("require")) => {
                self.config.channel_binding(ChannelBinding::Require);
            }
            (ChannelBinding::Prefer, Some("disable")) => {
                self.config.channel_binding(ChannelBinding::Disable);
            }
            _ => {}
        }
        let local = matches!(self.config.get_hosts().first(), Some(Host::Unix(_)));
        if local || mode == Mode::Disable {
            self.config.ssl_mode(SslMode::Disable);
            self.tls_words = " sslmode=disable".into();
            return Ok(());
        }
        let certificate =
            word("sslcert", "PGSSLCERT").map_or_else(|| usual("postgresql.crt"), |path| Some(path.into()));
        let key =
            word("sslkey", "PGSSLKEY").map_or_else(|| usual("postgresql.key"), |path| Some(path.into()));
        for (name, variable) in [
            ("sslmode", "PGSSLMODE"),
            ("sslrootcert", "PGSSLROOTCERT"),
            ("sslcert", "PGSSLCERT"),
            ("sslkey", "PGSSLKEY"),
        ] {
            if let Some(word) = word(name, variable) {
                self.tls_words += &format!(" {name}={}", quoted(&word));
            }
        }
        match self.config.get_channel_binding() {
            ChannelBinding::Require => self.tls_words += " channel_binding=require",
            ChannelBinding::Disable => self.tls_words += " channel_binding=disable",
            _ => {}
        }
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
            roots: if mode == Mode::Prefer { Roots::None } else { roots },
            certificate,
        };
        let config = tls::client_config(mode, &files).map_err(|reason| ServerError::Tls { reason })?;
        self.tls = Some(config);
        self.config.ssl_mode(match mode {
            Mode::Prefer | Mode::Disable => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        Ok(())
    }

    /// What TLS is done with; `None` where it is not wanted.
    pub fn tls(&self) -> Option<&Arc<rustls::ClientConfig>> {
        self.tls.as_ref()
    }

    /// A connection that is known in full, as a sandbox's.
    pub fn from_config(config: Config) -> Conninfo {
        Conninfo {
            config,
            tls: None,
            tls_words: String::new(),
        }
    }

    /// The configuration for a driver; it holds the password.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Host and port, or the socket's directory and port.
    pub fn place(&self) -> String {
        let port = self.config.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
        match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => format!("{host}:{port}"),
            Some(Host::Unix(directory)) => format!("{}:{port}", directory.display()),
            None => format!("localhost:{port}"),
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
        let port = self.config.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(directory)) => directory.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!(
            "host={} port={port} user={} dbname={}{}",
            quoted(&host),
            quoted(self.user()),
            quoted(self.database()),
            self.tls_words
        )
    }

    fn passfile_password(&self, named: Option<&String>, environment: Lookup<'_>) -> Option<String> {
        let path = named
            .cloned()
            .or_else(|| environment("PGPASSFILE"))
            .or_else(|| environment("HOME").map(|home| format!("{home}/.pgpass")))?;
        let open_to_others = std::fs::metadata(&path).is_ok_and(|m| m.mode() & 0o077 != 0);
        if open_to_others {
            // As libpq: a password file that others can read is not used.
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            _ => "localhost".to_owned(),
        };
        let port = self
            .config
            .get_ports()
            .first()
            .copied()
            .unwrap_or(DEFAULT_PORT)
            .to_string();
        find_password(&text, &[&host, &port, self.database(), self.user()])
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn not_done(what: &'static str) -> ServerError {
    ServerError::NotDone { what }
}

/// The words of the service that is named in the string or by PGSERVICE.
fn service_of(words: &Words, environment: Lookup<'_>) -> Result<Option<Words>, ServerError> {
    let named = words.own.get("service").cloned();
    let Some(name) = named.or_else(|| environment("PGSERVICE")) else {
        return Ok(None);
    };
    let path = environment("PGSERVICEFILE")
        .or_else(|| environment("HOME").map(|home| format!("{home}/.pg_service.conf")))
        .unwrap_or_default();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    match keywords::service(&text, &name) {
        Some(words) => Ok(Some(words)),
        None => Err(ServerError::Service { name, path }),
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
        check("hostaddr=10.0.0.5 sslmode=verify-full", "hostaddr");
        check("host=/tmp,db.example sslmode=verify-full", "several hosts");
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
    fn a_word_is_not_a_target() {
        assert!(matches!(
            Conninfo::resolve("demo", &environment(&[])),
            Err(ServerError::NotATarget { .. })
        ));
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
