//! Settings and servers that take turns.

use super::*;

#[test]
fn switchback_refuses_what_cannot_take_turns() {
    let check = |file: &str, load: &str, step: &str, expected: &str| {
        let error = switchback(file, load, step).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let delay = "settings.commit_delay = 10\n";
    check(
        "",
        "",
        "settings.shared_buffers = '1GB'\n",
        "shared_buffers cannot take turns within a load: it takes effect only after a restart",
    );
    check(
        "",
        "",
        "settings.work_mem = '8MB'\n",
        "plans of prepared statements keep the old value",
    );
    check("", "", "settings.'vm.swappiness' = 1\n", "lasts for minutes");
    check(
        "",
        "",
        "settings.log_connections = 'on'\n",
        "sessions that are connected keep the old value",
    );
    check(
        "",
        "",
        "settings.commit_delay = 10\nload.clients = 2\n",
        "\"s\" may have [settings] only",
    );
    check(
        "",
        "",
        "settings.commit_delay = 10\nprofile = 'oltp'\n",
        "may have [settings] only",
    );
    check(
        "",
        "checkpoint_cycles = 1\n",
        delay,
        "remove program, checkpoint_cycles, crash",
    );
    check("", "rate = '50'\n", delay, "needs a closed loop");
    check("target.instances = 'per-block'\n", "", delay, "has one server");
    check(
        "metric = 'wal_bytes_per_tx'\n",
        "",
        delay,
        "\"wal_bytes_per_tx\" is not a metric of this experiment",
    );
    check(
        "switch.slice_s = 61\n",
        "",
        delay,
        "slice_s = 61: expected 1 to 60",
    );
    check("switch.slice_s = 20\n", "", delay, "measure_s = 12");
    check(
        "switch.wash_out_s = 0.1\n",
        "",
        delay,
        "wash_out_s = 0.1: expected 0.5 to 600",
    );
    check(
        "[[figure]]\nname = 'f'\nsql = 'SELECT 1'\n",
        "",
        delay,
        "the figure \"f\" is queried after the load",
    );
    let text = "name='x'\nquestion='?'\ndesign='a-b'\nblocks=3\nswitch.slice_s=2\n[data]\nscale=1\n[load]\nworkload='tpcb'\nclients=4\nmeasure_s=12\n\
                [[step]]\nname='s'\nsettings.jit=false\n";
    assert!(
        parse(text)
            .unwrap_err()
            .to_string()
            .contains("[switch] applies to design = \"switchback\" only")
    );
}

/// What knobs carry over decides what is not measured; plans are no matter where none is kept.
#[test]
fn wash_out_of_a_switchback_is_that_of_its_knobs() {
    let check = |load: &str, step: &str, expected_s: f64| {
        let file = switchback("", load, step).unwrap();
        assert_eq!(file.switch.wash_out_s, Some(expected_s), "{step}");
    };
    check("", "settings.commit_delay = 10\n", 0.5);
    check("protocol = 'extended'\n", "settings.work_mem = '8MB'\n", 0.5);
    check("", "settings.'cpu.governor' = 'performance'\n", 5.0);
}

#[test]
fn servers_that_take_turns_share_a_load_and_nothing_of_the_host() {
    let with = |top: &str, load: &str, step: &str| {
        format!(
            "name='x'\nquestion='?'\ndesign='switchback'\nblocks=3\n{top}[data]\nscale=1\n[load]\nworkload='tpcb'\nclients=2\nwarmup_s=1\n\
             measure_s=5\n{load}[[step]]\nname='a'\nserver.instance=2\n{step}"
        )
    };
    for (top, step) in [
        ("", ""),
        (
            "switch.slice_s=0.5\ntarget.instances='per-block'\n",
            "settings.shared_buffers='64MB'\n",
        ),
        (
            "",
            "server.version=17\ndata.sql='CREATE INDEX ON pgbench_accounts (bid)'\n",
        ),
    ] {
        parse(&with(top, "", step)).unwrap_or_else(|error| panic!("{error}: {top}{step}"));
    }
    for (top, load, step, expected) in [
        ("switch.slice_s=0.001\n", "", "", "expected 0.002 to 60"),
        ("switch.slice_s=1\n", "", "", "at least 10 turns of 1 s"),
        (
            "switch.wash_out_s=1\n",
            "",
            "",
            "servers that take turns keep their settings",
        ),
        ("guard.p99_ms_max=5\n", "", "", "would end the load of all"),
        (
            "metric='stability_cv'\n",
            "",
            "",
            "is not a metric of this experiment",
        ),
        (
            "metric='disk_read_bytes_per_tx'\n",
            "",
            "",
            "is not a metric of this experiment",
        ),
        (
            "profile='oltp'\n",
            "",
            "",
            "a profile may have settings of the host",
        ),
        (
            "base.'vm.swappiness'=1\n",
            "",
            "",
            "vm.swappiness is a setting of the host",
        ),
        (
            "server.pooler='pgbouncer'\n",
            "",
            "",
            "neither pooler nor neighbour",
        ),
        ("", "think_ms=5\n", "", "closed loop"),
        ("", "connect=true\n", "", "closed loop"),
        ("", "rate='50'\n", "", "closed loop"),
        ("", "", "load.clients=4\n", "has its own load or data"),
        ("", "", "data.scale=2\n", "has its own load or data"),
        (
            "",
            "",
            "settings.'vm.swappiness'=1\n",
            "vm.swappiness is a setting of the host",
        ),
        (
            "",
            "",
            "profile='oltp'\n",
            "a profile may have settings of the host",
        ),
    ] {
        let error = parse(&with(top, load, step)).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}: {top}{load}{step}");
    }
}
