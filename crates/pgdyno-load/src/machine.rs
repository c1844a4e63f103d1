//! Runs a client's transactions: from one operation to the next until something is to be sent or waited for.

use crate::foreign;
use crate::message::SYNC;
use crate::program::{Capture, Op, Program, Say, Shell, Word};
use crate::random::Stream;
use crate::reply::{Message, Messages};
use crate::script::evaluate::Scene;
use crate::script::expression::{Expr, Trouble, Variable, is_name_byte};
use crate::script::value::{Slot, Value};
use crate::workload::Protocol;

/// What comes next for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The request is to be sent, and so many times ReadyForQuery to be waited for.
    Send(Trip),
    /// Nothing for so many nanoseconds.
    Sleep(u64),
    /// The transaction is over.
    End,
}

/// One round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trip {
    pub(crate) syncs: u32,
    /// Whether the rows of the reply are wanted.
    pub(crate) captures: bool,
    /// The statement in it, if it is only one.
    pub(crate) statement: Option<u32>,
}

/// Why a transaction cannot go on: nothing that trying again would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Halt(pub(crate) String);

pub(crate) struct Machine {
    stream: Stream,
    /// The stream at the begin of the transaction at hand, for another try.
    stream_at_begin: Stream,
    slots: Vec<Slot>,
    /// The same for the variables of a script; empty where every transaction draws its own again.
    slots_at_begin: Vec<Slot>,
    /// The routine at hand and the next operation of it.
    routine: usize,
    at: usize,
    in_pipeline: bool,
    /// Of the request at hand: Syncs, statements, the last statement, rows that are wanted and by which operation.
    syncs: u32,
    says: u32,
    statement: u32,
    capture: Option<usize>,
    /// Statements that this connection has prepared, a bit each, and those that the request at hand prepares.
    prepared: Vec<u64>,
    preparing: Vec<u32>,
    /// What `debug` was given.
    pub(crate) notes: Vec<String>,
    columns: Vec<Option<Variable>>,
    name: Vec<u8>,
}

impl Machine {
    pub(crate) fn new(program: &Program, stream: Stream, number: u32) -> Machine {
        let mut slots = program.slots.clone();
        if let Some(client_id) = program.client_id {
            slots[usize::from(client_id)].set(Value::Int(number.into()));
        }
        Machine {
            stream_at_begin: stream.clone(),
            stream,
            slots_at_begin: match program.scripted {
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
            prepared: vec![0; program.statements.len().div_ceil(64)],
            preparing: Vec::new(),
            notes: Vec::new(),
            columns: Vec::new(),
            name: Vec::new(),
        }
    }

    /// A new connection has nothing prepared.
    pub(crate) fn renew(&mut self) {
        self.prepared.fill(0);
        self.preparing.clear();
    }

    /// Chooses the next transaction.
    pub(crate) fn begin(&mut self, program: &Program) {
        self.routine = match program.weights.as_slice() {
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

    /// Begins the transaction at hand once more: the same values will be drawn.
    pub(crate) fn restart(&mut self) {
        self.stream = self.stream_at_begin.clone();
        self.forget();
        (self.at, self.in_pipeline) = (0, false);
    }

    /// The variables are again what they were before the transaction at hand.
    pub(crate) fn forget(&mut self) {
        for (slot, kept) in self.slots.iter_mut().zip(&self.slots_at_begin) {
            slot.clone_from(kept);
        }
    }

    /// The kind of the transaction at hand.
    pub(crate) fn kind(&self, program: &Program) -> u32 {
        program.routines[self.routine].kind
    }

    /// The line of the operation that was done last.
    pub(crate) fn line(&self, program: &Program) -> u32 {
        let lines = &program.routines[self.routine].lines;
        lines.get(self.at.saturating_sub(1)).copied().unwrap_or(1)
    }

    /// Goes on to the next thing to wait for; what is to be sent is put into `out`.
    pub(crate) fn run(&mut self, program: &Program, out: &mut Vec<u8>) -> Result<Turn, Halt> {
        out.clear();
        (self.syncs, self.says, self.capture) = (0, 0, None);
        loop {
            let here = self.at;
            self.at += 1;
            let turn = self.step(program, here, out);
            if let Some(turn) = turn.map_err(|trouble| self.halt(program, here, &trouble))? {
                return Ok(turn);
            }
        }
    }

    fn halt(&self, program: &Program, at: usize, trouble: &Trouble) -> Halt {
        let routine = &program.routines[self.routine];
        let kind = &program.kinds[routine.kind as usize];
        Halt(format!("{kind}:{}: {}", routine.lines[at], trouble.0))
    }

    fn step(&mut self, program: &Program, here: usize, out: &mut Vec<u8>) -> Result<Option<Turn>, Trouble> {
        match &program.routines[self.routine].ops[here] {
            Op::Draw(variable, low, high) => {
                let drawn = self.stream.between_i64(*low, *high);
                self.slots[usize::from(*variable)].set(Value::Int(drawn));
            }
            Op::Digits(variable, groups) => {
                let (slot, stream) = (&mut self.slots[usize::from(*variable)], &mut self.stream);
                slot.set_text(|text| stream.push_digits(text, *groups));
            }
            Op::Set(variable, expr) => {
                let value = self.evaluate(program, expr)?;
                self.slots[usize::from(*variable)].set(value);
            }
            Op::Say(say) => self.say(program, say, here, out)?,
            Op::Trip if self.in_pipeline => {}
            Op::Trip => {
                self.sync(program, out);
                return Ok(Some(self.send()));
            }
            Op::StartPipeline if self.in_pipeline => {
                return Err(Trouble::new("the pipeline has begun already"));
            }
            Op::StartPipeline => self.in_pipeline = true,
            Op::SyncPipeline | Op::EndPipeline if !self.in_pipeline => {
                return Err(Trouble::new("there is no pipeline"));
            }
            Op::SyncPipeline => self.sync(program, out),
            Op::EndPipeline => {
                self.in_pipeline = false;
                self.sync(program, out);
                return Ok(Some(self.send()));
            }
            Op::Jump(to) => self.at = *to as usize,
            Op::Unless(expr, to) => {
                if !self.evaluate(program, expr)?.is_true() {
                    self.at = *to as usize;
                }
            }
            Op::Sleep(amount, unit_ns) => {
                let amount = match self.evaluate(program, amount)? {
                    Value::Int(amount) => amount.max(0).unsigned_abs(),
                    value => {
                        return Err(Trouble::new(format!(
                            "\\sleep wants an integer, not {}",
                            value.kind()
                        )));
                    }
                };
                if self.in_pipeline {
                    return Err(Trouble::new("\\sleep has no place in a pipeline"));
                }
                return Ok(Some(Turn::Sleep(amount.saturating_mul(*unit_ns))));
            }
            Op::Shell(shell) => self.shell(program, shell)?,
            Op::End if self.in_pipeline => return Err(Trouble::new("the script ends within a pipeline")),
            Op::End => return Ok(Some(Turn::End)),
        }
        Ok(None)
    }

    fn evaluate(&mut self, program: &Program, expr: &Expr) -> Result<Value, Trouble> {
        expr.evaluate(&mut Scene {
            slots: &self.slots,
            names: &program.names,
            stream: &mut self.stream,
            notes: &mut self.notes,
        })
    }

    fn say(&mut self, program: &Program, say: &Say, here: usize, out: &mut Vec<u8>) -> Result<(), Trouble> {
        if let Some(prepare) = &say.prepare {
            let (word, bit) = (say.statement as usize / 64, 1 << (say.statement % 64));
            if self.prepared[word] & bit == 0 {
                self.prepared[word] |= bit;
                self.preparing.push(say.statement);
                program.layout.encode(prepare, &self.slots, out);
            }
        }
        program.layout.encode(&say.pieces, &self.slots, out);
        if say.capture.is_some() {
            if self.in_pipeline {
                return Err(Trouble::new("\\gset and \\aset have no place in a pipeline"));
            }
            self.capture = Some(here);
        }
        self.says += 1;
        self.statement = say.statement;
        // Each simple query is answered by itself.
        self.syncs += u32::from(program.protocol == Protocol::Simple);
        Ok(())
    }

    fn sync(&mut self, program: &Program, out: &mut Vec<u8>) {
        if program.protocol != Protocol::Simple {
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

    /// The reply to the request at hand has come: what it said may become variables.
    pub(crate) fn take_reply(&mut self, program: &Program, reply: &[u8]) -> Result<(), Halt> {
        self.preparing.clear();
        let Some(here) = self.capture.take() else {
            return Ok(());
        };
        let Op::Say(Say {
            capture: Some(capture),
            ..
        }) = &program.routines[self.routine].ops[here]
        else {
            return Ok(());
        };
        self.take_rows(program, capture, reply)
            .map_err(|trouble| self.halt(program, here, &trouble))
    }

    /// The request at hand failed: what it was to prepare may or may not be there.
    pub(crate) fn fail(&mut self) {
        for statement in self.preparing.drain(..) {
            self.prepared[statement as usize / 64] &= !(1 << (statement % 64));
        }
        self.forget();
    }

    fn take_rows(&mut self, program: &Program, capture: &Capture, reply: &[u8]) -> Result<(), Trouble> {
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
                        let variable = program.variables.get(&self.name).copied();
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
            return Err(Trouble::new(format!("\\gset wants one row, not {rows}")));
        }
        if let Some(name) = nameless {
            let command = if capture.single { "gset" } else { "aset" };
            return Err(Trouble::new(format!(
                "the column \"{name}\" of \\{command} is no name of a variable: name it by AS"
            )));
        }
        Ok(())
    }

    /// Runs a command and waits for it: the other clients of the thread wait, too.
    fn shell(&mut self, program: &Program, shell: &Shell) -> Result<(), Trouble> {
        let mut line = Vec::new();
        for word in &shell.words {
            if !line.is_empty() {
                line.push(b' ');
            }
            match word {
                Word::Text(text) => line.extend_from_slice(text.as_bytes()),
                Word::Variable(variable) => {
                    let slot = &self.slots[usize::from(*variable)];
                    if !slot.is_set() {
                        let name = &program.names[usize::from(*variable)];
                        return Err(Trouble::new(format!("the variable \"{name}\" is not set")));
                    }
                    slot.write(&mut line);
                }
            }
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let failed = |why: String| Trouble::new(format!("the command {why}"));
        let text = foreign::shell(line, &program.stop, foreign::SHELL_LIMIT).map_err(failed)?;
        let Some(variable) = shell.variable else {
            return Ok(());
        };
        let number: i64 = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok())
            .ok_or_else(|| failed("did not print an integer".into()))?;
        self.slots[usize::from(variable)].set(Value::Int(number));
        Ok(())
    }
}
