//! The web server of `pgdyno serve`: the page, the store as JSON, what runs now as a stream, and
//! metrics. It reads; what it writes are tags and notes. It prints nothing and changes no setting;
//! what it needs of the program is a [`Source`].

mod answer;
pub mod asked;
pub mod document;
mod door;
mod experiment;
mod list;
mod listener;
mod live;
mod metrics;
mod page;
mod problem;
mod reports;
mod source;
mod stamp;
mod stores;
mod summary;
mod targets;
#[cfg(test)]
mod tests;
mod token;

pub use source::{Begun, Changed, Source};
pub use token::TokenError;

use answer::{Body, takes_gzip};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, Method};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};
use door::Names;
use listener::Limits;
use page::Assets;
use pgdyno_record::ErrorClass;
use pgdyno_report::HtmlError;
use problem::Problem;
use reports::Reports;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stores::Stores;
use summary::Summaries;
use targets::{Advices, Changes};
use token::Token;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};

/// The longest note with every letter escaped in JSON, and some room.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Requests that read the store at a time.
const TURNS: usize = 8;
/// Live views that are open at a time.
const STREAMS: usize = 64;
/// Threads for what takes long; more than turns, for connections are resolved on them too.
const THREADS_ASIDE: usize = 12;
/// What is under way at the end gets so long to end in order.
const FAREWELL: Duration = Duration::from_secs(3);
/// Source, address and token of a server.
pub struct Options {
    /// Store and programs that answers come from.
    pub source: Arc<dyn Source>,
    /// Socket that is bound and listens.
    pub listener: TcpListener,
    /// The address that it is bound to.
    pub listening: SocketAddr,
    /// Where the token is kept; none for a new one each time.
    pub token_file: Option<PathBuf>,
    /// Host names, beside the address, that requests may be sent to.
    pub allowed: Vec<String>,
}

/// What all requests share.
struct App {
    source: Arc<dyn Source>,
    stores: Stores,
    token: Token,
    /// Name of the cookie: cookies know no ports, and a second server must not take the first
    /// one's.
    cookie: String,
    names: Names,
    assets: Result<Assets, HtmlError>,
    turns: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    ending: watch::Receiver<bool>,
    summaries: Summaries,
    reports: Reports,
    advices: Advices,
    changes: Changes,
}

impl App {
    fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }
}

/// Why the server did not begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The token could not be made or read.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// The system refuses threads, signals or connections.
    #[error("the server cannot run")]
    System(#[from] io::Error),
    /// A part of the server ended by a fault of its own.
    #[error("the server ended by a fault of pgdyno's own")]
    Fault(#[from] tokio::task::JoinError),
}

impl ServeError {
    /// That of what it holds.
    pub fn class(&self) -> ErrorClass {
        match self {
            ServeError::Token(error) => error.class(),
            ServeError::System(_) | ServeError::Fault(_) => ErrorClass::Failed,
        }
    }
}

/// Serves until Ctrl-C, SIGTERM or the loss of the terminal. Threads get the priority of the one
/// that calls this.
///
/// # Errors
///
/// If there is no token, or the system refuses what a server needs.
pub fn run(options: Options) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(THREADS_ASIDE)
        .build()?;
    // Before anything takes time.
    let signals = {
        let _inside = runtime.enter();
        [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ]
        .map(signal)
    };
    let token = match &options.token_file {
        Some(path) => Token::of_file(path)?,
        None => Token::draw()?,
    };
    let (end, ending) = watch::channel(false);
    let app = Arc::new(App {
        stores: Stores::new(Arc::clone(&options.source)),
        source: options.source,
        token,
        cookie: format!("pgdyno-{}", options.listening.port()),
        names: Names {
            listening: options.listening,
            allowed: options.allowed,
        },
        assets: Assets::built_in(),
        turns: Arc::new(Semaphore::new(TURNS)),
        streams: Arc::new(Semaphore::new(STREAMS)),
        ending,
        summaries: Summaries::default(),
        reports: Reports::default(),
        advices: Advices::default(),
        changes: Changes::default(),
    });
    let is_kept = options.token_file.is_some();
    let served = runtime.block_on(serve(options.listener, &app, is_kept, signals, end));
    // A request that waits for another process, or for a store's server, is not waited for.
    runtime.shutdown_timeout(FAREWELL);
    served
}

async fn serve(
    listener: TcpListener,
    app: &Arc<App>,
    token_is_kept: bool,
    signals: [io::Result<Signal>; 3],
    end: watch::Sender<bool>,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let [interrupt, terminate, hangup] = signals;
    let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
    let mut ended = std::pin::pin!(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    });
    let greeting = tokio::task::spawn_blocking({
        let app = Arc::clone(app);
        move || greet(&app, token_is_kept)
    });
    tokio::select! {
        () = &mut ended => return Ok(()),
        greeted = greeting => greeted?,
    }
    tokio::spawn(end_idle(Arc::clone(app)));
    app.fill_summaries();
    let server = listener::serve(
        listener,
        router(Arc::clone(app)),
        app.ending.clone(),
        Limits::USUAL,
    );
    let mut server = tokio::spawn(server);
    tokio::select! {
        () = &mut ended => {}
        done = &mut server => return Ok(done?),
    }
    let _ = end.send(true);
    let _ = tokio::time::timeout(FAREWELL, server).await;
    Ok(())
}

/// Ends sessions with the store's server that nobody has asked for, on a thread aside.
async fn end_idle(app: Arc<App>) {
    let mut due = tokio::time::interval(stores::IDLE_MAX);
    loop {
        due.tick().await;
        let app = Arc::clone(&app);
        let _ = tokio::task::spawn_blocking(move || app.stores.end_idle()).await;
    }
}

/// Says where it is. A token that is kept in a file is not shown at all.
fn greet(app: &App, token_is_kept: bool) {
    let store_fault = match app.stores.take() {
        Ok(store) => {
            app.stores.keep(store);
            None
        }
        Err(error) => Some(error),
    };
    app.source.begun(&Begun {
        listening: app.names.listening,
        token: (!token_is_kept).then(|| app.token.text().to_owned()),
        store_fault,
        has_page: app.assets.is_ok(),
    });
}

/// Milliseconds since 1970.
fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An address with its method and what answers there.
type Route = (Method, &'static str, MethodRouter<Arc<App>>);

/// All there are; openapi.json describes each.
fn routes() -> Vec<Route> {
    const NOTES: &str = "/api/experiments/{id}/notes";
    const TAG: &str = "/api/experiments/{id}/tags/{word}";
    let trial = "/api/experiments/{id}/trials/{trial}";
    let note = "/api/experiments/{id}/notes/{note}";
    let tags = "/api/experiments/{id}/tags";
    vec![
        (Method::GET, "/", get(page::shell)),
        (Method::GET, "/app.css", get(page::style)),
        (Method::GET, "/app.js", get(page::script)),
        (Method::GET, "/early.js", get(page::early)),
        (Method::GET, "/api/experiments", get(list::list)),
        (
            Method::GET,
            "/api/experiments/{id}/report",
            get(experiment::report),
        ),
        (Method::GET, trial, get(experiment::trial)),
        (
            Method::GET,
            "/api/experiments/{id}/capacity",
            get(experiment::capacity),
        ),
        (Method::GET, "/api/experiments/{id}/live", get(live::live)),
        (Method::GET, "/api/compare", get(experiment::compared)),
        (Method::GET, "/api/targets", get(targets::targets)),
        (Method::GET, NOTES, get(list::notes)),
        (Method::POST, NOTES, post(list::add_note)),
        (Method::DELETE, note, delete(list::remove_note)),
        (Method::GET, tags, get(list::tags)),
        (Method::PUT, TAG, put(list::tag)),
        (Method::DELETE, TAG, delete(list::untag)),
        (Method::GET, "/api/openapi.json", get(openapi)),
        (Method::GET, "/metrics", get(metrics::metrics)),
    ]
}

/// The description of this interface.
const OPENAPI: &str = include_str!("openapi.json");

async fn openapi(headers: HeaderMap) -> Body {
    Body::new(
        "application/json",
        OPENAPI.as_bytes().to_vec(),
        takes_gzip(&headers),
    )
}

fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for (_, path, answers) in routes() {
        router = router.route(path, answers);
    }
    router
        .fallback(|| async {
            Problem::nothing("there is nothing at this address")
                .do_this("GET /api/openapi.json lists all addresses")
        })
        .method_not_allowed_fallback(|| async { Problem::wrong_method() })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&app), door::door))
        .with_state(app)
}
