//! From a connection string, with libpq's environment, service and password file behind it, to the
//! servers it names.
//!
//! Source: PostgreSQL documentation, "Database Connection Control Functions" (strings, PG*
//! variables, password file).

use super::hosts::{self, Place, Wanted};
use super::keywords::{self, Words};
use super::passfile::find_password;
use super::{Conninfo, Lookup, TlsWord, Ways};
use crate::error::ServerError;
use crate::tls::{self, Files, Mode, Roots};
use crate::users::User;
use pgdyno_host::LocalHost;
use pgdyno_host::given_text;
use postgres::Config;
use postgres::config::{ChannelBinding, Host, SslMode, SslNegotiation};
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Directories in which a local server's socket is looked for when no host is named.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What "no limit" is where libpq has none: nobody waits longer for a server.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// The servers that a connection string names, and which of them is wanted.
pub(crate) struct Hosts {
    pub(crate) each: Vec<Conninfo>,
    pub(crate) wanted: Wanted,
    /// load_balance_hosts=random: in any order.
    pub(crate) shuffled: bool,
}

impl Hosts {
    /// Takes "key=value ..." or "postgresql://...", fills what is missing from the service, from
    /// PG* variables, then from libpq's defaults, and the passwords from PGPASSWORD or the password
    /// file.
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
    // The parser's own message may quote a piece of a password, so it is not passed on.
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
    negotiation: SslNegotiation,
    tls: Option<Arc<ClientConfig>>,
    said: Vec<TlsWord>,
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
        // With an address, a directory is not a socket but a name that nobody has.
        config.host(&place.host).port(place.port);
        if let Some(address) = place.address {
            config.hostaddr(address);
        }
        config.connect_timeout(self.connect_timeout()?);
        let config_binds = config.get_channel_binding() == ChannelBinding::Require;
        let mut conninfo = Conninfo {
            config,
            tls: secrecy.tls.clone(),
            said_of_tls: secrecy.said.clone(),
            is_proxied: false,
            is_on_this_machine: false,
            socket_user: None,
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
            conninfo.config.ssl_negotiation(secrecy.negotiation);
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
                negotiation: SslNegotiation::Postgres,
                tls: None,
                said: Vec::new(),
            });
        }
        let negotiation = self
            .named("sslnegotiation", "PGSSLNEGOTIATION", |word| match word {
                "postgres" => Some(SslNegotiation::Postgres),
                "direct" => Some(SslNegotiation::Direct),
                _ => None,
            })?
            .unwrap_or_default();
        if negotiation == SslNegotiation::Direct && mode < Mode::Require {
            return Err(ServerError::Tls {
                reason:
                    "sslnegotiation=direct asks nobody whether there is TLS; it needs sslmode=require or more"
                        .into(),
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
            negotiation,
            tls: Some(tls::client_config(mode, &files).map_err(|reason| ServerError::Tls { reason })?),
            said: self.said_of_tls(config),
        })
    }

    /// What was asked for about TLS, to be written down or given to a program.
    fn said_of_tls(&self, config: &Config) -> Vec<TlsWord> {
        let said = [
            ("sslmode", "PGSSLMODE"),
            ("sslnegotiation", "PGSSLNEGOTIATION"),
            ("sslrootcert", "PGSSLROOTCERT"),
            ("sslcert", "PGSSLCERT"),
            ("sslkey", "PGSSLKEY"),
        ];
        let word = |(keyword, variable)| {
            let value = self.word(keyword, variable)?;
            Some(TlsWord {
                keyword,
                variable,
                value,
            })
        };
        let binding = match config.get_channel_binding() {
            ChannelBinding::Require => Some("require"),
            ChannelBinding::Disable => Some("disable"),
            _ => None,
        };
        let binding = binding.map(|value| TlsWord {
            keyword: "channel_binding",
            variable: "PGCHANNELBINDING",
            value: value.to_owned(),
        });
        said.into_iter().filter_map(word).chain(binding).collect()
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
        let text = given_text(Path::new(&path)).ok()?;
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
        .find_map(|path| keywords::service(&given_text(Path::new(path)).ok()?, &name));
    match found {
        Some(words) => Ok(Some(words)),
        None => Err(ServerError::Service {
            name,
            path: of_user.or(of_all).unwrap_or_default(),
        }),
    }
}
