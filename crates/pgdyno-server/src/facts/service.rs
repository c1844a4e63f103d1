//! Who runs the server: managed services, and servers that are not quite PostgreSQL, by what they
//! show. The rules are data.

use super::ask::Signs;

/// What a service shows.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// A role that the service makes.
    Role(&'static str),
    /// A function of its own.
    Function(&'static str),
    /// A database of its own.
    Database(&'static str),
    /// Settings whose names begin so.
    Settings(&'static str),
    /// A word in `version()`.
    Version(&'static str),
}

/// A service and one of its signs. The first that fits names it, so the special come before the
/// general.
const RULES: &[(&str, Sign)] = &[
    ("Amazon Aurora", Sign::Function("aurora_version")),
    ("Amazon Redshift", Sign::Version("Redshift")),
    ("Amazon RDS", Sign::Settings("rds.")),
    ("Amazon RDS", Sign::Role("rdsadmin")),
    ("Amazon RDS", Sign::Database("rdsadmin")),
    ("Google AlloyDB", Sign::Role("alloydbsuperuser")),
    ("Google AlloyDB", Sign::Settings("alloydb.")),
    ("Google AlloyDB", Sign::Database("alloydbadmin")),
    ("Google Cloud SQL", Sign::Role("cloudsqlsuperuser")),
    ("Google Cloud SQL", Sign::Settings("cloudsql.")),
    ("Google Cloud SQL", Sign::Database("cloudsqladmin")),
    ("Azure Database for PostgreSQL", Sign::Role("azure_pg_admin")),
    ("Azure Database for PostgreSQL", Sign::Settings("azure.")),
    (
        "Azure Database for PostgreSQL",
        Sign::Database("azure_maintenance"),
    ),
    ("Azure Database for PostgreSQL", Sign::Database("azure_sys")),
    ("Neon", Sign::Role("neon_superuser")),
    ("Neon", Sign::Settings("neon.")),
    ("Supabase", Sign::Role("supabase_admin")),
    ("Aiven", Sign::Role("avnadmin")),
    ("DigitalOcean", Sign::Role("doadmin")),
    ("Timescale Cloud", Sign::Role("tsdbadmin")),
    ("YugabyteDB", Sign::Version("-YB-")),
    ("CockroachDB", Sign::Version("CockroachDB")),
    ("Greenplum", Sign::Version("Greenplum")),
    ("EDB Postgres Advanced Server", Sign::Version("EnterpriseDB")),
];

/// The service and the sign that gave it; `None` where no rule fits.
pub(super) fn recognise(signs: &Signs, setting_names: &[&str]) -> Option<(&'static str, String)> {
    let has = |names: &[String], name: &str| names.iter().any(|n| n == name);
    RULES.iter().find_map(|(service, sign)| {
        let shown = match sign {
            Sign::Role(name) => has(&signs.roles, name).then(|| format!("the role {name}")),
            Sign::Function(name) => has(&signs.functions, name).then(|| format!("the function {name}()")),
            Sign::Database(name) => has(&signs.databases, name).then(|| format!("the database {name}")),
            Sign::Settings(prefix) => setting_names
                .iter()
                .find(|name| name.starts_with(prefix))
                .map(|name| format!("the setting {name}")),
            Sign::Version(word) => signs
                .version
                .contains(word)
                .then(|| format!("\"{word}\" in version()")),
        };
        shown.map(|sign| (*service, sign))
    })
}

/// The names that the server is asked for, as SQL's lists: roles, functions, databases.
pub(super) fn fill_in(sql: &str) -> String {
    let list = |pick: fn(&Sign) -> Option<&'static str>| {
        let names = RULES.iter().filter_map(|(_, sign)| pick(sign));
        names
            .map(|name| format!("'{name}'"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    sql.replace(
        "{roles}",
        &list(|sign| match sign {
            Sign::Role(name) => Some(name),
            _ => None,
        }),
    )
    .replace(
        "{functions}",
        &list(|sign| match sign {
            Sign::Function(name) => Some(name),
            _ => None,
        }),
    )
    .replace(
        "{databases}",
        &list(|sign| match sign {
            Sign::Database(name) => Some(name),
            _ => None,
        }),
    )
}
