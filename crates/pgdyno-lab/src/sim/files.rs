//! Cases of the simulator: an experiment file and a world, both drawn from a seed.

use super::World;
use super::world::{Odds, Surface, drawn};
use std::fmt::Write;

/// What is simulated.
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) text: String,
    pub(super) is_sandbox: bool,
    /// When it begins.
    pub(super) ms: u64,
    pub(super) odds: Odds,
    pub(super) surface: Surface,
}

/// What a file must have.
#[derive(Debug, Clone, Copy, Default)]
struct Wants {
    /// It ends when all is decided.
    decided: bool,
    /// A treatment runs on a server of another version.
    version: bool,
    /// It has few trials: it is run once for each of its steps.
    small: bool,
}

/// Draws in a fixed order.
struct Draws {
    seed: u64,
    number: u32,
}

impl Draws {
    fn unit(&mut self) -> f64 {
        self.number += 1;
        drawn(self.seed, "file", &self.number.to_string())
    }

    fn is(&mut self, odds: f64) -> bool {
        self.unit() < odds
    }

    /// From 0 to `end`, without it.
    fn below(&mut self, end: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below `end`"
        )]
        #[expect(clippy::cast_precision_loss, reason = "a few choices")]
        let i = (self.unit() * end as f64) as usize;
        i.min(end - 1)
    }

    fn of<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len())]
    }

    /// Zero for most cases, else up to `most`.
    fn odds(&mut self, most: f64) -> f64 {
        match self.is(0.3) {
            true => self.unit() * most,
            false => 0.0,
        }
    }
}

/// Settings of steps: of the server with and without a restart, and of the host.
const SETTINGS: [&str; 10] = [
    "work_mem = '8MB'",
    "work_mem = '64MB'",
    "random_page_cost = 2.0",
    "shared_buffers = '256MB'",
    "jit = false",
    "vm.swappiness = 1",
    "vm.swappiness = 10",
    "max_wal_size = '4GB'",
    "cgroup.cpus = 'part'",
    "vm.nr_hugepages = 'auto'",
];
/// Other keys of steps that only a sandbox has.
const OF_SANDBOXES: [&str; 11] = [
    "server.version = 16",
    "server.version = 17",
    "data.reset = 'recreate'",
    "data.reset = 'copy'",
    "server.pooler = 'pgbouncer'",
    "server.count = 2",
    "server.count = 4",
    "load.crash = true",
    "data.prewarm = 'cold'",
    "server.instance = 2",
    "server.temp_on = 'tmpfs:1G'",
];
const OF_ALL: [&str; 7] = [
    "data.reset = 'template'",
    "data.partitions = 'hash:4'",
    "data.sql = 'CREATE TABLE more (a int)'",
    "load.clients = 8",
    "data.reset = 'vacuum'",
    "load.measure_s = 7",
    "data.prewarm = 'read'",
];
const FACTORS: [&str; 5] = [
    "name = 'w'\nof = 'work_mem'\nvalues = ['4MB', '16MB']",
    "name = 's'\nof = 'vm.swappiness'\nvalues = [60, 1]",
    "name = 'c'\nalong = true\nof = 'load.clients'\nvalues = [2, 8]",
    "name = 'd'\nof = 'data.scale'\nvalues = [1, 2]",
    "name = 'b'\nof = 'shared_buffers'\nvalues = ['128MB', '256MB']",
];
/// Hours of the day: over midnight, of one day, and of a few trials.
const WINDOWS: [(u64, &str); 3] = [
    (6 * 60, "from = '22:00'\nto = '06:00'"),
    (12 * 60, "from = '08:00'\nto = '12:00'"),
    (3 * 60 + 12, "from = '03:10'\nto = '03:12'"),
];
const MINUTE_MS: u64 = 60_000;
/// Trials that a search has beyond its blocks, at most.
const SEARCHED_MORE: usize = 6;
/// Seconds of a trial with what is beside its load, at most.
const BLOCK_TRIAL_S: usize = 12;
/// The one of them that is a condition.
const CONDITION: usize = 2;

impl Case {
    pub(super) fn drawn(seed: u64) -> Case {
        Case::wanted(seed, Wants::default())
    }

    /// A case in which a process that starts again measures the same, so that an interruption must
    /// not show.
    pub(super) fn steady(seed: u64) -> Case {
        let wants = Wants {
            decided: seed.is_multiple_of(4),
            version: seed % 4 == 1,
            small: true,
        };
        let mut case = Case::wanted(seed, wants);
        case.odds.by_occasion().into_iter().for_each(|odds| *odds = 0.0);
        let lines = case.text.lines().filter(|line| !line.starts_with("time = "));
        case.text = lines.flat_map(|line| [line, "\n"]).collect();
        case
    }

    fn wanted(seed: u64, wants: Wants) -> Case {
        let mut draws = Draws { seed, number: 0 };
        let is_sandbox = draws.is(0.8) || wants.version;
        let (text, ms) = file(&mut draws, is_sandbox, wants);
        Case {
            seed,
            text,
            is_sandbox,
            ms,
            odds: Odds {
                bad_value: draws.odds(0.3),
                ignored: draws.odds(0.2),
                dies: draws.odds(0.2),
                no_server: draws.odds(0.1),
                late: draws.odds(0.02),
                foreign: draws.odds(0.1),
                not_tested: draws.odds(0.3),
                data: draws.odds(0.05),
                disagrees: draws.odds(0.2),
                not_restored: draws.odds(0.2),
                outlier: draws.odds(0.2),
                slow: draws.odds(0.4),
                failing: draws.odds(0.4),
                shortage: draws.odds(0.2),
                enough: draws.odds(0.4),
                unasked: draws.odds(0.1),
                store: draws.odds(0.02),
                unsure: draws.odds(0.1),
                undoing: draws.odds(0.1),
                server: draws.odds(0.2),
                panics: draws.odds(0.05),
            },
            surface: Surface {
                tps: 200.0 + 5000.0 * draws.unit(),
                effect: draws.odds(0.5),
                noise: 0.002 + draws.odds(0.05),
                memory: draws.odds(0.8),
                drift: draws.odds(0.3) - draws.odds(0.3),
            },
        }
    }

    /// The text of a switchback of four treatments, with guards and an end when all is decided in
    /// some.
    pub(super) fn switchback(seed: u64, blocks: u32) -> String {
        let guard = match seed % 4 {
            0 => "[guard]\np99_ms_max = 100.0\n",
            1 => "[guard]\nerror_ratio_max = 0.5\n",
            2 => "[guard]\nslowdown_max = 0.1\n",
            _ => "",
        };
        let stop = match seed % 5 == 4 && blocks >= 5 {
            true if seed.is_multiple_of(2) => "when-gain-decided",
            true => "when-decided",
            false => "after-blocks",
        };
        format!(
            "name = 'simulated'\nquestion = '?'\ndesign = 'switchback'\nblocks = {blocks}\nstop = '{stop}'\nseed = {seed}\n\
             [data]\nscale = 1\n[load]\nworkload = 'tpcb'\nclients = 4\nprotocol = 'extended'\nwarmup_s = 2\nmeasure_s = 12\n{guard}\
             [[step]]\nname = 'a'\nsettings.work_mem = '8MB'\n[[step]]\nname = 'b'\nsettings.commit_delay = 10\n\
             [[step]]\nname = 'c'\nsettings.track_io_timing = true\nsettings.work_mem = '64MB'\n"
        )
    }

    /// The text of an experiment on three servers that take turns, new in each block in some, with
    /// an end when all is decided in some.
    pub(super) fn in_turns(seed: u64, blocks: u32) -> String {
        let (instances, reset) = match seed % 4 {
            0 => ("once", "recreate"),
            1 => ("once", "none"),
            2 => ("per-block", "none"),
            _ => ("per-block", "recreate"),
        };
        let stop = match seed % 5 == 4 && blocks >= 5 {
            true => "when-decided",
            false => "after-blocks",
        };
        let own = match seed % 3 {
            0 => "server.version = 17",
            1 => "data.sql = 'CREATE TABLE more (a int)'\nserver.instance = 3",
            _ => "settings.shared_buffers = '64MB'\nserver.instance = 3",
        };
        format!(
            "name = 'simulated'\nquestion = '?'\ndesign = 'switchback'\nblocks = {blocks}\nstop = '{stop}'\nseed = {seed}\n\
             [target]\ninstances = '{instances}'\n[data]\nscale = 1\nreset = '{reset}'\n[load]\nworkload = 'tpcb'\nclients = 4\n\
             warmup_s = 1\nmeasure_s = 5\n[[step]]\nname = 'a'\n{own}\n[[step]]\nname = 'b'\nserver.instance = 2\nsettings.work_mem = '8MB'\n"
        )
    }

    /// A case of a given file in which nothing goes wrong.
    pub(super) fn quiet(seed: u64, text: String) -> Case {
        Case {
            seed,
            text,
            is_sandbox: true,
            ms: 0,
            odds: Odds::default(),
            surface: Surface {
                tps: 1000.0,
                effect: 0.2,
                noise: 0.01,
                memory: 0.3,
                drift: 0.0,
            },
        }
    }

    pub(super) fn world(&self) -> World {
        World::new(self.seed, self.ms, self.is_sandbox, self.odds, self.surface)
    }
}

/// Factors of a search with what else it goes by.
fn search(draws: &mut Draws, text: &mut String, blocks: usize) {
    let by = draws.of(&[
        "method = 'process'",
        "method = 'forest'",
        "method = 'densities'",
        "method = 'random'",
        "method = 'one-at-a-time'",
        "optimizer = 'simulated'",
    ]);
    let trials = blocks.max(3) + draws.below(SEARCHED_MORE);
    let _ = writeln!(text, "[search]\n{by}\ntrials = {trials}");
    if draws.is(0.3) {
        *text += "subject_to = ['tps >= 500']\n";
    }
    if draws.is(0.5) {
        *text += "[[search.start]]\nname = 'advice'\nlevels = { b = '256MB', w = '16MB' }\n";
    }
    if draws.is(0.3) {
        *text += "[[search.limit]]\nsum = { b = 1, w = 8 }\nat_most = '300MB'\n";
    }
    *text += "[[factor]]\nname = 'w'\nof = 'work_mem'\nvalues = ['4MB', '16MB', '64MB']\nweights = [1, 2, 1]\n\
              [[factor]]\nname = 'b'\nof = 'shared_buffers'\nvalues = ['128MB', '256MB']\nrelevance = 2\n";
    if draws.is(0.5) {
        *text += "[[factor]]\nname = 's'\nof = 'vm.swappiness'\nvalues = [60, 1, 10]\nscale = 'none'\n";
    }
}

/// A file, and when it begins.
fn file(draws: &mut Draws, is_sandbox: bool, wants: Wants) -> (String, u64) {
    let design = match draws.of(&[
        "one-at-a-time",
        "cumulative",
        "a-b",
        "a-a",
        "full-factorial",
        "ladder",
    ]) {
        _ if wants.decided => "a-b",
        _ if wants.version => "one-at-a-time",
        _ if draws.is(0.04) => "search",
        design => design,
    };
    let decides = !matches!(design, "ladder" | "search");
    let (stop, blocks) = match draws.is(0.1) && decides && !wants.small {
        _ if wants.decided => ("when-decided", 4 + draws.below(2)),
        true if draws.is(0.5) => ("when-gain-decided", 5 + draws.below(4)),
        true => ("when-decided", 3 + draws.below(6)),
        false if wants.small => ("after-blocks", 1 + draws.below(2)),
        false => ("after-blocks", 1 + draws.below(4)),
    };
    let mut text = format!(
        "name = 'simulated'\nquestion = '?'\ndesign = '{design}'\nblocks = {blocks}\nstop = '{stop}'\nseed = {}\n",
        draws.below(1_000_000)
    );
    let reset = match is_sandbox {
        true => draws.of(&["none", "none", "recreate", "template", "copy", "vacuum"]),
        false => draws.of(&["none", "vacuum", "template"]),
    };
    let _ = write!(
        text,
        "[target]\nrestart = '{}'\n[data]\nscale = 1\nreset = '{reset}'\n[load]\nworkload = 'tpcb'\nclients = 4\n\
         warmup_s = 1\nmeasure_s = {}\n",
        draws.of(&["always", "when-needed"]),
        5 + draws.below(3),
    );
    if draws.is(0.2) {
        text += "rate = '50'\nspacing = 'poisson'\n";
    }
    if draws.is(0.2) {
        text += "[[figure]]\nname = 'answer'\nsql = 'SELECT 1'\n";
    }
    if draws.is(0.3) {
        let _ = writeln!(text, "[base]\n{}", draws.of(&SETTINGS));
    }
    match draws.below(6) {
        0 => text += "[guard]\np99_ms_max = 100.0\n",
        1 => text += "[guard]\nerror_ratio_max = 0.5\n",
        2 if design != "ladder" => text += "[guard]\nslowdown_max = 0.2\n",
        _ => {}
    }
    match draws.below(6) {
        0 => {
            let _ = writeln!(text, "[budget]\ntrials = {}", 1 + draws.below(8));
        }
        1 => {
            // A search that has no time for a block is refused.
            let least = match design {
                "search" => (blocks.max(3) + SEARCHED_MORE).div_ceil(blocks) * BLOCK_TRIAL_S,
                _ => 0,
            };
            let _ = writeln!(text, "[budget]\ntime = '{}s'", (20 + draws.below(200)).max(least));
        }
        _ => {}
    }
    let mut minute = draws.below(1440) as u64;
    if draws.is(0.15) {
        let (to, window) = WINDOWS[draws.below(WINDOWS.len())];
        let _ = writeln!(text, "[window]\n{window}");
        // In half of them it closes soon.
        if draws.is(0.5) {
            minute = to - 1;
        }
    }
    match design {
        "a-a" => {}
        "search" => search(draws, &mut text, blocks),
        "full-factorial" | "ladder" => {
            let (first, also) = (draws.below(FACTORS.len()), 1 + draws.below(FACTORS.len() - 1));
            let mut factors = vec![first];
            if draws.is(0.6) {
                factors.push((first + also) % FACTORS.len());
            }
            // What is compared is not only a condition.
            if factors.iter().all(|factor| *factor == CONDITION) {
                factors.push(0);
            }
            for factor in factors {
                let _ = writeln!(text, "[[factor]]\n{}", FACTORS[factor]);
            }
        }
        _ => {
            let steps = if design == "a-b" {
                1
            } else {
                1 + draws.below(if wants.small { 2 } else { 3 })
            };
            for step in 0..steps {
                let _ = writeln!(text, "[[step]]\nname = 's{step}'");
                if wants.version && step == 0 {
                    text += "server.version = 17\n";
                } else if draws.is(0.3) {
                    let key = match is_sandbox && draws.is(0.7) {
                        true => draws.of(&OF_SANDBOXES),
                        false => draws.of(&OF_ALL),
                    };
                    let _ = writeln!(text, "{key}");
                }
                let _ = writeln!(text, "[step.settings]\n{}", draws.of(&SETTINGS));
            }
        }
    }
    if wants.version && draws.is(0.5) && !text.contains("'copy'") {
        text = text.replacen("[target]\n", "[target]\ninstances = 'per-block'\n", 1);
    }
    (text, minute * MINUTE_MS)
}
