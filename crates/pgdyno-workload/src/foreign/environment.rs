//! The way to a server as libpq's variables and as placeholders. The password goes by its variable
//! alone.

use pgdyno_engine::Endpoint;
use postgres::config::{Host, SslMode};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What libpq connects to where nothing is said.
const PORT: u16 = 5432;

/// Variables of a child, and those that it is not to inherit (`None`): whatever would lead it
/// elsewhere.
pub fn libpq_variables(endpoint: &Endpoint) -> Vec<(&'static str, Option<OsString>)> {
    let config = &endpoint.config;
    let text = |value: Option<&str>| value.map(OsString::from);
    let address = config.get_hostaddrs().first();
    let sslmode = match (&endpoint.tls, config.get_ssl_mode()) {
        (_, SslMode::Require) => "require",
        (None, _) | (_, SslMode::Disable) => "disable",
        _ => "prefer",
    };
    let mut variables = vec![
        ("PGSERVICE", None),
        ("PGTARGETSESSIONATTRS", None),
        ("PGLOADBALANCEHOSTS", None),
        ("PGHOSTADDR", address.map(|address| address.to_string().into())),
        ("PGHOST", host(endpoint).map(PathBuf::into_os_string)),
        ("PGPORT", Some(port(endpoint).to_string().into())),
        ("PGSSLMODE", text(Some(sslmode))),
    ];
    let given = [
        ("PGUSER", text(config.get_user())),
        ("PGDATABASE", text(dbname(endpoint))),
        ("PGAPPNAME", text(config.get_application_name())),
        ("PGOPTIONS", text(config.get_options())),
        (
            "PGPASSWORD",
            config
                .get_password()
                .map(|bytes| OsString::from_vec(bytes.to_vec())),
        ),
    ];
    // What is not given is found by libpq in its variables and files, as it was for whoever made
    // the configuration.
    variables.extend(given.into_iter().filter(|(_, value)| value.is_some()));
    variables
}

/// Values of the command's placeholders that concern the server.
pub(super) fn values(endpoint: &Endpoint) -> Vec<(&'static str, Option<String>)> {
    vec![
        (
            "host",
            host(endpoint).map(|host| host.to_string_lossy().into_owned()),
        ),
        ("port", Some(port(endpoint).to_string())),
        ("user", endpoint.config.get_user().map(str::to_owned)),
        ("dbname", dbname(endpoint).map(str::to_owned)),
    ]
}

/// A directory as a placeholder's value.
pub(super) fn text_of(directory: Option<&Path>) -> Option<String> {
    Some(directory?.to_string_lossy().into_owned())
}

/// What nobody is to see.
pub(super) fn secret(endpoint: &Endpoint) -> Option<String> {
    let password = endpoint.config.get_password()?;
    Some(String::from_utf8_lossy(password).into_owned())
}

/// A name, an address, or a socket's directory.
fn host(endpoint: &Endpoint) -> Option<PathBuf> {
    match (
        endpoint.config.get_hosts().first(),
        endpoint.config.get_hostaddrs().first(),
    ) {
        (Some(Host::Tcp(name)), _) => Some(name.into()),
        (Some(Host::Unix(directory)), _) => Some(directory.clone()),
        (None, address) => address.map(|address| address.to_string().into()),
    }
}

fn port(endpoint: &Endpoint) -> u16 {
    endpoint.config.get_ports().first().copied().unwrap_or(PORT)
}

/// The database is called like the user where it is not said.
fn dbname(endpoint: &Endpoint) -> Option<&str> {
    endpoint
        .config
        .get_dbname()
        .or_else(|| endpoint.config.get_user())
}

/// What a program that was asked to end has for it, before it is asked more firmly.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Those of the way to the server, and the caller's.
pub(super) fn all_variables(
    endpoint: &Endpoint,
    others: &[(String, String)],
) -> Vec<(OsString, Option<OsString>)> {
    let own = libpq_variables(endpoint).into_iter();
    let own = own.map(|(name, value)| (name.into(), value));
    let others = others.iter();
    let others = others.map(|(name, value)| (name.into(), Some(value.into())));
    own.chain(others).collect()
}
