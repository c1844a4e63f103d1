//! Programs that are talked to, well and badly.

use crate::foreign::{Dialogue, ForeignError};
use pgdyno_testing::{until, until_is};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Of one that is silent.
const SHORT: Duration = Duration::from_millis(300);
/// Of one that answers, or ends, on a busy host too.
const LONG: Duration = Duration::from_secs(60);

fn begun(script: &str, limit: Duration) -> Dialogue {
    Dialogue::begin(vec!["sh".into(), "-c".into(), script.into()], limit).unwrap()
}

fn asked(script: &str, limit: Duration) -> Result<Option<String>, String> {
    let stop = AtomicBool::new(false);
    begun(script, limit)
        .ask("what?", &stop)
        .map_err(|error| error.to_string())
}

#[test]
fn lines_go_both_ways_and_an_answer_is_as_long_as_it_is() {
    let script = "read a; read b; echo \"$a+$b\"; read c; head -c 100000 /dev/zero | tr '\\0' x; echo";
    let mut dialogue = begun(script, LONG);
    let go_on = AtomicBool::new(false);
    assert!(dialogue.tell("one", &go_on).unwrap());
    assert_eq!(dialogue.ask("two", &go_on).unwrap().as_deref(), Some("one+two"));
    assert_eq!(dialogue.ask("three", &go_on).unwrap().unwrap().len(), 100_000);
}

#[test]
fn one_that_dies_is_silent_or_speaks_unasked_is_named_with_what_it_said() {
    let error = asked("echo no module of that name >&2; exit 3", LONG).unwrap_err();
    assert!(
        error.contains("exit code 3") && error.contains("no module of that name"),
        "{error}"
    );
    let error = asked("read a; kill -9 $$", LONG).unwrap_err();
    assert!(error.contains("signal 9"), "{error}");
    let error = asked("echo busy >&2; exec sleep 600", SHORT).unwrap_err();
    assert!(error.contains("did not answer within 0.3 s"), "{error}");
    let mut dialogue = begun("echo hello; exec sleep 600", LONG);
    // Until its line is there it is only silent. Each question is a line that it does not read, and
    // a pipe has room for some thousand.
    let error = until("its line", || {
        match dialogue.ask("what?", &AtomicBool::new(true)) {
            Ok(answer) => Err(answer),
            Err(error) => Ok(error),
        }
    });
    assert!(matches!(error, ForeignError::Unasked { .. }), "{error}");
    let missing = Dialogue::begin(vec!["/no/such/program".into()], SHORT).err();
    assert!(matches!(missing, Some(ForeignError::Start { .. })));
}

#[test]
fn one_that_does_not_read_is_not_waited_for_without_an_end() {
    let mut dialogue = begun("exec sleep 600", SHORT);
    let go_on = AtomicBool::new(false);
    let line = "x".repeat(50_000);
    let error = (0..100).find_map(|_| dialogue.tell(&line, &go_on).err());
    assert!(matches!(error, Some(ForeignError::Silent { .. })), "{error:?}");
}

#[test]
fn it_ends_with_what_it_has_started_and_a_request_to_stop_comes_first() {
    let mut dialogue = begun("sleep 600 & read a; echo $!; read b; wait", LONG);
    let child = dialogue.ask("who?", &AtomicBool::new(false)).unwrap().unwrap();
    assert_eq!(dialogue.ask("what?", &AtomicBool::new(true)).unwrap(), None);
    let lives = || {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat"));
        state.is_ok_and(|state| !state.contains(") Z "))
    };
    assert!(lives());
    drop(dialogue);
    until_is("whether a child lives", false, lives);
}
