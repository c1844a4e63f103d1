//! A command that a script gives to the shell, within a transaction.

use crate::foreign;
use pgdyno_engine::expression::Variable;
use pgdyno_engine::program::Aside;
use pgdyno_engine::value::{Slot, Trouble, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Debug)]
pub(super) struct Shell {
    /// Where the integer goes that it prints, if it is wanted.
    pub(super) variable: Option<Variable>,
    pub(super) words: Vec<Word>,
    /// Whether somebody has asked to stop, which ends it.
    pub(super) stop: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) enum Word {
    Text(String),
    Variable(Variable),
}

impl Aside for Shell {
    fn run(&self, slots: &mut [Slot], names: &[String]) -> Result<(), Trouble> {
        let mut line = Vec::new();
        for word in &self.words {
            if !line.is_empty() {
                line.push(b' ');
            }
            match word {
                Word::Text(text) => line.extend_from_slice(text.as_bytes()),
                Word::Variable(variable) => {
                    let slot = &slots[usize::from(*variable)];
                    if !slot.is_set() {
                        let name = &names[usize::from(*variable)];
                        return Err(Trouble::new(format!("the variable \"{name}\" is not set")));
                    }
                    slot.write(&mut line);
                }
            }
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let failed = |why: String| Trouble::new(format!("the command {why}"));
        let text = foreign::shell(line, &self.stop, foreign::SHELL_LIMIT).map_err(failed)?;
        let Some(variable) = self.variable else {
            return Ok(());
        };
        let number: i64 = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok())
            .ok_or_else(|| failed("did not print an integer".into()))?;
        slots[usize::from(variable)].set(Value::Int(number));
        Ok(())
    }
}
