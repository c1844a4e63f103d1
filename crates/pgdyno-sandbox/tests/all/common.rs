//! A sandbox of the system's own binaries in a directory of its own, gone afterwards.

use pgdyno_sandbox::{Binaries, FileSystemPlan, Plan, Sandbox, create};
use pgdyno_server::postgres::{NoTls, SimpleQueryMessage};
use pgdyno_testing::{Lane, directory, memory, system_program};
use std::path::PathBuf;

pub(crate) struct Home {
    root: tempfile::TempDir,
    sandbox: Option<Sandbox>,
    /// Dropped last, when the sandbox is gone.
    _lane: Lane,
}

impl Home {
    pub(crate) fn new(data: Option<FileSystemPlan>) -> Home {
        let lane = Lane::enter();
        let root = directory(memory(), "pgdyno-test-");
        let initdb = system_program("initdb");
        let bin = initdb.parent().expect("a directory");
        let plan = Plan {
            data_file_system: data,
            ..Plan::plain("x", Binaries::in_directory(bin).expect("binaries"))
        };
        let sandbox = create(root.path(), &plan).expect("a sandbox");
        let sandbox = Some(sandbox);
        Home {
            root,
            sandbox,
            _lane: lane,
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        self.sandbox.as_ref().expect("a sandbox")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// As a load would, without the mark of pgdyno's own statements.
    pub(crate) fn ask(&self, sql: &str) -> String {
        let conninfo = self.sandbox().conninfo();
        let mut client = conninfo.config().connect(NoTls).expect("it answers");
        let answer = client.simple_query(sql).expect("an answer");
        client.close().expect("closed");
        let first = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        first.unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(sandbox) = self.sandbox.take() {
            let _ = sandbox.destroy();
        }
    }
}
