//! The live view of a target: a source reads, a model keeps, a view shows. Only the source touches
//! the target; the terminal is a [`Screen`] that the program hands over. Nothing here prints, or
//! changes anything on the target.

mod format;
mod grid;
mod keys;
mod model;
mod names;
pub mod once;
mod relay;
mod ring;
mod rules;
mod source;
mod view;

pub use keys::{INTERVAL_MAX, INTERVAL_MIN, State};
pub use model::Model;
pub use relay::Relay;
pub use source::{Plan, Source, SourceEnded, StartError};

use keys::Asked;
use model::Update;
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a key is waited for before the source is checked.
const PATIENCE: Duration = Duration::from_millis(100);
/// Updates that are taken in before keys are read again.
const UPDATES_AT_ONCE: usize = 1000;
/// Ages on the screen go on without news.
const REDRAWN_AFTER: Duration = Duration::from_secs(1);

/// An event of the terminal.
#[derive(Debug)]
pub enum TerminalEvent {
    /// A key that was pressed.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// The terminal has hung up.
    Gone,
    /// No event within the time.
    Nothing,
}

/// A terminal that the view draws on.
pub trait Screen {
    /// Draws; what is already there is not sent again.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be written.
    fn draw(&mut self, picture: &mut dyn FnMut(&mut Frame<'_>)) -> io::Result<()>;

    /// The next key or change of size, if there is one within `patience`.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be read.
    fn next(&mut self, patience: Duration) -> io::Result<TerminalEvent>;

    /// Whether the terminal has hung up.
    fn is_gone(&self) -> bool;
}

/// Shows the target until the user quits, the terminal hangs up, or something sets `stop`.
///
/// # Errors
///
/// If the terminal cannot be read or written.
pub fn run(
    source: &Source,
    model: &mut Model,
    state: &mut State,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut frozen: Option<Model> = None;
    let mut drawn: Option<Instant> = None;
    while !stop.load(Ordering::Relaxed) {
        let mut news = false;
        match screen.next(PATIENCE)? {
            TerminalEvent::Key(key) => {
                news = true;
                match state.press(key) {
                    Asked::Quit => return Ok(()),
                    Asked::Source => source.ask(state.interval, state.panel),
                    Asked::Nothing => {}
                }
            }
            TerminalEvent::Resized => news = true,
            TerminalEvent::Gone => return Ok(()),
            TerminalEvent::Nothing => {}
        }
        for update in std::iter::from_fn(|| source.next()).take(UPDATES_AT_ONCE) {
            // Waits come ten times a second and are shown by the second.
            news |= !matches!(update, Update::Waits(_));
            model.apply(update, Instant::now());
        }
        model.now = Instant::now();
        match (state.paused, frozen.is_some()) {
            (true, false) => frozen = Some(model.clone()),
            (false, true) => frozen = None,
            _ => {}
        }
        if news || drawn.is_none_or(|at| at.elapsed() >= REDRAWN_AFTER) {
            let shown = frozen.as_ref().unwrap_or(model);
            let mut offset = 0;
            match screen.draw(&mut |frame| offset = view::draw(frame, shown, state)) {
                Err(_) if screen.is_gone() => return Ok(()),
                drawn => drawn?,
            }
            state.offset = offset;
            drawn = Some(Instant::now());
        }
    }
    Ok(())
}
