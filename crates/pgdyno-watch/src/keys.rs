//! Keys, and what they make of the view's own state: which panel, how it is sorted, filtered,
//! paused.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;

/// What is shown below the headline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Overview,
    Waits,
    Statements,
    Sessions,
    Vacuum,
    Devices,
    Memory,
    Notes,
}

impl Panel {
    pub(crate) const ALL: [Panel; 8] = [
        Panel::Overview,
        Panel::Waits,
        Panel::Statements,
        Panel::Sessions,
        Panel::Vacuum,
        Panel::Devices,
        Panel::Memory,
        Panel::Notes,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Panel::Overview => "overview",
            Panel::Waits => "waits",
            Panel::Statements => "statements",
            Panel::Sessions => "sessions",
            Panel::Vacuum => "vacuum",
            Panel::Devices => "devices",
            Panel::Memory => "memory",
            Panel::Notes => "notes",
        }
    }

    pub(crate) fn number(self) -> usize {
        Panel::ALL.iter().position(|panel| *panel == self).unwrap_or(0)
    }

    /// What its rows can be sorted by, the usual one first.
    pub(crate) fn orders(self) -> &'static [&'static str] {
        match self {
            Panel::Waits => &["sessions", "event"],
            Panel::Statements => &["total time", "calls", "I/O time", "dirtied blocks", "WAL"],
            Panel::Sessions => &["query age", "transaction age", "state age", "blocked", "pid"],
            Panel::Vacuum => &["age", "database"],
            Panel::Devices => &["device", "util"],
            Panel::Overview | Panel::Memory | Panel::Notes => &[],
        }
    }

    fn step(self, forward: bool) -> Panel {
        let n = Panel::ALL.len();
        let step = if forward { 1 } else { n - 1 };
        Panel::ALL[(self.number() + step) % n]
    }
}

/// Intervals that + and - go through.
const INTERVALS_MS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];
/// The shortest interval: the samplers' own limit.
pub const INTERVAL_MIN: Duration = Duration::from_millis(INTERVALS_MS[0]);
/// Longest interval that can be chosen.
pub const INTERVAL_MAX: Duration = Duration::from_millis(INTERVALS_MS[INTERVALS_MS.len() - 1]);
/// A filter is a word, not a text.
const FILTER_MAX: usize = 60;

/// Panel, scroll position and interval of the view.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) panel: Panel,
    pub(crate) interval: Duration,
    pub(crate) paused: bool,
    pub(crate) help: bool,
    pub(crate) colour: bool,
    /// Whether the terminal's character set has bars.
    pub(crate) bars: bool,
    /// Rows must hold this, in any case of letters.
    pub(crate) filter: String,
    /// Whether keys go to the filter.
    pub(crate) typing: bool,
    /// Number of lines that are scrolled away above.
    pub(crate) offset: usize,
    orders: [usize; Panel::ALL.len()],
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    Quit,
    /// Another interval or panel: the source has to know.
    Source,
}

impl State {
    /// The overview, at this interval, with colours and Unicode bars or without.
    pub fn new(interval: Duration, colour: bool, bars: bool) -> State {
        State {
            panel: Panel::Overview,
            interval,
            paused: false,
            help: false,
            colour,
            bars,
            filter: String::new(),
            typing: false,
            offset: 0,
            orders: [0; Panel::ALL.len()],
        }
    }

    /// Number of the order that the panel is sorted by.
    pub(crate) fn order(&self) -> usize {
        self.orders[self.panel.number()]
    }

    /// Whether a row is shown.
    pub(crate) fn shows(&self, cells: &[String]) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let wanted = self.filter.to_lowercase();
        cells.iter().any(|cell| cell.to_lowercase().contains(&wanted))
    }

    /// Changes the state by a key, and gives what the key asks for.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Asked {
        if key.kind == KeyEventKind::Release {
            return Asked::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Asked::Quit,
                _ => Asked::Nothing,
            };
        }
        if self.typing {
            self.write(key.code);
            return Asked::Nothing;
        }
        self.command(key.code)
    }

    fn write(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if self.filter.chars().count() < FILTER_MAX => self.filter.push(c),
            _ => {}
        }
        self.offset = 0;
    }

    fn command(&mut self, code: KeyCode) -> Asked {
        match code {
            KeyCode::Char('q') => return Asked::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => {
                self.help = !self.help;
                self.offset = 0;
            }
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('+' | '=') => return self.change_interval(true),
            KeyCode::Char('-') => return self.change_interval(false),
            KeyCode::Char('s') => self.sort(true),
            KeyCode::Char('S') => self.sort(false),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Tab | KeyCode::Right => return self.show(self.panel.step(true)),
            KeyCode::BackTab | KeyCode::Left => return self.show(self.panel.step(false)),
            KeyCode::Char(digit @ '1'..='8') => {
                let number = digit as usize - '1' as usize;
                return self.show(Panel::ALL[number]);
            }
            KeyCode::Down | KeyCode::Char('j') => self.offset = self.offset.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.offset = self.offset.saturating_sub(1),
            KeyCode::PageDown => self.offset = self.offset.saturating_add(10),
            KeyCode::PageUp => self.offset = self.offset.saturating_sub(10),
            KeyCode::Home => self.offset = 0,
            _ => {}
        }
        Asked::Nothing
    }

    fn show(&mut self, panel: Panel) -> Asked {
        (self.panel, self.help, self.offset) = (panel, false, 0);
        Asked::Source
    }

    fn sort(&mut self, forward: bool) {
        let n = self.panel.orders().len();
        if n > 0 {
            let order = &mut self.orders[self.panel.number()];
            *order = (*order + if forward { 1 } else { n - 1 }) % n;
        }
        self.offset = 0;
    }

    fn change_interval(&mut self, longer: bool) -> Asked {
        let now = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        let next = if longer {
            INTERVALS_MS.into_iter().find(|ms| *ms > now)
        } else {
            INTERVALS_MS.into_iter().rfind(|ms| *ms < now)
        };
        let Some(next) = next else { return Asked::Nothing };
        self.interval = Duration::from_millis(next);
        Asked::Source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State::new(Duration::from_secs(1), true, true)
    }

    /// Presses the keys of a text and returns what the last one asked.
    fn press(state: &mut State, keys: &str) -> Asked {
        let mut asked = Asked::Nothing;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            };
            asked = state.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        asked
    }

    #[test]
    fn digits_and_tab_choose_the_panel() {
        let check = |keys: &str, panel| {
            let mut state = state();
            assert_eq!(press(&mut state, keys), Asked::Source);
            assert_eq!(state.panel, panel, "{keys:?}");
        };
        check("3", Panel::Statements);
        check("8\t", Panel::Overview);
        check("?2", Panel::Waits);
    }

    #[test]
    fn q_and_control_c_quit_but_not_while_typing() {
        let mut state = state();
        assert_eq!(press(&mut state, "q"), Asked::Quit);
        assert_eq!(press(&mut state, "/q"), Asked::Nothing);
        assert_eq!(state.filter, "q");
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.press(control_c), Asked::Quit);
    }

    #[test]
    fn a_filter_is_typed_kept_and_cleared() {
        let mut state = state();
        press(&mut state, "/upx\x08\n");
        assert_eq!((state.filter.as_str(), state.typing), ("up", false));
        assert!(state.shows(&["UPDATE t".into()]));
        assert!(!state.shows(&["select".into()]));
        press(&mut state, "\x1b");
        assert!(state.shows(&["select".into()]));
    }

    #[test]
    fn orders_go_round_for_each_panel_alone() {
        let mut state = state();
        press(&mut state, "3ss");
        assert_eq!(Panel::Statements.orders()[state.order()], "I/O time");
        press(&mut state, "SSS");
        assert_eq!(state.order(), 4);
        press(&mut state, "4");
        assert_eq!(state.order(), 0);
        press(&mut state, "1s");
        assert_eq!(state.order(), 0);
    }

    #[test]
    fn intervals_stay_within_their_limits() {
        let mut state = state();
        press(&mut state, "+");
        assert_eq!(state.interval, Duration::from_secs(2));
        press(&mut state, "------------");
        assert_eq!(state.interval, INTERVAL_MIN);
        press(&mut state, "++++++++++++++++");
        assert_eq!(state.interval, INTERVAL_MAX);
        press(&mut state, " ?");
        assert!(state.paused && state.help);
    }
}
