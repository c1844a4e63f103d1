//! One self-contained HTML file: the page of ui/ with the report's data inside.

use crate::detail::{Details, Packed};
use crate::model::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Why a report cannot be written as HTML.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The program was built without the page that HTML embeds.
    #[error("this pgdyno was built without its web page, so it cannot write HTML")]
    NoPage,
    /// The data cannot be written as JSON.
    #[error("the report's data cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl HtmlError {
    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            HtmlError::NoPage => Some(
                "`make build` builds the page with npm and then pgdyno; --format md and json work without it",
            ),
            HtmlError::Json(_) => None,
        }
    }
}

#[cfg(page)]
const PAGE: Option<(&str, &str)> = Some((include_str!("../page/app.css"), include_str!("../page/app.js")));
#[cfg(not(page))]
const PAGE: Option<(&str, &str)> = None;

/// Style and script of the page, for a server that hands them out by themselves.
pub fn page() -> Result<(&'static str, &'static str), HtmlError> {
    PAGE.ok_or(HtmlError::NoPage)
}

/// The report as one HTML file that opens from disk without a network, without the details of its
/// trials.
pub fn html(report: &Report) -> Result<String, HtmlError> {
    html_with(report, None)
}

/// The same with what [`pack`](crate::pack) made of the trials.
pub fn html_with(report: &Report, trials: Option<(&Details, &[Packed])>) -> Result<String, HtmlError> {
    let (style, script) = PAGE.ok_or(HtmlError::NoPage)?;
    // With every < escaped, no text of the data can end the element or begin another.
    let data = serde_json::to_string(report)?.replace('<', "\\u003c");
    let details = match trials {
        None => String::new(),
        Some((details, packed)) => details_of(details, packed)?,
    };
    let title = escape(&format!("{} \u{2013} pgdyno", report.experiment.name));
    let policy = policy(style, script);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{style}</style>\n</head>\n<body>\n<div id=\"app\"></div>\n\
         <noscript>This page draws its charts with JavaScript. The same report without it: pgdyno report {} --format \
         md</noscript>\n\
         <script type=\"application/json\" id=\"pgdyno-data\">{data}</script>\n{details}<script>{script}</script>\n</body>\n\
         </html>\n",
        report.experiment.id
    ))
}

/// The page's own style and script, by their hashes, and pictures that it draws itself: nothing
/// else runs, and nothing is fetched or sent.
fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

/// An element for each trial: base64 has no character that could end it.
fn details_of(details: &Details, packed: &[Packed]) -> Result<String, HtmlError> {
    let about = serde_json::to_string(details)?;
    let mut text = format!("<script type=\"application/json\" id=\"pgdyno-details\">{about}</script>\n");
    for trial in packed {
        let (id, packed) = (trial.trial, &trial.text);
        text += &format!("<script type=\"text/plain\" id=\"pgdyno-trial-{id}\">{packed}</script>\n");
    }
    Ok(text)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_runs_its_own_script_and_no_other() {
        let policy = policy("", "alert(1)");
        // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
        assert!(
            policy.contains("script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"),
            "{policy}"
        );
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
}
