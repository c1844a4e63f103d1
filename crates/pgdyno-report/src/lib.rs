//! Records in; HTML, Markdown, JSON and the terminal's table out. Gets records, never a connection.

mod build;
mod html;
mod markdown;
mod model;
mod words;

pub use build::build;
pub use html::{HtmlError, html};
pub use markdown::markdown;
pub use model::{Report, Setting, Treatment};
pub use words::{effect, verdict_word};
