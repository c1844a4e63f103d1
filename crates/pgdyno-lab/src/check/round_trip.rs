//! The way to the server and back, without any work there.

use super::{Bench, Measured, shown};
use crate::measure::endpoint;
use pgdyno_engine::{Plan, Protocol, Warmup};
use pgdyno_server::{Conninfo, Server};
use pgdyno_workload::{Control, LoadPlan, Script, Scripts, Work, Workload};
use serde_json::json;
use std::time::Duration;

const LENGTH_MS: u32 = 1000;
/// The engine's least.
const LENGTH_LEAST: Duration = Duration::from_secs(1);
const WARMUP: Duration = Duration::from_millis(100);

/// Which way connections go. What is wanted of TLS is not what there is, so the server is asked;
/// behind a pooler it would speak of the pooler's own connection.
pub(super) fn way(conninfo: &Conninfo, server: &mut Server) -> String {
    let mut way = match conninfo.is_local() {
        true => "Unix socket",
        false => "TCP",
    }
    .to_owned();
    if conninfo.is_proxied() {
        return way + ", through a pooler or proxy";
    }
    let sql = "SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()";
    if let Ok(Some(ssl)) = server.value("asking whether there is TLS", sql)
        && ssl == "t"
    {
        way += ", TLS";
    }
    way
}

/// `SELECT 1` over and over, over one connection.
fn plan(conninfo: &Conninfo, length: Duration) -> LoadPlan {
    let script = Script {
        name: "round trip".into(),
        text: "SELECT 1;".into(),
        weight: 1,
    };
    LoadPlan {
        work: Work::Scripts(Scripts {
            scripts: vec![script],
            variables: Vec::new(),
            allow_shell: false,
        }),
        // Not every pooler keeps prepared statements.
        protocol: match conninfo.is_proxied() {
            true => Protocol::Extended,
            false => Protocol::Prepared,
        },
        control: Control::None,
        drive: Plan {
            warmup: Warmup::For(WARMUP),
            measure: length,
            ..Plan::closed(1, 1)
        },
        ..LoadPlan::closed(Workload::Simple, 1, 1)
    }
}

impl Bench<'_> {
    pub(super) fn round_trip(&mut self) -> Measured {
        const NAME: &str = "round_trip";
        let Some(conninfo) = self.asked.conninfo else {
            return Measured::unknown(NAME, "no server was named");
        };
        let plan = plan(conninfo, self.asked.length_of(LENGTH_MS).max(LENGTH_LEAST));
        let load = match pgdyno_workload::run(
            &[endpoint(conninfo).stopped_by(self.stop)],
            &plan,
            self.stop,
            &mut |_| {},
        ) {
            Ok(load) => load,
            Err(error) => return Measured::unknown(NAME, error),
        };
        if let Some((reason, _)) = &load.lost {
            return Measured::unknown(NAME, reason);
        }
        let books = &load.measured;
        let (Some(p50_ms), Some(p99_ms)) = (books.percentile_ms(50.0), books.percentile_ms(99.0)) else {
            return Measured::unknown(NAME, "no round trip was finished in time");
        };
        let way = self.server.as_mut().map(|server| way(conninfo, server));
        let way = way.unwrap_or_default();
        let spread = format!(
            "p50 {}, p99 {} ms of {}; {way}",
            shown(p50_ms),
            shown(p99_ms),
            books.committed
        );
        let mean_ms = books.response_ns.mean() / 1e6;
        let detail = json!({
            "count": books.committed,
            "mean_ms": mean_ms,
            "p50_ms": p50_ms,
            "p99_ms": p99_ms,
            "way": way,
            "protocol": plan.protocol.name(),
        });
        Measured::judged(NAME, mean_ms, spread, detail)
    }
}
