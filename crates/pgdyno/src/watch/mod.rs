//! The live view of a target: a source reads, a model keeps, a view shows. Only the source touches the target, only the
//! terminal's room touches the terminal.

mod format;
mod grid;
pub(crate) mod keys;
pub(crate) mod model;
mod names;
pub(crate) mod once;
mod ring;
mod rules;
pub(crate) mod source;
mod terminal;
mod view;

use keys::{Asked, State};
use model::{Model, Update};
use source::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use terminal::{Screen, Told};

/// How long a key is waited for before the source is looked at.
const PATIENCE: Duration = Duration::from_millis(100);
/// Ages on the screen go on without news.
const REDRAWN_AFTER: Duration = Duration::from_secs(1);

/// Shows the target until the user quits or a signal sets `stop`.
pub(crate) fn run(
    source: &Source,
    model: &mut Model,
    state: &mut State,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let mut screen = Screen::take(stop)?;
    let mut frozen: Option<Model> = None;
    let mut drawn: Option<Instant> = None;
    while !stop.load(Ordering::Relaxed) {
        let mut news = false;
        match screen.next(PATIENCE)? {
            Told::Key(key) => {
                news = true;
                match state.press(key) {
                    Asked::Quit => return Ok(()),
                    Asked::Source => source.ask(state.interval, state.panel),
                    Asked::Nothing => {}
                }
            }
            Told::Resized => news = true,
            Told::Gone => return Ok(()),
            Told::Nothing => {}
        }
        while let Some(update) = source.next() {
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
            match screen.draw(|frame| offset = view::draw(frame, shown, state)) {
                Err(_) if terminal::is_gone(Duration::ZERO) => return Ok(()),
                drawn => drawn?,
            }
            state.offset = offset;
            drawn = Some(Instant::now());
        }
    }
    anyhow::ensure!(
        !terminal::has_panicked(),
        "a thread ended by a fault of the program; its words are above"
    );
    Ok(())
}
