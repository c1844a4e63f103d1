//! Who may come in: every request passes here first. It must mean this server by its name, come
//! from this server's own page if from any, and carry the token; every answer leaves with the same
//! strict headers.

use super::page;
use super::problem::Problem;
use super::{App, BODY_BYTES_MAX};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A connection that is silent for a little longer is closed.
const ANSWER_MAX: Duration = Duration::from_secs(100);

/// Nothing but what this server sends, and no script or style within a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The names by which this server may be meant.
pub(super) struct Names {
    pub(super) listening: SocketAddr,
    pub(super) allowed: Vec<String>,
}

/// A host as headers name it, in lower case, with its port if that is not the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    fn parse(text: &str) -> Option<Authority> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                (host, rest.strip_prefix(':').or(rest.is_empty().then_some(""))?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let port = match port {
            "" => None,
            port => Some(port.parse().ok()?),
        };
        let host = host.to_ascii_lowercase();
        (!host.is_empty()).then_some(Authority { host, port })
    }

    /// The same where the port of the scheme is written or not.
    fn is_same(&self, other: &Authority, scheme_port: u16) -> bool {
        self.host == other.host && self.port.unwrap_or(scheme_port) == other.port.unwrap_or(scheme_port)
    }
}

impl Names {
    /// Whether a Host header means this server. A page of another site can lead its own name here,
    /// but no address and no "localhost"; ports are left open, for they may be forwarded.
    fn mean(&self, host: &Authority) -> bool {
        if host.host == "localhost" || self.allowed.contains(&host.host) {
            return true;
        }
        let Ok(address) = host.host.parse::<IpAddr>() else {
            return false;
        };
        let own = self.listening.ip();
        address.is_loopback() || own.is_unspecified() || address == own
    }

    /// Whether an Origin header is this server's own page: the same host and port as the Host
    /// header, or a name that was allowed, where a reverse proxy has changed the Host header.
    fn is_own(&self, origin: &str, host: &Authority) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else {
            return false;
        };
        let port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        Authority::parse(rest)
            .is_some_and(|from| from.is_same(host, port) || self.allowed.contains(&from.host))
    }
}

/// Everything that a request must pass, and what every answer gets.
pub(super) async fn door(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let wants_page = wants_page(&request);
    let mut response = match admit(&app, &request) {
        // Time for a body to come, and for the answer to begin.
        Ok(None) => match tokio::time::timeout(ANSWER_MAX, next.run(request)).await {
            Ok(answer) => answer,
            Err(_) => late().into_response(),
        },
        Ok(Some(way_in)) => way_in,
        Err(problem) if wants_page => page::refusal(&problem),
        Err(problem) => problem.into_response(),
    };
    let status = response.status();
    let is_plain = |response: &Response| {
        let kind = response.headers().get(CONTENT_TYPE);
        kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
    };
    if (status.is_client_error() || status.is_server_error()) && is_plain(&response) {
        // What the router or an extractor refused: reported like everything else.
        response = refused(status).into_response();
    }
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer realm=\"pgdyno\"");
        headers.insert(WWW_AUTHENTICATE, bearer);
    }
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Data is nobody's to keep; the page's own files say for themselves how long they hold.
    let kept = headers.contains_key(ETAG);
    if !kept {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn refused(status: StatusCode) -> Problem {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            status,
            format!("the body of this request has more than {BODY_BYTES_MAX} bytes"),
        ),
        _ => Problem::new(status, "this request cannot be understood"),
    }
}

fn late() -> Problem {
    let seconds = ANSWER_MAX.as_secs();
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        format!("this request could not be answered within {seconds} s"),
    )
    .do_this("try again when less is asked for")
}

/// A browser that goes somewhere, and shows what comes.
fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let accept = request
        .headers()
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok());
    !path.starts_with("/api/") && accept.is_some_and(|accept| accept.contains("text/html"))
}

/// `None` where the request may go on; an answer where it came by the link with the token.
fn admit(app: &App, request: &Request) -> Result<Option<Response>, Problem> {
    let headers = request.headers();
    let host = meant(app, headers)?;
    if let Some(origin) = headers.get(ORIGIN) {
        let own = origin
            .to_str()
            .is_ok_and(|origin| app.names.is_own(origin, &host));
        if !own {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "this request comes from a page of another site",
            )
            .do_this(
                "behind a reverse proxy: `pgdyno serve --allow-host NAME` with the name that browsers use",
            ));
        }
    }
    if request.uri().path() == "/"
        && request.method() == Method::GET
        && let Some(token) = in_link(request)
    {
        return match app.token.is(&token) {
            true => Ok(Some(into_cookie(app, headers))),
            false => Err(wrong_token("the link's token is not this server's")),
        };
    }
    if app.token.is_in(headers, &app.cookie) {
        return Ok(None);
    }
    Err(wrong_token(
        "this request carries no token of this server, or a wrong one",
    ))
}

/// The host that a request means, if that is this server.
fn meant(app: &App, headers: &HeaderMap) -> Result<Authority, Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().and_then(Authority::parse),
        _ => None,
    };
    host.filter(|host| app.names.mean(host)).ok_or_else(|| {
        Problem::new(
            StatusCode::FORBIDDEN,
            "the Host header of this request does not name this server",
        )
        .do_this(
            "use the printed address, or start `pgdyno serve --allow-host NAME` with the name that is used",
        )
    })
}

fn wrong_token(error: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, error).do_this(
        "open the link that `pgdyno serve` has printed, or send `Authorization: Bearer TOKEN` with the token in it",
    )
}

fn in_link(request: &Request) -> Option<String> {
    let query = request.uri().query()?;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value.into_owned())
}

/// The token leaves the address bar: the browser keeps it as a cookie and goes to the page.
fn into_cookie(app: &App, headers: &HeaderMap) -> Response {
    let forwarded = headers.get("x-forwarded-proto");
    let is_encrypted = forwarded.is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"));
    let mut response = page::way_in();
    if let Some(cookie) = app.token.cookie(&app.cookie, is_encrypted) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_header_makes_it_panic(host in ".{0,40}", origin in "([a-z]{0,5}://)?.{0,40}") {
            let names = names("127.0.0.1:7432", &["a.example"]);
            if let Some(host) = Authority::parse(&host) {
                let _ = (names.mean(&host), names.is_own(&origin, &host));
            }
        }
    }

    fn names(listening: &str, allowed: &[&str]) -> Names {
        Names {
            listening: listening.parse().unwrap(),
            allowed: allowed.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn hosts_that_mean_this_server() {
        let check = |listening, allowed: &[&str], host, expected| {
            let meant = Authority::parse(host).is_some_and(|host| names(listening, allowed).mean(&host));
            assert_eq!(meant, expected, "{listening} {allowed:?} {host}");
        };
        let loopback = "127.0.0.1:7432";
        check(loopback, &[], "127.0.0.1:7432", true);
        check(loopback, &[], "localhost:9000", true);
        check(loopback, &[], "LOCALHOST", true);
        check(loopback, &[], "[::1]:7432", true);
        check(loopback, &[], "evil.example", false);
        check(loopback, &[], "localhost.evil.example:7432", false);
        check(loopback, &[], "127.0.0.1.evil.example", false);
        check(loopback, &[], "10.0.0.1:7432", false);
        check(loopback, &[], "", false);
        check(loopback, &[], ":7432", false);
        check(loopback, &[], "localhost:none", false);
        check(loopback, &[], "[::1", false);
        check(loopback, &[], "[::1]x", false);
        check(loopback, &["results.example.org"], "Results.example.org", true);
        check(
            loopback,
            &["results.example.org"],
            "results.example.org:8443",
            true,
        );
        check("0.0.0.0:7432", &[], "10.0.0.1:7432", true);
        check("10.0.0.1:7432", &[], "10.0.0.2:7432", false);
        check("10.0.0.1:7432", &[], "10.0.0.1", true);
    }

    #[test]
    fn origins_that_are_this_servers_own() {
        let check = |allowed: &[&str], host, origin, expected| {
            let host = Authority::parse(host).unwrap();
            let own = names("127.0.0.1:7432", allowed).is_own(origin, &host);
            assert_eq!(own, expected, "{allowed:?} {host:?} {origin}");
        };
        check(&[], "127.0.0.1:7432", "http://127.0.0.1:7432", true);
        check(&[], "127.0.0.1:7432", "http://127.0.0.1:8000", false);
        check(&[], "127.0.0.1:7432", "http://localhost:7432", false);
        check(&[], "127.0.0.1:7432", "null", false);
        check(&[], "127.0.0.1:7432", "file://", false);
        check(&[], "127.0.0.1:7432", "https://evil.example", false);
        check(&["a.example"], "a.example", "https://a.example", true);
        check(&["a.example"], "a.example:443", "https://a.example", true);
        check(&["a.example"], "127.0.0.1:7432", "https://a.example", true);
        check(&["a.example"], "a.example", "https://b.a.example", false);
    }
}
