//! The integration tests of this crate in one binary. What a load allocates is counted in
//! pgdyno-workload's.

mod faults;
mod stalls;
mod turns;

use pgdyno_engine::message::{Part, Statement, Type};
use pgdyno_engine::program::{Op, Program, Routine};
use pgdyno_engine::{Arrivals, Endpoint, Engine, Plan, Protocol, Warmup};
use pgdyno_testing::fake::FakeServer;
use std::time::Duration;

const ENGINES: [(Engine, u32); 3] = [(Engine::IoUring, 4), (Engine::Epoll, 4), (Engine::Blocking, 1)];

fn endpoint(of: &FakeServer) -> Endpoint {
    of.config().into()
}

/// A closed loop of a second.
fn plan(engine: Engine, clients: u32) -> Plan {
    Plan {
        arrivals: Arrivals::Closed {
            think: Duration::ZERO,
        },
        clients,
        threads: 1,
        cpus: Vec::new(),
        warmup: Warmup::For(Duration::ZERO),
        measure: Duration::from_secs(1),
        transactions: None,
        connect: false,
        max_tries: 1,
        latency_limit: None,
        turns: None,
        engine,
        seed: 1,
    }
}

/// Echoes of a parameter in the extended protocol, which prepares nothing beforehand.
fn echo() -> Program {
    let mut program = Program::new(Protocol::Extended, false);
    program.outline.kinds.push("echo".into());
    let number = program.variable("number");
    let statement = Statement {
        parts: vec![
            Part::Sql("SELECT ".into()),
            Part::Variable(number, Type::Int4, ":number".into()),
        ],
        described: false,
        binary: true,
    };
    let named = program.name_statement(0, &statement.sql());
    let say = program.say(&statement, named, false, None);
    let mut routine = Routine::of_kind(0);
    for op in [
        Op::Draw(number, 1, i32::MAX.into()),
        Op::Say(say),
        Op::Trip,
        Op::End,
    ] {
        routine.push(1, op);
    }
    program.add(routine, 1);
    program
}
