//! Records in; HTML, Markdown, JSON, CSV, Parquet and the terminal's table out. Gets records, never
//! a connection.

mod build;
mod detail;
mod distribution;
mod format;
mod heat;
mod html;
mod marks;
mod metric;
mod model;
mod parquet;
mod text;

pub use build::build;
pub use detail::{
    Details, PackError, Packed, Scope, Statement, TrialColumn, TrialDocument, TrialPart, WaitSessions, Waits,
    pack, trial,
};
pub use format::{
    REFERENCE_AGAIN, SERIES_HEAD, TextFormat, bmf, csv, github_benchmark, junit, markdown, markdown_code,
    markdown_text, otava, postgresbench, series_csv,
};
pub use heat::Heat;
pub use html::{HtmlError, html, html_with, page};
pub use marks::{Mark, MarkKind, mark_metrics};
pub use model::FORMAT as REPORT_FORMAT;
pub use model::{
    Bounded, ClaimOutcome, Curve, CurvePoint, FactorEffect, Highest, LevelOf, Report, Setting, Shift, Study,
    StudyChart, StudyClaim, StudyTable, TableBlock, TableCell, TableColumn, TableRow, Timeline,
    TimelinePoint, Treatment, Trial, UslCurve, WholeChart, Zone,
};
pub use parquet::{ParquetFault, SeriesParquet, trials_parquet};
pub use text::{effect, figure_heading, figure_value, verdict_word};
