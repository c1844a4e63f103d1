//! The page: a shell without data or script of its own, the files that it loads, and what is shown
//! where there is none.

use super::App;
use super::answer::{gzip, takes_gzip};
use super::problem::Problem;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use pgdyno_report::HtmlError;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;

/// A browser keeps the page's files, and asks each time whether they are still the same.
const REVALIDATE: &str = "no-cache";
/// Bytes of the hash that distinguishes one build's file from another's.
const TAG_BYTES: usize = 12;

const SHELL: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>pgdyno</title>\n\
    <meta name=\"pgdyno-mode\" content=\"serve\">\n<link rel=\"icon\" href=\"data:,\">\n\
    <script src=\"/early.js\"></script>\n<link rel=\"stylesheet\" href=\"/app.css\">\n</head>\n<body>\n<div id=\"app\"></div>\n\
    <noscript>This page is drawn with JavaScript. The same without it: pgdyno list, show and report.</noscript>\n\
    <script src=\"/app.js\" defer></script>\n</body>\n</html>\n";

/// A file of the page as it is sent.
pub(super) struct Asset {
    kind: &'static str,
    tag: HeaderValue,
    plain: &'static str,
    packed: Bytes,
}

/// What begins to ask before the script is there, which takes longer to come and to begin.
const EARLY: &str = include_str!("early.js");

/// Style sheets and scripts of the page.
pub(super) struct Assets {
    style: Asset,
    script: Asset,
    early: Asset,
}

impl Assets {
    /// Those that were built in.
    pub(super) fn built_in() -> Result<Assets, HtmlError> {
        let (style, script) = pgdyno_report::page()?;
        Ok(Assets {
            style: Asset::new("text/css; charset=utf-8", style),
            script: Asset::new("text/javascript; charset=utf-8", script),
            early: Asset::new("text/javascript; charset=utf-8", EARLY),
        })
    }
}

impl Asset {
    fn new(kind: &'static str, plain: &'static str) -> Asset {
        let mut tag = "W/\"".to_owned();
        for byte in Sha256::digest(plain.as_bytes()).iter().take(TAG_BYTES) {
            // Into a String, which takes everything.
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        Asset {
            kind,
            tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("W/\"0\"")),
            plain,
            packed: gzip(plain.as_bytes()).into(),
        }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let known = asked
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let is_known = known
            .flat_map(|value| value.split(','))
            .any(|tag| tag.trim() == self.tag);
        let mut response = match (is_known, takes_gzip(asked)) {
            (true, _) => StatusCode::NOT_MODIFIED.into_response(),
            (false, true) => {
                let encoding = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (encoding, self.packed.clone()).into_response()
            }
            (false, false) => self.plain.into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(ETAG, self.tag.clone());
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(REVALIDATE));
        response
    }
}

pub(super) async fn shell(State(app): State<Arc<App>>) -> Response {
    match &app.assets {
        Ok(_) => html(StatusCode::OK, SHELL.to_owned()),
        Err(error) => refusal(&no_page(error)),
    }
}

pub(super) async fn style(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let assets = app.assets.as_ref().map_err(no_page)?;
    Ok(assets.style.answer(&headers))
}

pub(super) async fn script(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let assets = app.assets.as_ref().map_err(no_page)?;
    Ok(assets.script.answer(&headers))
}

pub(super) async fn early(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let assets = app.assets.as_ref().map_err(no_page)?;
    Ok(assets.early.answer(&headers))
}

/// What is missing, and how to get it.
fn no_page(error: &HtmlError) -> Problem {
    let problem = Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        match error {
            HtmlError::NoPage => "this pgdyno was built without its web page".to_owned(),
            HtmlError::Json(_) => error.to_string(),
        },
    );
    problem.do_this(
        "`make build` builds the page with npm and then pgdyno; without it /api/ and /metrics answer (GET /api/openapi.json)",
    )
}

/// A problem as a page of plain HTML.
pub(super) fn refusal(problem: &Problem) -> Response {
    let mut body = format!("<p>{}.</p>\n", escape(&problem.error));
    if let Some(what_to_do) = &problem.what_to_do {
        let _ = writeln!(body, "<p>What to do: {}.</p>", escape(what_to_do));
    }
    html(problem.status, small("", &body))
}

/// What the link is answered with: the way to the page, for browsers to go by themselves. A
/// redirect would still count as the site's where the link was clicked, and the cookie would stay
/// behind.
pub(super) fn way_in() -> Response {
    let refresh = "<meta http-equiv=\"refresh\" content=\"0; url=/\">\n";
    html(
        StatusCode::OK,
        small(refresh, "<p><a href=\"/\">The page</a></p>\n"),
    )
}

/// A page without style and script.
fn small(head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n{head}<title>pgdyno</title>\n</head>\n\
         <body>\n<h1>pgdyno</h1>\n{body}</body>\n</html>\n"
    )
}

fn html(status: StatusCode, text: String) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))];
    (status, kind, text).into_response()
}

/// Text that cannot become a tag or an attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_problem_becomes_a_tag() {
        assert_eq!(
            escape("<script>\"a\" & 'b'</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;"
        );
        assert!(!SHELL.contains("<style") && !SHELL.contains("style=") && !SHELL.contains("<script>"));
    }
}
