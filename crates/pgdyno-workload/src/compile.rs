//! Workloads of our own, compiled.

use crate::script::statement;
use crate::workload::{Control, Extent, Step, VARIABLES, Workload};
use pgdyno_engine::Protocol;
use pgdyno_engine::expression::{Expr, Function};
use pgdyno_engine::message::{SYNC, Statement, Type, statement_name};
use pgdyno_engine::program::{Op, Program, Routine};
use pgdyno_engine::value::Value;
use std::collections::HashMap;

/// The transactions of a workload on data of that extent.
pub(crate) fn program(workload: Workload, protocol: Protocol, control: Control, extent: Extent) -> Program {
    let mut program = Program::new(protocol, false);
    program.outline.kinds.push(workload.name().to_owned());
    for declared in VARIABLES {
        program.variable(declared.name);
    }
    let mut known = HashMap::new();
    for table in 1..=extent.tables.max(1) {
        let steps = workload.steps(extent, table);
        let routine = routine_of(&mut program, &steps, (control, extent), &mut known);
        program.add(routine, 1);
    }
    if protocol == Protocol::Prepared {
        let mut prepare: Vec<u8> = Vec::new();
        let mut named: Vec<(usize, Statement)> = known.into_values().collect();
        named.sort_by_key(|(number, _)| *number);
        for (number, statement) in named {
            prepare.extend_from_slice(&statement.parse(&statement_name(number)));
        }
        prepare.extend_from_slice(SYNC);
        program.outline.prepare = Some(prepare);
    }
    program
}

fn type_of(variable: &str, extent: Extent) -> Type {
    let declared = VARIABLES.iter().find(|declared| declared.name == variable);
    match declared {
        Some(_) if variable == "aid" && extent.has_bigint_keys => Type::Int8,
        Some(declared) => declared.of,
        None => Type::Unknown,
    }
}

fn routine_of(
    program: &mut Program,
    steps: &[Step],
    (control, extent): (Control, Extent),
    known: &mut HashMap<String, (usize, Statement)>,
) -> Routine {
    let mut routine = Routine::default();
    let mut steps = steps.to_vec();
    if control != Control::None {
        steps.insert(0, Step::Say("BEGIN".into()));
        steps.push(Step::Say("COMMIT".into()));
    }
    let last = steps.len();
    for (at, step) in steps.into_iter().enumerate() {
        match step {
            Step::Draw(name, low, high) => {
                let variable = program.variable(name);
                routine.push(1, Op::Draw(variable, low, high));
            }
            Step::Above(name, other, more) => {
                let sum = [
                    Expr::Variable(program.variable(other)),
                    Expr::Constant(Value::Int(more.into())),
                ];
                let variable = program.variable(name);
                routine.push(1, Op::Set(variable, Expr::Call(Function::Add, Box::new(sum))));
            }
            Step::Digits(name, groups) => {
                let variable = program.variable(name);
                routine.push(1, Op::Digits(variable, groups));
            }
            Step::Say(sql) => {
                let statement = statement(program, &sql, false, |name| type_of(name, extent));
                let number = match known.get(&sql) {
                    Some((number, _)) => *number,
                    None => {
                        let number = program.name_statement(0, &sql);
                        known.insert(sql, (number, statement.clone()));
                        number
                    }
                };
                let say = program.say(&statement, number, false, None);
                routine.push(1, Op::Say(say));
                if control != Control::Pipelined || at + 1 == last {
                    routine.push(1, Op::Trip);
                }
            }
        }
    }
    program.outline.pipelines |= control == Control::Pipelined;
    routine.push(1, Op::End);
    routine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::kinds;
    use pgdyno_engine::actor::{Transactions, Turn};
    use pgdyno_engine::random::{Purpose, Stream};

    fn of(workload: Workload, protocol: Protocol, control: Control) -> Program {
        let extent = Extent {
            scale: 1,
            tables: 1,
            rows: 1000,
            has_bigint_keys: false,
        };
        program(workload, protocol, control, extent)
    }

    /// The kinds of messages of each round trip.
    fn trips(program: &Program) -> Vec<String> {
        let mut actor = program.actor(Stream::new(1, 1, Purpose::Transactions), 0);
        actor.begin();
        let (mut trips, mut out) = (Vec::new(), Vec::new());
        while let Turn::Send(_) = actor.run(&mut out).unwrap() {
            trips.push(kinds(&out));
            actor.take_reply(&[]).unwrap();
        }
        trips
    }

    #[test]
    fn requests_are_whole_messages_in_the_order_of_the_protocol() {
        let check = |protocol, control, expected: &[&str]| {
            let found = trips(&of(Workload::SimpleUpdate, protocol, control));
            assert_eq!(found, expected, "{protocol:?} {control:?}");
        };
        check(Protocol::Prepared, Control::Explicit, &["BES"; 5]);
        check(Protocol::Prepared, Control::None, &["BES"; 3]);
        check(Protocol::Prepared, Control::Pipelined, &["BEBEBEBEBES"]);
        check(Protocol::Extended, Control::None, &["PBES"; 3]);
        check(Protocol::Simple, Control::Explicit, &["Q"; 5]);
        check(Protocol::Simple, Control::Pipelined, &["QQQQQ"]);
        for workload in Workload::ALL.into_iter().filter(|workload| !workload.is_tpcc()) {
            let program = of(workload, Protocol::Prepared, Control::Explicit);
            let prepared = kinds(program.outline.prepare.as_ref().unwrap());
            assert_eq!(prepared, "P".repeat(program.outline.statements.len()) + "S");
            trips(&program);
        }
    }
}
