//! A PostgreSQL server: connection, facts, counters, settings, and the process that it is. It
//! starts and stops none.
//!
//! The raw changes of settings here are for pgdyno-knobs alone, which journals before it calls
//! them.

pub mod autoconf;
mod conninfo;
mod counters;
mod driver;
mod error;
mod facts;
mod find;
#[doc(hidden)]
pub mod fuzzed;
mod given;
mod here;
mod horizon;
mod libpq;
mod lists;
mod made;
mod own;
mod postmaster;
mod quoting;
pub mod series;
mod server;
mod settings;
mod statements;
mod storage;
mod tls;
mod users;
mod version;
mod wire;

pub use conninfo::{Conninfo, Lookup};
pub use counters::{
    COMMITS_PER_WORKER, Counters, OF_OTHERS, SessionLimits, Starts, Workers, counters, last_checkpoint,
    pause, session_limits, sessions_named, wait_for_leaving, wait_until_gone,
};
pub use driver::{
    Session, SessionError, begins_with_word, for_other_host, names_other_host, on_a_way_of, shown,
    without_word,
};
pub use error::ServerError;
pub use facts::{ServerFacts, Tallied, Tally, server_facts, shown_statement, tally};
pub use find::{Found, keeps_sessions};
pub use given::{
    Given, command_may_hold_password, is_meant_as_server, is_sandbox_name, may_hold_password, one_line,
    sql_may_hold_password, without_secret,
};
pub use here::{NotHere, Sought};
pub use horizon::{Holder, PiledUp, holders, next_transaction, piled_up};
pub use lists::{assigned, expected_list, is_empty_list, missing_libraries, one_spelling};
pub use made::{
    DatabaseObject, OBJECTS_MAX, ObjectKind, drop_made, drop_made_database, drops_of, has_database,
    is_made_database, made_objects, objects,
};
pub use own::marked;
pub use postgres;
pub use postmaster::{NoPostmaster, Postmaster};
pub use quoting::{literal, session_options};
pub use server::Server;
pub use settings::{
    Guc, GucBounds, SettingRights, alter_system_reset, alter_system_set, bounds, may_alter_system, may_set,
    other_owner, refused_by_server, reload, setting_rights, show,
};
pub use statements::StatementLook;
pub use storage::{StorageOption, qualified, set_storage, storage_of};
pub use users::User;
pub use version::{VERSION_MIN, Version};
