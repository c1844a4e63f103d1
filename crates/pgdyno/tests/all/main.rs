//! All integration tests of the program, in one binary: linked once, and its tests run beside one another.
//! Which of them must not meet is said by `common::machine`.

extern crate pgdyno_testing as common;

mod absences;
mod advise;
mod apply;
mod apply_lists;
mod apply_memory;
mod apply_refused;
mod arrows;
mod bench;
mod bench_stored;
mod bench_workers;
mod check;
mod circles;
mod compare;
mod connections;
mod data;
mod experiment;
mod facts;
mod file_systems;
mod guest;
mod hosts;
mod kill;
mod kill_apply;
mod knobs;
mod lab;
mod mends;
mod networks;
mod page;
mod poolers;
mod preflight;
mod profile_matrix;
mod profiles;
mod restart_log;
mod sandbox;
mod schema;
mod scripts;
mod series;
mod serve;
mod server_facts;
mod several;
mod store;
mod switchback;
mod users;
mod vocabulary;
mod watch;
