//! Answers as JSON: made from the store on threads of their own, packed where the asking side takes
//! it.

use super::App;
use super::problem::Problem;
use axum::body::Bytes;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use pgdyno_store::Store;
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits for others that read the store.
const FOR_TURN: Duration = Duration::from_secs(30);
/// Less than a packet is not packed.
const PACKED_BYTES_MIN: usize = 1400;

/// A body that is whole; a copy shares its bytes.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) status: StatusCode,
    kind: &'static str,
    bytes: Bytes,
    is_packed: bool,
}

impl Body {
    /// Bytes of some kind, packed where that is asked for and worth it.
    pub(super) fn new(kind: &'static str, bytes: Vec<u8>, pack: bool) -> Body {
        let is_packed = pack && bytes.len() >= PACKED_BYTES_MIN;
        Body {
            status: StatusCode::OK,
            kind,
            bytes: match is_packed {
                true => gzip(&bytes).into(),
                false => bytes.into(),
            },
            is_packed,
        }
    }

    /// Bytes as they are sent.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn json(value: &impl Serialize, pack: bool) -> Result<Body, Problem> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| Problem::failed(format!("the answer cannot be written: {error}")))?;
        Ok(Body::new("application/json", bytes, pack))
    }
}

impl IntoResponse for Body {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.bytes).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if self.is_packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Into memory, which takes everything.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Whether the asking side takes gzip (RFC 9110, 12.5.3).
pub(super) fn takes_gzip(asked: &HeaderMap) -> bool {
    let values = asked.get_all(ACCEPT_ENCODING).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|choice| {
            let (name, weight) = choice.split_once(';').unwrap_or((choice, ""));
            let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
            name.trim().eq_ignore_ascii_case("gzip") && weight.parse::<f64>().is_ok_and(|weight| weight > 0.0)
        })
}

impl App {
    /// Does something with the store, apart from the thread that moves bytes; so many at a time.
    pub(super) async fn with_store<T: Send + 'static>(
        self: &Arc<App>,
        act: impl FnOnce(&App, &mut Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = tokio::time::timeout(FOR_TURN, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "so many requests read the store that this one has got no turn",
            )
            .do_this("try again"));
        };
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let done = app.stores.take().map_err(Problem::from).and_then(|mut store| {
                let made = act(&app, &mut store);
                // After a problem too: whoever takes it asks whether it is of use.
                app.stores.keep(store);
                made
            });
            drop(turn);
            done
        });
        done.await
            .unwrap_or_else(|_| Err(Problem::failed("this could not be done: a fault of pgdyno's own")))
    }

    /// Answers with what is made of the store.
    pub(super) async fn json<T: Serialize>(
        self: &Arc<App>,
        asked: &HeaderMap,
        make: impl FnOnce(&App, &mut Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let pack = takes_gzip(asked);
        let body = self
            .with_store(move |app, store| Body::json(&make(app, store)?, pack))
            .await?;
        Ok(body.into_response())
    }
}

/// A number in an address.
pub(super) fn number(text: &str, what: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| {
        Problem::nothing(format!(
            "there is no {what} of this number: expected a whole number"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    proptest! {
        #[test]
        fn no_header_makes_it_panic(value in "[ -~]{0,40}") {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            let _ = takes_gzip(&headers);
        }
    }

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        let check = |value: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        };
        check("gzip", true);
        check("br, GZIP;q=0.5", true);
        check("gzip;q=0", false);
        check("gzip; q=x", false);
        check("br", false);
        check("", false);
        let text = "a text that is there again and again; ".repeat(100);
        let body = Body::new("text/plain", text.clone().into_bytes(), true);
        assert!(body.is_packed && body.bytes.len() < text.len() / 2);
        let mut read = String::new();
        GzDecoder::new(&body.bytes[..]).read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        assert!(!Body::new("text/plain", b"short".to_vec(), true).is_packed);
    }
}
