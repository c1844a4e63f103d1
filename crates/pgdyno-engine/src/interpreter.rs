//! Runs a client's transactions: from one operation to the next until something is to be sent or
//! waited for.

use crate::actor::{Actor, Halt, Outline, Transactions, Trip, Turn};
use crate::expression::{Expr, Scene, Variable, is_name_byte};
use crate::message::SYNC;
use crate::program::{Capture, Op, Program, Say};
use crate::protocol::Protocol;
use crate::random::Stream;
use crate::reply::{Message, Messages};
use crate::value::{Slot, Trouble, Value};

impl Transactions for Program {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn actor(&self, stream: Stream, number: u32) -> Box<dyn Actor + '_> {
        Box::new(Interpreter::new(self, stream, number))
    }
}

/// Runs one client's routines of a program.
pub(crate) struct Interpreter<'a> {
    program: &'a Program,
    stream: Stream,
    /// The stream at the begin of the transaction at hand, for another try.
    stream_at_begin: Stream,
    slots: Vec<Slot>,
    /// The same for the variables of a user's; empty where every transaction draws its own again.
    slots_at_begin: Vec<Slot>,
    /// The routine at hand and the next operation of it.
    routine: usize,
    at: usize,
    in_pipeline: bool,
    /// Of the request at hand: Syncs, statements, the last statement, rows that are wanted and by
    /// which operation.
    syncs: u32,
    says: u32,
    statement: u32,
    capture: Option<usize>,
    /// Statements that this connection has prepared, a bit each, and those that the request at hand
    /// prepares.
    prepared: Vec<u64>,
    preparing: Vec<u32>,
    /// Values that `debug` was called with, as text.
    notes: Vec<String>,
    columns: Vec<Option<Variable>>,
    name: Vec<u8>,
}

impl Interpreter<'_> {
    pub(crate) fn new(program: &Program, stream: Stream, number: u32) -> Interpreter<'_> {
        let mut slots = program.slots.clone();
        if let Some(client_id) = program.client_id {
            slots[usize::from(client_id)].set(Value::Int(number.into()));
        }
        Interpreter {
            program,
            stream_at_begin: stream.clone(),
            stream,
            slots_at_begin: match program.outline.by_user {
                true => slots.clone(),
                false => Vec::new(),
            },
            slots,
            routine: 0,
            at: 0,
            in_pipeline: false,
            syncs: 0,
            says: 0,
            statement: 0,
            capture: None,
            prepared: vec![0; program.outline.statements.len().div_ceil(64)],
            preparing: Vec::new(),
            notes: Vec::new(),
            columns: Vec::new(),
            name: Vec::new(),
        }
    }

    /// The variables are again what they were before the transaction at hand.
    fn forget(&mut self) {
        for (slot, kept) in self.slots.iter_mut().zip(&self.slots_at_begin) {
            slot.clone_from(kept);
        }
    }

    fn halt(&self, at: usize, trouble: &Trouble) -> Halt {
        let routine = &self.program.routines[self.routine];
        let kind = &self.program.outline.kinds[routine.kind as usize];
        Halt(format!("{kind}:{}: {}", routine.lines[at], trouble.0))
    }

    fn step(&mut self, here: usize, out: &mut Vec<u8>) -> Result<Option<Turn>, Trouble> {
        match &self.program.routines[self.routine].ops[here] {
            Op::Draw(variable, low, high) => {
                let drawn = self.stream.between_i64(*low, *high);
                self.slots[usize::from(*variable)].set(Value::Int(drawn));
            }
            Op::Digits(variable, groups) => {
                let (slot, stream) = (&mut self.slots[usize::from(*variable)], &mut self.stream);
                slot.set_text(|text| stream.push_digits(text, *groups));
            }
            Op::Set(variable, expr) => {
                let value = self.evaluate(expr)?;
                self.slots[usize::from(*variable)].set(value);
            }
            Op::Say(say) => self.say(say, here, out)?,
            Op::Trip if self.in_pipeline => {}
            Op::Trip => {
                self.sync(out);
                return Ok(Some(self.send()));
            }
            Op::StartPipeline if self.in_pipeline => {
                return Err(Trouble::new("the pipeline has begun already"));
            }
            Op::StartPipeline => self.in_pipeline = true,
            Op::SyncPipeline | Op::EndPipeline if !self.in_pipeline => {
                return Err(Trouble::new("there is no pipeline"));
            }
            Op::SyncPipeline => self.sync(out),
            Op::EndPipeline => {
                self.in_pipeline = false;
                self.sync(out);
                return Ok(Some(self.send()));
            }
            Op::Jump(to) => self.at = *to as usize,
            Op::Unless(expr, to) => {
                if !self.evaluate(expr)?.is_true() {
                    self.at = *to as usize;
                }
            }
            Op::Sleep(amount, unit_ns) => {
                let amount = match self.evaluate(amount)? {
                    Value::Int(amount) => amount.max(0).unsigned_abs(),
                    // Without its fraction, as pgbench takes it.
                    Value::Double(amount) if amount.is_finite() => amount.max(0.0) as u64,
                    value => {
                        return Err(Trouble::new(format!(
                            "the time to sleep must be an integer, not {}",
                            value.kind()
                        )));
                    }
                };
                if self.in_pipeline {
                    return Err(Trouble::new("a sleep has no place in a pipeline"));
                }
                return Ok(Some(Turn::Sleep(amount.saturating_mul(*unit_ns))));
            }
            Op::Aside(aside) => aside.run(&mut self.slots, &self.program.names)?,
            Op::End if self.in_pipeline => return Err(Trouble::new("the script ends within a pipeline")),
            Op::End => return Ok(Some(Turn::End)),
        }
        Ok(None)
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Value, Trouble> {
        expr.evaluate(&mut Scene {
            slots: &self.slots,
            names: &self.program.names,
            stream: &mut self.stream,
            notes: &mut self.notes,
        })
    }

    fn say(&mut self, say: &Say, here: usize, out: &mut Vec<u8>) -> Result<(), Trouble> {
        if let Some(prepare) = &say.prepare {
            let (word, bit) = (say.statement as usize / 64, 1 << (say.statement % 64));
            if self.prepared[word] & bit == 0 {
                self.prepared[word] |= bit;
                self.preparing.push(say.statement);
                self.program.layout.encode(prepare, &self.slots, out);
            }
        }
        self.program.layout.encode(&say.pieces, &self.slots, out);
        if let Some(capture) = &say.capture {
            if self.in_pipeline {
                return Err(Trouble::new(format!(
                    "{} has no place in a pipeline",
                    capture.word
                )));
            }
            self.capture = Some(here);
        }
        self.says += 1;
        self.statement = say.statement;
        // Each simple query is answered by itself.
        self.syncs += u32::from(self.program.protocol == Protocol::Simple);
        Ok(())
    }

    fn sync(&mut self, out: &mut Vec<u8>) {
        if self.program.protocol != Protocol::Simple {
            out.extend_from_slice(SYNC);
            self.syncs += 1;
        }
    }

    fn send(&self) -> Turn {
        Turn::Send(Trip {
            syncs: self.syncs,
            captures: self.capture.is_some(),
            statement: (self.says == 1).then_some(self.statement),
        })
    }

    fn take_rows(&mut self, capture: &Capture, reply: &[u8]) -> Result<(), Trouble> {
        let ends = Messages::new(reply)
            .filter(|message| matches!(message, Message::End))
            .count();
        // Of several statements at once, the last one counts.
        let mut ended = 0;
        let mut rows = 0_u64;
        let mut nameless = None;
        for message in Messages::new(reply) {
            match message {
                Message::End => ended += 1,
                _ if capture.single && ended + 1 < ends => {}
                Message::Columns(names) => {
                    self.columns.clear();
                    for name in names {
                        self.name.clear();
                        self.name.extend_from_slice(capture.prefix.as_bytes());
                        self.name.extend_from_slice(name);
                        let variable = self.program.variables.get(&self.name).copied();
                        let is_name =
                            || !self.name.is_empty() && self.name.iter().all(|&byte| is_name_byte(byte));
                        if variable.is_none() && nameless.is_none() && !is_name() {
                            nameless = Some(String::from_utf8_lossy(&self.name).into_owned());
                        }
                        self.columns.push(variable);
                    }
                }
                Message::Row(values) => {
                    rows += 1;
                    for (column, value) in self.columns.iter().zip(values) {
                        if let Some(variable) = column {
                            // A null is an empty text, as pgbench has it.
                            let value = value.unwrap_or_default();
                            self.slots[usize::from(*variable)].set_text(|text| text.extend_from_slice(value));
                        }
                    }
                }
            }
        }
        if capture.single && rows != 1 {
            return Err(Trouble::new(format!(
                "{} expects one row, not {rows}",
                capture.word
            )));
        }
        if let Some(name) = nameless {
            return Err(Trouble::new(format!(
                "the column \"{name}\" of {} is not a name of a variable: name it by AS",
                capture.word
            )));
        }
        Ok(())
    }
}

impl Actor for Interpreter<'_> {
    fn renew(&mut self) {
        self.prepared.fill(0);
        self.preparing.clear();
    }

    fn begin(&mut self) {
        self.routine = match self.program.weights.as_slice() {
            [_] => 0,
            weights => {
                let total = weights.last().copied().unwrap_or(1).cast_signed();
                let drawn = self.stream.between_i64(1, total).cast_unsigned();
                weights.partition_point(|&sum| sum < drawn)
            }
        };
        self.stream_at_begin = self.stream.clone();
        for (kept, slot) in self.slots_at_begin.iter_mut().zip(&self.slots) {
            kept.clone_from(slot);
        }
        (self.at, self.in_pipeline) = (0, false);
    }

    fn restart(&mut self) {
        self.stream = self.stream_at_begin.clone();
        self.forget();
        (self.at, self.in_pipeline) = (0, false);
    }

    fn kind(&self) -> u32 {
        self.program.routines[self.routine].kind
    }

    fn line(&self) -> Option<u32> {
        let lines = &self.program.routines[self.routine].lines;
        let line = lines.get(self.at.saturating_sub(1)).copied().unwrap_or(1);
        self.program.outline.by_user.then_some(line)
    }

    fn run(&mut self, out: &mut Vec<u8>) -> Result<Turn, Halt> {
        out.clear();
        (self.syncs, self.says, self.capture) = (0, 0, None);
        loop {
            let here = self.at;
            self.at += 1;
            let turn = self.step(here, out);
            if let Some(turn) = turn.map_err(|trouble| self.halt(here, &trouble))? {
                return Ok(turn);
            }
        }
    }

    fn take_reply(&mut self, reply: &[u8]) -> Result<(), Halt> {
        self.preparing.clear();
        let Some(here) = self.capture.take() else {
            return Ok(());
        };
        let Op::Say(Say {
            capture: Some(capture),
            ..
        }) = &self.program.routines[self.routine].ops[here]
        else {
            return Ok(());
        };
        self.take_rows(capture, reply)
            .map_err(|trouble| self.halt(here, &trouble))
    }

    fn fail(&mut self) {
        for statement in self.preparing.drain(..) {
            self.prepared[statement as usize / 64] &= !(1 << (statement % 64));
        }
        self.forget();
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}
