//! The terminal of the live view: taken when the view begins, and restored on every way out: the
//! end, a signal, an error, a panic in any thread.

use crate::output;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use pgdyno_watch::{Screen, TerminalEvent};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufWriter, Stdout, stdin};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{panic, thread};

/// Whether the terminal is ours. It is restored once: a second time would put the cursor where it
/// was in the beginning, over what has been printed since.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether a thread has panicked: the view ends then, and not well.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Whether a thread has panicked since the terminal was taken.
pub(crate) fn has_panicked() -> bool {
    PANICKED.load(Ordering::SeqCst)
}

/// The terminal, which is restored at the end.
pub(crate) struct Held {
    // Its own drop complains of a terminal that is gone, to that terminal, and panics over it.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    events: Receiver<io::Result<Event>>,
}

impl Held {
    /// Takes the terminal. A panic restores it before its message is printed, and sets `stop`.
    pub(crate) fn take(stop: &Arc<AtomicBool>) -> io::Result<Held> {
        let before = panic::take_hook();
        let stop = Arc::clone(stop);
        panic::set_hook(Box::new(move |info| {
            restore();
            PANICKED.store(true, Ordering::SeqCst);
            stop.store(true, Ordering::Relaxed);
            before(info);
        }));
        TAKEN.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen, Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(stdout()))))
            .and_then(|terminal| Ok((terminal, events()?)));
        match taken {
            Ok((terminal, events)) => Ok(Held {
                terminal: ManuallyDrop::new(terminal),
                events,
            }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Screen for Held {
    fn draw(&mut self, picture: &mut dyn FnMut(&mut Frame<'_>)) -> io::Result<()> {
        let cleaned = |frame: &mut Frame<'_>| {
            picture(frame);
            output::clean_screen(frame.buffer_mut());
        };
        self.terminal.draw(cleaned).map(|_| ())
    }

    fn next(&mut self, patience: Duration) -> io::Result<TerminalEvent> {
        Ok(match self.events.recv_timeout(patience) {
            Ok(Ok(Event::Key(key))) => TerminalEvent::Key(key),
            Ok(Ok(Event::Resize(..))) => TerminalEvent::Resized,
            _ if is_gone() => TerminalEvent::Gone,
            Ok(Err(error)) => return Err(error),
            _ => TerminalEvent::Nothing,
        })
    }

    fn is_gone(&self) -> bool {
        is_gone()
    }
}

/// Where the picture goes: cells that [`Held::draw`] has cleaned, and the library's own sequences.
#[expect(clippy::disallowed_methods, reason = "a picture is not text for `output`")]
fn stdout() -> Stdout {
    io::stdout()
}

/// Keys and sizes, read by a thread of its own: crossterm never returns from a terminal that goes
/// away while it reads.
fn events() -> io::Result<Receiver<io::Result<Event>>> {
    let (sender, events) = channel();
    thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if sender.send(event).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(events)
}

/// Whether the terminal has hung up.
fn is_gone() -> bool {
    let (input, output) = (stdin(), stdout());
    let mut both = [
        PollFd::new(&input, PollFlags::IN),
        PollFd::new(&output, PollFlags::empty()),
    ];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let hung_up = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut both, Some(&at_once)).is_ok() && both.iter().any(|one| one.revents().intersects(hung_up))
}

impl Drop for Held {
    fn drop(&mut self) {
        restore();
    }
}

/// That the terminal is gone is no reason to complain.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // tmux restores lines of a screen that has grown with the old one, unless they are blank.
        let _ = execute!(stdout(), Clear(ClearType::All), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}
