//! The text formats of a report, each in a module of its own below: a new one is a module, a
//! variant, and its arm here.

mod continuous;
mod csv;
mod markdown;
mod postgresbench;

pub use continuous::{REFERENCE_AGAIN, bmf, github_benchmark, junit};
pub use csv::{SERIES_HEAD, csv, otava, series_csv};
pub(crate) use csv::{factors, figures};
pub use markdown::{markdown, markdown_code, markdown_text};
pub use postgresbench::postgresbench;

use crate::model::Report;

/// A text format of a whole report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// Markdown.
    Markdown,
    /// JSON, with everything that the page is made of.
    Json,
    /// CSV, a line for each trial with all its figures.
    Csv,
}

impl TextFormat {
    /// All of them.
    pub const ALL: [TextFormat; 3] = [TextFormat::Markdown, TextFormat::Json, TextFormat::Csv];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TextFormat::Markdown => "md",
            TextFormat::Json => "json",
            TextFormat::Csv => "csv",
        }
    }

    /// Whether programs read it byte for byte, and people do not.
    pub fn is_data(self) -> bool {
        self == TextFormat::Csv
    }

    /// Renders a report, for a terminal or a file.
    ///
    /// # Errors
    ///
    /// A report that JSON cannot hold.
    pub fn render(self, report: &Report) -> serde_json::Result<String> {
        Ok(match self {
            TextFormat::Markdown => markdown(report),
            TextFormat::Json => serde_json::to_string_pretty(report)? + "\n",
            TextFormat::Csv => csv(report),
        })
    }
}
