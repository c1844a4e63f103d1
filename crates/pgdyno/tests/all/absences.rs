//! What must never be (ARCHITECTURE.md), as far as the code shows it. Lints of the compiler do the
//! rest: printing, exiting and reading the environment outside the program are errors there
//! (clippy.toml, Cargo.toml).
//!
//! An absence is a `Rule` in a table. A test checks a table with `hold`, which also plants the
//! violations that each rule names.

pub(crate) mod code;

use std::collections::BTreeSet;

use code::{CODE, Mentioned, Source};

/// What code may mention. A path's parts are consecutive segments of it, with its `use`
/// declarations resolved: `fs::read` is in `std::fs::read` and, after `use std::fs as files`, in
/// `files::read`.
#[derive(Debug, Clone, Copy)]
enum What {
    Path(&'static str),
    /// A method of this name, or a function at the end of a path.
    Call(&'static str),
    /// A function at the end of a path, called without arguments.
    BareCall(&'static str),
    Method(&'static str),
    Macro(&'static str),
    /// A literal with this text in it.
    Text(&'static str),
    /// A literal of which this holds.
    Literal(fn(&str) -> bool),
}

impl What {
    fn is(&self, mentioned: &Mentioned) -> bool {
        match (self, mentioned) {
            (Self::Path(wanted), Mentioned::Path { segments, .. } | Mentioned::Macro(segments)) => {
                let wanted: Vec<&str> = wanted.split("::").collect();
                segments.windows(wanted.len()).any(|part| part == wanted) || is_in_glob(&wanted, segments)
            }
            (Self::Call(name), Mentioned::Path { segments, .. }) => {
                segments.len() > 1 && segments.last().is_some_and(|last| last == name)
            }
            (Self::Call(name) | Self::Method(name), Mentioned::Method(method)) => method == name,
            (Self::BareCall(name), Mentioned::Path { segments, bare_call }) => {
                *bare_call && segments.len() > 1 && segments.last().is_some_and(|last| last == name)
            }
            (Self::Macro(name), Mentioned::Macro(path)) => path.last().is_some_and(|last| last == name),
            (Self::Text(part), Mentioned::Literal(text)) => text.contains(part),
            (Self::Literal(holds), Mentioned::Literal(text)) => holds(text),
            _ => false,
        }
    }
}

/// Whether a glob import brings what a path's last part names.
fn is_in_glob(wanted: &[&str], segments: &[String]) -> bool {
    let (Some((star, module)), Some((_, home))) = (segments.split_last(), wanted.split_last()) else {
        return false;
    };
    star == "*"
        && !home.is_empty()
        && module.len() >= home.len()
        && module[module.len() - home.len()..] == *home
}

/// Something that must not be in code.
struct Rule {
    what: &'static [What],
    /// Beginnings of paths below `crates/` that it holds for.
    within: &'static [&'static str],
    /// Beginnings of paths below `crates/` where it may be nevertheless, and why. One where it is
    /// not is an error.
    except: &'static [(&'static str, &'static str)],
    /// Violations: each is found, and each of `what` is in one.
    planted: &'static [&'static str],
}

const EVERYWHERE: &[&str] = &["pgdyno"];

impl Rule {
    fn is_broken_by(&self, source: &Source) -> Vec<String> {
        let mentions = source.mentions.iter();
        mentions
            .filter_map(|mention| {
                let what = self.what.iter().find(|what| what.is(&mention.what))?;
                let Source { path, .. } = source;
                Some(format!("{path}:{}: {what:?} in {:?}", mention.line, mention.what))
            })
            .collect()
    }

    /// What is wrong with the code by this rule, and with the rule by the code.
    fn complaints(&self, sources: &[Source]) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut used = BTreeSet::new();
        for source in sources {
            if !self.within.iter().any(|start| source.path.starts_with(start)) {
                continue;
            }
            let broken = self.is_broken_by(source);
            match self
                .except
                .iter()
                .find(|(start, _)| source.path.starts_with(start))
            {
                Some((start, _)) if !broken.is_empty() => _ = used.insert(*start),
                Some(_) => {}
                None => complaints.extend(broken),
            }
        }
        let unused = self.except.iter().filter(|(start, _)| !used.contains(start));
        complaints.extend(unused.map(|(start, why)| format!("{start} needs no exception ({why})")));
        complaints
    }

    /// That the rule sees what is planted, and does not see it in code for tests, in a comment or
    /// in a text.
    fn is_tested(&self) {
        let found = |text: &str| self.is_broken_by(&Source::of("planted", text));
        for planted in self.planted {
            assert!(!found(planted).is_empty(), "not found: {planted}");
            let after = format!("#[cfg(test)] mod tests {{}} struct Between; {planted}");
            assert!(!found(&after).is_empty(), "not found: {after}");
            for aside in [
                format!("#[cfg(test)] mod tests {{ {planted} }}"),
                format!("#[cfg(all(test, unix))] mod rig {{ {planted} }}"),
                format!("struct Before; impl Before {{ #[cfg(test)] fn f() {{ {planted} }} }}"),
                format!("#[test] fn f() {{ {planted} }}"),
                format!("/// {planted}\nstruct Commented; /* {planted} */"),
            ] {
                assert_eq!(found(&aside), Vec::<String>::new(), "{aside}");
            }
        }
        for what in self.what {
            let mut mentions = self
                .planted
                .iter()
                .flat_map(|text| Source::of("planted", text).mentions);
            assert!(
                mentions.any(|mention| what.is(&mention.what)),
                "{what:?} is not planted"
            );
        }
    }
}

fn hold(rules: &[Rule]) {
    for rule in rules {
        rule.is_tested();
        let complaints = rule.complaints(&CODE.sources);
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}

#[test]
fn the_program_reads_an_errors_class_and_hint_from_the_error() {
    hold(&[Rule {
        what: &[What::Method("downcast_ref"), What::Method("downcast")],
        within: &["pgdyno/src/"],
        except: &[],
        planted: &["fn f(e: Box<dyn Error>) { e.downcast_ref::<A>(); e.downcast::<B>(); }"],
    }]);
}

/// A package of crates.io has no other directory than the crate's own. Which depth leaves it
/// differs by file; packaging finds the rest.
#[test]
fn nothing_is_compiled_in_from_outside_of_its_crate() {
    hold(&[Rule {
        what: &[What::Text("../../../")],
        within: EVERYWHERE,
        except: &[],
        planted: &["const A: &str = include_str!(\"../../../catalog/releases.toml\");"],
    }]);
}

#[test]
fn only_knobs_changes_a_host_or_a_servers_settings() {
    hold(&[
        Rule {
            what: &[What::Call("write_raw")],
            within: EVERYWHERE,
            except: &[
                (
                    "pgdyno-host/src/cgroup.rs",
                    "a sandbox's own control group is not a setting of the host",
                ),
                (
                    "pgdyno-knobs/src/change/kernel.rs",
                    "changes, after the saved state is on disk",
                ),
                ("pgdyno-knobs/src/restore.rs", "restores"),
            ],
            planted: &[
                "fn f(h: &dyn HostAccess) { h.write_raw(\"/proc\", \"1\"); }",
                "fn f(h: &LocalHost) { HostAccess::write_raw(h, \"/proc\", \"1\"); }",
                "fn f(h: &LocalHost) { assert!(h.write_raw(\"/proc\", \"1\").is_ok()); }",
            ],
        },
        Rule {
            what: &[
                What::Call("replace_raw"),
                What::Call("hold_raw"),
                What::Call("bind_raw"),
            ],
            within: EVERYWHERE,
            except: &[("pgdyno-knobs/", "changes and restores")],
            planted: &["fn f(h: &LocalHost) { h.replace_raw(a, b); h.hold_raw(a); h.bind_raw(a, b); }"],
        },
        Rule {
            what: &[
                What::Call("alter_system_set"),
                What::Call("alter_system_reset"),
                What::Call("reload_by_signal"),
                What::Call("set_storage"),
            ],
            within: EVERYWHERE,
            except: &[
                ("pgdyno-knobs/", "changes and restores"),
                ("pgdyno-server/", "has the statements"),
            ],
            planted: &[
                "fn f(s: &Server) { s.alter_system_set(a, b); s.alter_system_reset(a); s.set_storage(a, b); }",
                "fn f(h: &LocalHost) { Postmaster::reload_by_signal(h, a); }",
            ],
        },
        Rule {
            what: &[What::Text("ALTER SYSTEM")],
            within: EVERYWHERE,
            except: &[
                ("pgdyno-knobs/", "changes and restores"),
                ("pgdyno-server/", "has the statements"),
                ("pgdyno-advice/src/advice/procedure.rs", "steps for people"),
                ("pgdyno-advice/src/profile/export.rs", "files for other programs"),
            ],
            planted: &["const RELOADED: &str = \"ALTER SYSTEM SET work_mem = '1GB'\";"],
        },
        Rule {
            what: &[What::Path("autoconf::replace")],
            within: EVERYWHERE,
            except: &[
                ("pgdyno-knobs/src/change.rs", "changes"),
                ("pgdyno-knobs/src/restore.rs", "restores"),
            ],
            planted: &[
                "fn f() { pgdyno_server::autoconf::replace(a, b); }",
                "use pgdyno_server::autoconf::{self as file}; fn f() { file::replace(a, b); }",
            ],
        },
    ]);
}

#[test]
fn stats_records_judgement_and_advice_do_no_io_and_read_no_clock() {
    hold(&[Rule {
        what: &[
            What::Path("std::fs"),
            What::Path("std::io"),
            What::Path("std::net"),
            What::Path("std::time"),
            What::Path("std::process"),
            What::Path("std::thread"),
        ],
        within: &["pgdyno-stats/", "pgdyno-judge/"],
        except: &[],
        planted: &[
            "use std::{fs, io::Read, net::*}; fn f() { ::std::time::Instant::now(); }",
            "fn f() { format!(\"{}\", std::process::id()); std::thread::yield_now(); }",
        ],
    }]);
    // Records pack their columns by readers and writers of memory, and an expression writes its
    // text into memory.
    hold(&[Rule {
        what: &[
            What::Path("std::fs"),
            What::Path("std::net"),
            What::Path("std::time"),
            What::Path("std::process"),
            What::Path("std::thread"),
        ],
        within: &["pgdyno-record/", "pgdyno-advice/"],
        except: &[],
        planted: &[
            "use std::{fs, net::*, time::Instant}; fn f() { format!(\"{}\", std::process::id()); std::thread::yield_now(); }",
        ],
    }]);
    // What advice takes from crates that reach hosts and servers is data: facts, settings, the
    // catalogue.
    hold(&[Rule {
        what: &[
            What::Path("pgdyno_host::HostAccess"),
            What::Path("pgdyno_host::LocalHost"),
            What::Path("pgdyno_host::Directory"),
            What::Path("pgdyno_host::given_bytes"),
            What::Path("pgdyno_host::given_text"),
            What::Path("pgdyno_host::host_facts"),
            What::Path("pgdyno_server::Server"),
            What::Path("pgdyno_server::Conninfo"),
            What::Path("pgdyno_server::Session"),
            What::Path("pgdyno_server::postgres"),
            What::Path("pgdyno_knobs::Reader"),
            What::Path("pgdyno_knobs::Changer"),
            What::Path("pgdyno_knobs::Restorer"),
            What::Path("pgdyno_knobs::Journal"),
            What::Path("pgdyno_knobs::Target"),
        ],
        within: &["pgdyno-advice/"],
        except: &[],
        planted: &[
            "use pgdyno_host::{Directory, HostAccess, LocalHost, given_bytes, given_text, host_facts};",
            "use pgdyno_server::{Conninfo, Server, Session, postgres};",
            "use pgdyno_knobs::{Changer, Journal, Reader, Restorer, Target};",
        ],
    }]);
}

#[test]
fn sql_about_results_lives_in_the_store_alone() {
    hold(&[Rule {
        what: &[What::Path("rusqlite")],
        within: EVERYWHERE,
        except: &[("pgdyno-store/", "is the store")],
        planted: &["use rusqlite::Connection;", "struct Kept(rusqlite::Connection);"],
    }]);
}

/// Behind a pooler the next message may be another session's: what is asked goes by the simple
/// protocol, and settings hold for a transaction. Where it is known that there is none, sessions
/// are set up.
#[test]
fn sessions_that_may_be_a_poolers_are_neither_prepared_nor_set() {
    const OWN_SESSIONS: (&str, &str) = (
        "pgdyno-store/",
        "a store is never reached through a pooler that shares sessions: store_place.rs",
    );
    hold(&[
        Rule {
            what: &[
                What::Method("query"),
                What::Path("Client::query"),
                What::Call("query_one"),
                What::Call("query_opt"),
                What::Call("query_raw"),
                What::Call("prepare_typed"),
            ],
            within: EVERYWHERE,
            except: &[
                OWN_SESSIONS,
                ("pgdyno-server/src/driver/session.rs", "a session by itself"),
                (
                    "pgdyno-engine/src/program.rs",
                    "the load's own layout of messages",
                ),
                ("pgdyno-serve/src/door.rs", "a web address has one"),
            ],
            planted: &[
                "fn f(c: &Client) { c.query(a, &[]); c.query_one(a, &[]); c.query_opt(a, &[]); }",
                "async fn f(c: &Client) { Client::query(c, a, []).await; Client::query_raw(c, a, []).await; c.prepare_typed(a, &[]).await; }",
            ],
        },
        Rule {
            what: &[What::Literal(|text| {
                text.strip_prefix("SET ")
                    .is_some_and(|rest| !rest.starts_with("LOCAL "))
            })],
            within: EVERYWHERE,
            except: &[
                OWN_SESSIONS,
                ("pgdyno-lab/src/check/commit.rs", "where there is no pooler"),
                ("pgdyno-server/src/series/link.rs", "likewise"),
                ("pgdyno-server/src/server.rs", "likewise"),
            ],
            planted: &["fn f(s: &Session) { s.run(&format!(\"SET work_mem = {}\", 1)); }"],
        },
    ]);
}

/// The code knows kinds of knob, never a knob's name. An action of the kernel and a parameter that
/// is only read are no knobs.
#[test]
fn no_knobs_name_stands_in_the_code_that_turns_knobs() {
    use std::sync::LazyLock;
    static IDS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let catalogue = pgdyno_knobs::Catalogue::shipped().expect("the catalogue");
        catalogue.iter().map(|knob| knob.id.to_string()).collect()
    });
    hold(&[Rule {
        what: &[What::Literal(|text| IDS.contains(text))],
        within: &[
            "pgdyno-knobs/",
            "pgdyno-advice/",
            "pgdyno-lab/",
            "pgdyno/src/commands/tune",
        ],
        except: &[],
        planted: &["fn f(knob: &Knob) -> bool { matches!(knob.id.as_str(), \"shared_buffers\") }"],
    }]);
}

/// That nothing is allocated is counted by pgdyno-workload's tests, while the engine drives what it
/// compiles. Every file of the engine counts, and of what compiles and executes transactions; a new
/// one too, but for the exceptions.
#[test]
fn nothing_on_the_load_path_locks_or_prints() {
    hold(&[
        Rule {
            what: &[
                What::Path("Mutex"),
                What::Path("RwLock"),
                What::Path("Condvar"),
                What::Path("sync::*"),
            ],
            within: &["pgdyno-engine/src/", "pgdyno-workload/src/"],
            except: &[
                (
                    "pgdyno-engine/src/gate.rs",
                    "threads wait for each other before a load",
                ),
                ("pgdyno-workload/src/data/jobs.rs", "and while data is made"),
            ],
            planted: &["use std::sync::{Mutex, RwLock, *}; struct Shared { waits: std::sync::Condvar }"],
        },
        Rule {
            what: &[
                What::Macro("println"),
                What::Macro("eprintln"),
                What::Path("tracing"),
            ],
            within: &["pgdyno-engine/src/", "pgdyno-workload/src/"],
            except: &[],
            planted: &["fn f() { println!(\"a\"); eprintln!(\"b\"); tracing::info!(\"c\"); }"],
        },
    ]);
}

/// What is driven is compiled before the load: the engine reads no files for it, starts no
/// programs, and asks for no environment.
#[test]
fn the_engine_knows_neither_files_nor_programs() {
    hold(&[Rule {
        what: &[
            What::Path("std::fs"),
            What::Path("std::process"),
            What::Path("std::env"),
            What::Path("given_file"),
        ],
        within: &["pgdyno-engine/src/"],
        except: &[],
        planted: &[
            "use std::{env, fs}; fn f() { std::process::Command::new(\"psql\"); pgdyno_host::given_file::read(a); }",
        ],
    }]);
}

/// A child writes to this process's standard error where nobody says otherwise. Code that starts
/// one by `spawn` or `status` sets its standard error; `output` makes pipes of both by itself.
#[test]
fn no_child_inherits_standard_error() {
    const STARTS: [What; 2] = [What::Method("spawn"), What::Method("status")];
    let inherits = |source: &Source| {
        let has = |what: What| source.mentions.iter().any(|mention| what.is(&mention.what));
        has(What::Path("Command::new")) && STARTS.into_iter().any(has) && !has(What::Method("stderr"))
    };
    for planted in [
        "use std::process::Command; fn f() { Command::new(\"a\").arg(\"b\").status(); }",
        "use std::process; fn f() { let mut c = process::Command::new(\"a\"); c.stdout(Stdio::null()); c.spawn(); }",
    ] {
        assert!(inherits(&Source::of("planted", planted)), "{planted}");
    }
    for fine in [
        "use std::process::Command; fn f() { Command::new(\"a\").output(); }",
        "use std::process::Command; fn f() { Command::new(\"a\").stderr(Stdio::null()).spawn(); }",
    ] {
        assert!(!inherits(&Source::of("fine", fine)), "{fine}");
    }
    let sources = CODE.sources.iter().filter(|source| inherits(source));
    let found: Vec<&str> = sources.map(|source| source.path.as_str()).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// All output goes through `pgdyno/src/output.rs`, which cleans it of what a terminal obeys and of
/// passwords. The lints in clippy.toml forbid the functions; here no file may set them aside but
/// these two, and no other way may be opened.
#[test]
fn nothing_is_printed_past_the_cleaning() {
    // The program, and what of it is a crate of its own.
    const PROGRAM: &[&str] = &["pgdyno/", "pgdyno-serve/", "pgdyno-watch/"];
    const CLEANING: (&str, &str) = ("pgdyno/src/output.rs", "cleans what is printed");
    const VIEW: (&str, &str) = ("pgdyno/src/terminal.rs", "draws what is clean already");
    hold(&[
        Rule {
            what: &[What::Path("io::stdout"), What::Path("io::stderr")],
            within: EVERYWHERE,
            except: &[CLEANING, VIEW],
            planted: &[
                "use std::io; fn f() { io::stdout(); }",
                "use std::io::stderr as err; fn f() { err(); }",
            ],
        },
        Rule {
            what: &[
                What::Macro("print"),
                What::Macro("println"),
                What::Macro("eprint"),
                What::Macro("eprintln"),
                What::Macro("dbg"),
                What::Path("Stdio::inherit"),
                What::Text("/dev/tty"),
                What::Text("/dev/stdout"),
                What::Text("/dev/stderr"),
                What::Text("/proc/self/fd"),
                What::Call("from_raw_fd"),
                What::Path("tracing_subscriber::fmt"),
                What::Path("clap::Error::exit"),
                What::Method("set_prefix"),
                What::Method("set_message"),
                What::Call("try_get_matches"),
            ],
            within: PROGRAM,
            except: &[CLEANING],
            planted: &[
                "fn f() { print!(\"\"); println!(); std::eprint!(\"\"); vec![eprintln!(), dbg!()]; }",
                "use std::process::Stdio as To; fn f(c: &mut Command) { c.stderr(To::inherit()); }",
                "const OUT: [&str; 4] = [\"/dev/tty\", \"/dev/stdout\", \"/dev/stderr\", \"/proc/self/fd/1\"];",
                "fn f() { unsafe { File::from_raw_fd(1) }; tracing_subscriber::fmt().init(); }",
                "use clap::Error as ClapError; fn f(e: ClapError) { ClapError::exit(&e); }",
                "fn f(b: &ProgressBar) { b.set_prefix(\"a\"); b.set_message(\"b\"); }",
                "fn f(c: Command) { c.try_get_matches(); }",
            ],
        },
        // The command line alone is parsed without a text: what clap prints of its errors is
        // cleaned, too.
        Rule {
            what: &[What::BareCall("parse")],
            within: PROGRAM,
            except: &[],
            planted: &["fn f() { let cli = Cli::parse(); }"],
        },
        Rule {
            what: &[What::Path("clippy::disallowed_methods")],
            within: PROGRAM,
            except: &[("pgdyno/src/context.rs", "reads the environment"), CLEANING, VIEW],
            planted: &["#[expect(clippy::disallowed_methods, reason = \"printed\")] fn f() {}"],
        },
    ]);
}

/// Root reads and writes files by handles of their directories (`pgdyno_host::Directory`), so that
/// a user who owns a directory leads it nowhere. A path by its name is for files that nobody else
/// can exchange.
#[test]
fn files_are_reached_by_handles_of_their_directories() {
    hold(&[Rule {
        what: &[
            What::Path("fs::read"),
            What::Path("fs::read_to_string"),
            What::Path("fs::read_dir"),
            What::Path("fs::write"),
            What::Path("fs::copy"),
            What::Path("fs::rename"),
            What::Path("fs::hard_link"),
            What::Path("fs::remove_file"),
            What::Path("fs::remove_dir"),
            What::Path("fs::remove_dir_all"),
            What::Path("fs::create_dir"),
            What::Path("fs::create_dir_all"),
            What::Path("fs::read_link"),
            What::Path("fs::metadata"),
            What::Path("fs::symlink_metadata"),
            What::Path("fs::set_permissions"),
            What::Path("DirBuilder::new"),
            What::Path("File::open"),
            What::Path("File::create"),
            What::Path("File::create_new"),
            What::Path("File::options"),
            What::Path("OpenOptions::new"),
            What::Call("symlink"),
            What::Call("chown"),
            What::Call("canonicalize"),
            What::Path("rustix::fs::CWD"),
            What::Path("rustix::fs::open"),
            What::Path("rustix::fs::stat"),
            What::Path("rustix::fs::lstat"),
            What::Path("rustix::fs::chmod"),
            What::Path("rustix::fs::mkdir"),
            What::Path("rustix::fs::rename"),
            What::Path("rustix::fs::link"),
            What::Path("rustix::fs::unlink"),
            What::Path("rustix::fs::rmdir"),
        ],
        within: EVERYWHERE,
        except: &[
            ("pgdyno-host/src/beneath/", "the way by handles"),
            (
                "pgdyno-host/src/given_file.rs",
                "what a user names is read wherever it is, and devices are written by name",
            ),
            (
                "pgdyno-host/src/access.rs",
                "/proc and /sys, which hold no file of a user's",
            ),
            ("pgdyno-host/src/cgroup.rs", "/sys/fs/cgroup, likewise"),
            (
                "pgdyno-host/src/probe/own_file.rs",
                "its own open file, through /proc/self/fd",
            ),
            (
                "pgdyno-knobs/src/journal",
                "pgdyno's own directory, whose files it checks by itself",
            ),
            (
                "pgdyno-server/src/conninfo/",
                "the user's own password and service files",
            ),
            ("pgdyno-server/src/tls.rs", "the user's own key"),
            ("pgdyno-sandbox/src/pooler.rs", "/dev/urandom"),
            (
                "pgdyno-sandbox/src/sandbox/binaries.rs",
                "programs, which are only run",
            ),
            ("pgdyno-sandbox/src/sandbox/sources.rs", "pgdyno's own cache"),
            (
                "pgdyno-sandbox/src/sandbox/file_system.rs",
                "a sandbox's directory, which is root's",
            ),
            ("pgdyno-sandbox/src/sandbox/file_system/tools.rs", "likewise"),
            ("pgdyno-sandbox/src/sandbox/network.rs", "likewise"),
            (
                "pgdyno-store/src/store/sqlite",
                "SQLite takes a path; named.rs looks at what it names",
            ),
            (
                "pgdyno-store/src/store/beside.rs",
                "beside a store; neither links nor pipes are followed",
            ),
            (
                "pgdyno-store/src/store/progress.rs",
                "likewise, written before it takes the other's place",
            ),
            ("pgdyno/src/store_place.rs", "two names are compared"),
            ("pgdyno/src/commands/profile.rs", "likewise"),
            (
                "pgdyno-serve/src/token.rs",
                "kind, owner and mode are checked by its own handle",
            ),
        ],
        planted: &[
            "fn f() { std::fs::read(a); std::fs::read_to_string(a); std::fs::read_dir(a); }",
            "use std::fs; fn f() { fs::write(a, b); fs::copy(a, b); fs::rename(a, b); fs::hard_link(a, b); }",
            "use std::fs::*; fn f() { remove_file(a); remove_dir(a); remove_dir_all(a); }",
            "use std::fs as files; fn f() { files::metadata(a); files::symlink_metadata(a); }",
            "use std::fs::set_permissions as open_to_all; fn f() { open_to_all(a, b); }",
            "use std::fs::File; fn f() { File::open(a); File::create(a); File::create_new(a); File::options(); }",
            "fn f() { std::fs::OpenOptions::new(); }",
            "use std::os::unix::fs::{chown, symlink}; fn f() { vec![symlink(a, b)]; chown(a, b, c); }",
            "use std::fs::{self, DirBuilder}; fn f() { fs::create_dir(a); fs::create_dir_all(a); DirBuilder::new(); }",
            "fn f(path: &Path) { path.canonicalize(); std::fs::canonicalize(path); std::fs::read_link(path); }",
            "use rustix::fs::{CWD, chmod, lstat, open as get}; fn f() { openat(CWD, a, b, c); chmod(a, b); lstat(a); get(a, b, c); }",
            "use rustix::fs; fn f() { fs::stat(a); fs::mkdir(a, b); fs::rename(a, b); fs::link(a, b); fs::unlink(a); fs::rmdir(a); }",
        ],
    }]);
}

/// What a user names may be a FIFO, a device or a link to one, or have no end: `given_bytes` and
/// `given_text` of pgdyno-host refuse it. Every file counts but those that read what the kernel,
/// pgdyno itself or a sandbox has written.
#[test]
fn files_that_a_user_names_are_read_in_one_place() {
    hold(&[Rule {
        what: &[
            What::Path("fs::read"),
            What::Path("fs::read_to_string"),
            What::Path("File::open"),
            What::Call("pem_file_iter"),
            What::Call("from_pem_file"),
        ],
        within: EVERYWHERE,
        except: &[
            ("pgdyno-host/src/access.rs", "files of the kernel"),
            (
                "pgdyno-knobs/src/journal",
                "its own directory, whose files it checks by itself",
            ),
            ("pgdyno-sandbox/src/pooler.rs", "/dev/urandom"),
            (
                "pgdyno-sandbox/src/sandbox/",
                "what root has written, and its own cache",
            ),
        ],
        planted: &[
            "use std::fs; fn f() { fs::read(a); fs::read_to_string(a); fs::File::open(a); }",
            "fn f() { CertificateDer::pem_file_iter(a); PrivateKeyDer::from_pem_file(a); }",
        ],
    }]);
}

/// Names are resolved and sockets connected within a limit, in one place: the system's own calls
/// wait as long as they like.
#[test]
fn names_are_resolved_and_sockets_connected_in_one_place() {
    hold(&[
        Rule {
            what: &[What::Call("to_socket_addrs")],
            within: EVERYWHERE,
            except: &[("pgdyno-host/src/dial.rs", "the one place")],
            planted: &["fn f() { (name, 5432).to_socket_addrs(); }"],
        },
        Rule {
            what: &[
                What::Path("TcpStream::connect"),
                What::Path("TcpStream::connect_timeout"),
                What::Path("UnixStream::connect"),
            ],
            within: EVERYWHERE,
            except: &[],
            planted: &[
                "use std::net::TcpStream as Tcp; fn f() { Tcp::connect(a); Tcp::connect_timeout(&a, t); }",
                "fn f() { std::os::unix::net::UnixStream::connect(a); }",
            ],
        },
    ]);
}

/// A program that is asked something (systemd, an engine of containers, a volume) may never answer:
/// one place waits so long and no longer.
#[test]
fn programs_are_asked_in_one_place() {
    hold(&[Rule {
        what: &[What::Method("output")],
        within: EVERYWHERE,
        except: &[
            (
                "pgdyno-sandbox/src/sandbox/process.rs",
                "initdb and pg_ctl take as long as the disk does",
            ),
            (
                "pgdyno-knobs/src/undo/swap.rs",
                "mkswap and swapon change this host",
            ),
        ],
        planted: &["fn f() { std::process::Command::new(\"systemctl\").arg(\"show\").output(); }"],
    }]);
}

/// A load and its data are asked about over the load's own bounded connections; the driver's client
/// has no limits.
#[test]
fn no_unbounded_client_of_the_driver_is_opened() {
    hold(&[Rule {
        what: &[
            What::Path("postgres::Client"),
            What::Path("postgres::NoTls"),
            What::Path("tokio_postgres::NoTls"),
            What::Method("simple_query"),
        ],
        within: EVERYWHERE,
        except: &[],
        planted: &[
            "use postgres::{Client, NoTls}; fn f(c: &mut Client) { c.simple_query(a); NoTls; }",
            "fn f() { tokio_postgres::NoTls; }",
        ],
    }]);
}

/// Every rule of an experiment can be tested without PostgreSQL: the runner drives ports, which a
/// simulator implements.
#[test]
fn the_runner_reaches_everything_through_its_ports() {
    hold(&[Rule {
        what: &[
            What::Path("std::fs"),
            What::Path("std::net"),
            What::Path("thread::sleep"),
            What::Path("thread::spawn"),
            What::Path("thread::scope"),
            What::Path("time::Instant"),
            What::Path("time::SystemTime"),
            What::Path("pgdyno_host"),
            What::Path("pgdyno_server::Server"),
            What::Path("pgdyno_sandbox::Sandbox"),
            What::Path("pgdyno_sandbox::Pooler"),
            What::Path("pgdyno_store::Store"),
            What::Path("pgdyno_knobs::Changer"),
            What::Path("real::RealSite"),
            What::Path("measure::measure"),
            What::Path("std::process"),
            What::Path("pgdyno_server::pause"),
            What::Path("pgdyno_engine::run"),
            What::Path("pgdyno_workload::run"),
            What::Path("pgdyno_workload::create_data"),
            What::Path("pgdyno_workload::DataSession"),
        ],
        within: &[
            "pgdyno-lab/src/runner",
            "pgdyno-lab/src/ports.rs",
            "pgdyno-lab/src/plan",
        ],
        except: &[],
        planted: &[
            "use std::{fs, net::TcpStream, thread}; use pgdyno_host::HostAccess; use crate::measure::measure; \
             fn f() { thread::sleep(a); thread::spawn(b); thread::scope(c); }",
            "fn f() { std::time::Instant::now(); std::time::SystemTime::now(); crate::real::RealSite::new(); }",
            "use pgdyno_server::Server; use pgdyno_store::Store; use pgdyno_knobs::Changer;",
            "use pgdyno_sandbox::{Pooler, Sandbox};",
            "use pgdyno_workload::{DataSession, create_data}; fn f() { pgdyno_server::pause(a); pgdyno_workload::run(b); pgdyno_engine::run(c); std::process::id(); }",
        ],
    }]);
}

/// The absences above hold of all code that is compiled without tests, so no file may be outside of
/// what is parsed.
#[test]
fn every_file_is_parsed_or_for_tests() {
    let parsed: BTreeSet<&String> = CODE.sources.iter().map(|source| &source.path).collect();
    let neither: Vec<String> = code::files()
        .into_iter()
        .filter(|file| !parsed.contains(file) && !CODE.for_tests.contains(file))
        .collect();
    assert_eq!(neither, Vec::<String>::new(), "no module declares them");
    let both: Vec<&&String> = parsed
        .iter()
        .filter(|file| CODE.for_tests.contains(**file))
        .collect();
    assert!(both.is_empty(), "for tests and not: {both:?}");
    for path in [
        "pgdyno-engine/src/client.rs",
        "pgdyno-engine/src/drive/lost.rs",
        "pgdyno-engine/src/interpreter.rs",
        "pgdyno-engine/src/expression/evaluate.rs",
        "pgdyno-workload/src/tpcc/terminal.rs",
        "pgdyno-workload/src/tpcc/terminal/case.rs",
    ] {
        assert!(parsed.contains(&path.to_owned()), "{path}");
    }
}

#[test]
fn an_exception_that_nothing_needs_is_seen() {
    let rule = Rule {
        what: &[What::Call("write_raw")],
        within: EVERYWHERE,
        except: &[("pgdyno-knobs/src/restore.rs", "restores")],
        planted: &[],
    };
    let clean = Source::of("pgdyno-knobs/src/restore.rs", "fn f() {}");
    let breaking = Source::of(
        "pgdyno-lab/src/runner.rs",
        "\nfn f(h: &Host) { h.write_raw(a, b); }",
    );
    assert_eq!(
        rule.complaints(&[clean, breaking]),
        [
            "pgdyno-lab/src/runner.rs:2: Call(\"write_raw\") in Method(\"write_raw\")",
            "pgdyno-knobs/src/restore.rs needs no exception (restores)"
        ]
    );
}
