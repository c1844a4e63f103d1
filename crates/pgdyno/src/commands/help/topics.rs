//! The topics of `pgdyno help TOPIC`: one page each, which says where the book has more.

/// Names and texts, in the order in which the help names them.
pub(super) const TOPICS: [(&str, &str); 7] = [
    ("targets", TARGETS),
    ("consent", CONSENT),
    ("journal", JOURNAL),
    ("verdicts", VERDICTS),
    ("stores", STORES),
    ("exit-codes", EXIT_CODES),
    ("terms", TERMS),
];

const TARGETS: &str = "\
A target is the server that a command reads, loads or changes:

  sandbox:NAME          a private server that `pgdyno sandbox create NAME` made
  CONNECTION STRING     as in libpq: \"host=/var/run/postgresql user=postgres\" or
                        postgresql://user@host:5432/database
  (nothing)             PG* variables and libpq's defaults, where the command permits it
  --host-only           this host without a server (facts, check, advise, apply, verify,
                        profile diff, profile export)

Give passwords in PGPASSWORD or in the file of PGPASSFILE. One in a connection string is used and
is never printed or stored.

Files, processes and kernel settings are read and changed only where the server is proven to run
on this host.

Examples: pgdyno facts sandbox:main
          pgdyno check \"host=/var/run/postgresql user=postgres\"
More: docs/how-to/sandbox.md, docs/reference/facts-server.md";

const CONSENT: &str = "\
What a command does without being asked, and what needs your consent:

  always                        reads; loads that create no object; settings that you name
  --allow-restart               stops and starts a server that pgdyno did not create, by what
                                runs it or your restart command
  --allow-data                  creates tables of the load on such a server, and drops them
  --accept-durability-risk KNOB a value that can lose committed data in a crash, for this
                                command alone
  --allow-shell                 scripts that run commands on this host (\\shell, \\setshell)

Without consent the command ends with exit code 4 (for --allow-shell: 1) and prints the flag.
`run --dry-run` and `apply --dry-run` print all that a command needs. A sandbox needs no consent
for restarts and tables.

Example: pgdyno run file.toml --dry-run
More: docs/how-to/apply.md";

const JOURNAL: &str = "\
Before pgdyno changes a setting, it writes the old value to a journal on disk and flushes it.

  pgdyno status     what is changed now, by whom, since when
  pgdyno restore    restores the old values, also after a crash, a `kill -9` or a power cut

An experiment restores everything at its end, at Ctrl-C and at SIGTERM. What `apply` sets stays
until `restore`, or as long as --revert-after or --until-exit says. A value that someone else
has changed since is reported and left alone (`restore --force` overrides). A journal has
checksums and a copy; what is damaged is named and kept.

Example: pgdyno apply sandbox:main work_mem=16MB --revert-after 10m
More: docs/how-to/apply.md, docs/reference/files.md";

const VERDICTS: &str = "\
A comparison ends with one of five verdicts. Each rests on the confidence interval of the ratio
of two treatments and on the smallest effect that matters (2 % unless the file says otherwise):

  better, worse    the interval excludes \"no effect\" and reaches beyond the smallest effect
  the same         the whole interval is within the smallest effect, even if it excludes
                   \"no effect\"
  no gain          none of these, and a gain that matters is improbable
                   (with stop = \"when-gain-decided\")
  undecided        none of these: more blocks decide it

Trials are compared within blocks, in random order. The intervals of one figure hold together
over all comparisons of the experiment. A gate of `compare` fails only where its whole interval
is beyond the limit, and is undecided where the interval contains it.

Example: pgdyno compare last:reference last:memory --fail-if 'tps worse than 2%'
More: docs/explanation/statistics.md, docs/how-to/compare.md";

const STORES: &str = "\
Results are kept in a store:

  (nothing)                         $PGDYNO_STORE, else a local SQLite file
  --store FILE                      a SQLite file
  --store postgres://user@host/db   tables in a PostgreSQL database

`run`, `resume`, `tune`, `gate` and `demo` store by themselves, `bench` with --store. `list`,
`show`, `compare`, `report`, `export` and `serve` read it; `import` copies experiments from
another store, each once.

Example: pgdyno list --store team.sqlite
More: docs/reference/store.md";

const EXIT_CODES: &str = "\
  0    success
  1    failure; a load without one committed transaction
  2    usage: the command line or a file has an error
  3    a check or gate failed: counts that do not agree, a poor result of `check`, a severe
       piece of advice, too many failed transactions, a setting that is not in force
  4    refused for safety: the message names what permits it
  5    a gate is undecided (`gate`, `compare`), or `tune` has no profile: nothing is proven

`--allow-undecided` ends with 0 in place of 5, `pgdyno compare --strict` with 3.

Example: pgdyno compare 3 4 --fail-if 'p99_ms worse than 10%' || echo \"exit code $?\"
More: docs/reference/files.md";

const TERMS: &str = "\
  knob           a setting of the server or of the host under it
  treatment      a set of knob values that is compared with another
  trial          one measured load with a treatment
  block          trials close in time: each treatment once, in random order
  reference      the treatment without any step or further level: what others are compared with
  effect         the ratio to the reference treatment, with its confidence interval
  noise floor    the spread between trials of one and the same treatment
  closed loop    a client sends its next transaction after the answer to the last
  open loop      transactions follow a schedule, however slow the server is
  schedule lag   begun - due; service time: done - begun; response time: done - due
  warm-up        load before the measured time, until caches and checkpoints settle
  goodput        transactions committed within the latency limit
  NOPM           new orders per minute of a TPC-C-like load

`pgdyno knobs` lists all knobs, `pgdyno knobs NAME` explains one.
More: docs/reference/load.md, docs/explanation/statistics.md";
