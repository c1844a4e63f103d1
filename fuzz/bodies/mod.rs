//! What the fuzz targets do with any bytes. Each is compiled and run for a moment by the tests of
//! the workspace too (crates/pgdyno/tests/fuzz.rs), so that none of them falls behind what it is
//! about.

mod files;
mod host;
mod input;
mod serve;
mod store;
mod wire;

/// A target: the name that a file of fuzz/targets and a binary of fuzz/Cargo.toml have, what it
/// does, and inputs to begin with.
pub(crate) type Target = (&'static str, fn(&[u8]), &'static [&'static [u8]]);

/// All of them, by name.
pub(crate) const TARGETS: [Target; 27] = [
    (
        "agent_frames",
        wire::agent_frames,
        &[b"pgdyno-boot x86_64 none\npgdyno-agent\n\0\0\0\x07\x01\"alive\"", b"\0\0\0\x06\x01\"stop\""],
    ),
    ("comparison", files::comparison, &[b"1:reference", b"tps<5%"]),
    (
        "conninfo",
        host::conninfo,
        &[b"host=a user=b", b"service=a\xff*:*:*:*:x\xff[a]\nhost=b\n"],
    ),
    (
        "copy_mark",
        files::copy_mark,
        &[b"{\"format\":1,\"sandbox\":\"a\",\"created_unix_ms\":1,\"bytes\":2,\"files\":3}"],
    ),
    (
        "experiment_file",
        files::experiment_file,
        &[b"name = \"x\"\nquestion = \"?\"\n"],
    ),
    (
        "expressions",
        files::expressions,
        &[b"facts(\"memory.total_bytes\") * 0.25", b"{memory.total_bytes}"],
    ),
    (
        "foreign_output",
        files::foreign_output,
        &[b"\0pgbench {host}\xfftps = 5.0 (without)\n"],
    ),
    ("heat", store::heat, &[b"\x02x\x9c\x03\0\0\0\0\x01"]),
    (
        "host_files",
        host::host_files,
        &[b"Filename Type Size Used Priority\n/swap file 1 0 -2", b"0 1 2"],
    ),
    (
        "host_programs",
        host::host_programs,
        &[
            b"\0[{\"ifname\":\"a\",\"flags\":[\"UP\"],\"dst\":\"10.0.0.0/8\"}]",
            b"\x010 1 crypt a b 0 8:1 0 1 sector_size:4096",
            b"\x02\x01\x02",
        ],
    ),
        (
        "inventory",
        files::inventory,
        &[b"[db]\ndb[1:3] ansible_host=a\n[db:vars]\nx=1\n", b"all: { hosts: { a: { ansible_port: 1 } } }"],
    ),
("journal", files::journal, &[b"{\"format\":5}\n"]),
    (
        "load_answers",
        wire::load_answers,
        &[
            b"\x0312",
            b"\x02SERROR\0C42601\0Mno\0\0",
            b"\0R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0",
        ],
    ),
    (
        "optimizer_answer",
        files::optimizer_answer,
        &[b"{\"levels\": {\"jit\": \"off\"}, \"why\": \"a\\nb\"}", b"{\"levels\": []}"],
    ),
    (
        "pooler_mark",
        files::pooler_mark,
        &[
            b"{\"format\":1,\"program\":\"pgpool\",\"pid\":2,\"started_ticks\":3,\"owner_pid\":4,\"owner_started_ticks\":5}",
        ],
    ),
    (
        "profile_file",
        files::profile_file,
        &[b"name = \"x\"\n[[setting]]\n"],
    ),
    ("records", store::records, &[b"{}\xff{}\xffabc"]),
    (
        "registry_header",
        files::registry_header,
        &[
            b"{\"format\":1,\"journal\":\"/a/1-2.journal\",\"home\":\"PGDYNO_HOME=/a\"}\n",
            b"{\"format\":1,\"since_unix_ms\":1,\"pid\":2,\"host\":[\"vm.swappiness\"],\"server\":[],\"servers\":[]}",
        ],
    ),
    (
        "replies",
        wire::replies,
        &[b"\x02T\0\0\0\x18\0\x01a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0D\0\0\0\x0b\0\x01\0\0\0\x01x"],
    ),
    (
        "requests",
        serve::requests,
        &[
            b"\0tag=a&tag=b%20&status=killed&since=1970-01-02&search=x+y",
            b"\x01tps=1000&p99_ms=20&price_per_cpu_hour=0.04",
            b"\x02a=1:reference&b=2&metric=tps",
            b"\x03{\"text\":\"\\u00e4\"}",
        ],
    ),
    ("scripts", files::scripts, &[b"\0\\set a 1\nselect :a;"]),
    ("series_blob", store::series_blob, &[b"\x01x\x9c\x03\0\0\0\0\x01"]),
    (
        "server_answers",
        wire::server_answers,
        &[
            b"\x03[{\"name\":\"a\"}]",
            b"\x03180000",
            b"\x02SERROR\0C42601\0Mno\0\0",
            b"\0R\0\0\0\x08\0\0\0\x0a",
        ],
    ),
    (
        "server_files",
        host::server_files,
        &[
            b"\0a = 1",
            b"\x011\n/x\n1\n5432\n",
            b"\x02FATAL:  no\nHINT:  x",
            b"\x03{\"format\":1}",
        ],
    ),
    ("statements", files::statements, &[b"select 1\xffsecret"]),
    (
        "symbols",
        pgdyno_host::fuzzed::symbols,
        &[
            b"\x7fELF\x02\x01\x01",
            b"ffffffff81000000 T _stext",
            b"55d0c000-55e1f000 r-xp 00010000 fe:00 1234 /usr/bin/postgres",
        ],
    ),
    (
        "watched",
        wire::watched,
        &[
            b"[{\"reading\":{\"age_s\":1.0,\"length_s\":2.0,\"values\":[[{\"metric\":\"a\",\"label\":\"\"},1.5]],\"gaps\":[]}}]",
            b"[\"up\",{\"down\":{\"age_s\":1.0,\"why\":\"x\"}},{\"sessions\":{\"Err\":\"x\"}}]",
            b"{\"interval_ms\":1000,\"panel\":3}",
        ],
    ),
];

/// Longer inputs find nothing that shorter ones do not, and take their time for it.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Runs a target by its name.
pub(crate) fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, ..)| *known == name);
    let (_, body, _) = target.expect("a target of this name");
    body(&bytes[..bytes.len().min(INPUT_BYTES_MAX)]);
}
