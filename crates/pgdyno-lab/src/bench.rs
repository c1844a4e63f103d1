//! Loads without treatments as records: an experiment of one block in which nothing is set and
//! nothing compared, and whose trials are as all others are. Whatever reads experiments reads them
//! too.

use crate::file::{DataPart, LoadPart};
use crate::measurement::Measurement;
use crate::plan::{REFERENCE, workload_record};
use crate::trial::filled;
use pgdyno_record::{
    DESIGN_OF_LOADS, ExperimentRecord, FactRecord, FactorRecord, TreatmentRecord, TrialRecord, WorkloadRecord,
};

/// The factor of a ladder of clients.
const CLIENTS: &str = "clients";

/// Loads that differ in nothing but their number of clients.
#[derive(Debug, Clone)]
pub struct Loads {
    /// Name of what is driven: a workload, or the names of scripts.
    pub work: String,
    /// The load, as far as an experiment file knows it.
    pub load: LoadPart,
    /// Scale of its data; 0 where it has none of pgdyno's, or it is not known.
    pub scale: u32,
    /// Numbers of clients: one, or the rungs of a ladder.
    pub clients: Vec<u32>,
    /// Seed of the keys that clients draw.
    pub seed: u64,
    /// Name of the target, without secrets.
    pub target: String,
    /// The sandbox that it is, if it is one.
    pub sandbox: Option<String>,
    /// Facts before the first of them.
    pub facts: Vec<FactRecord>,
    /// The command that repeats them, without secrets.
    pub repeat: String,
}

impl Loads {
    /// The experiment that they are stored as.
    pub fn record(&self) -> ExperimentRecord {
        let first = self.workload(self.clients.first().copied().unwrap_or(1));
        let clients = match &self.clients[..] {
            [1] => "1 client".to_owned(),
            [one] => format!("{one} clients"),
            many => {
                let many: Vec<String> = many.iter().map(u32::to_string).collect();
                format!("{} clients", many.join(", "))
            }
        };
        ExperimentRecord {
            question: format!("What does {} do with {} of {clients}?", self.target, self.work),
            design: DESIGN_OF_LOADS.to_owned(),
            seed: self.seed,
            treatments: self
                .clients
                .iter()
                .map(|clients| self.treatment(*clients))
                .collect(),
            facts: self.facts.clone(),
            repeat: vec![self.repeat.clone()],
            target: self.target.clone(),
            sandbox: self.sandbox.clone(),
            factors: self.factor().into_iter().collect(),
            ..ExperimentRecord::new(&format!("bench {}", self.work), first)
        }
    }

    /// The trial of the load with one of these numbers of clients; `position` is 1-based.
    pub fn trial(
        &self,
        (position, clients): (u32, u32),
        started_unix_ms: u64,
        measurement: &Measurement,
    ) -> TrialRecord {
        let begun = TrialRecord {
            started_unix_ms,
            ..TrialRecord::begun(1, position, &self.name(clients))
        };
        filled(begun, measurement)
    }

    fn is_ladder(&self) -> bool {
        self.clients.len() > 1
    }

    /// The name of a treatment, as an experiment file's would be.
    fn name(&self, clients: u32) -> String {
        match self.is_ladder() {
            true => format!("{CLIENTS}={clients}"),
            false => REFERENCE.to_owned(),
        }
    }

    fn treatment(&self, clients: u32) -> TreatmentRecord {
        let name = self.name(clients);
        let of_ladder = self.is_ladder();
        TreatmentRecord {
            title: match of_ladder {
                true => format!("{CLIENTS} {clients}"),
                false => "as the server is".to_owned(),
            },
            levels: match of_ladder {
                true => vec![(CLIENTS.to_owned(), clients.to_string())],
                false => Vec::new(),
            },
            workload: of_ladder.then(|| self.workload(clients)),
            ..TreatmentRecord::new(&name)
        }
    }

    fn factor(&self) -> Option<FactorRecord> {
        self.is_ladder().then(|| FactorRecord {
            name: CLIENTS.to_owned(),
            title: CLIENTS.to_owned(),
            condition: true,
            levels: self.clients.iter().map(u32::to_string).collect(),
        })
    }

    fn workload(&self, clients: u32) -> WorkloadRecord {
        let load = LoadPart {
            clients: Some(clients),
            ..self.load.clone()
        };
        let data = DataPart {
            scale: Some(self.scale),
            ..DataPart::default()
        };
        WorkloadRecord {
            name: self.work.clone(),
            ..workload_record(&load, &data)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Ladder;
    use pgdyno_judge::Judge;
    use pgdyno_knobs::Catalogue;

    fn loads(clients: &[u32]) -> Loads {
        Loads {
            work: "select-only".to_owned(),
            load: LoadPart {
                measure_s: Some(3.0),
                ..LoadPart::default()
            },
            scale: 7,
            clients: clients.to_vec(),
            seed: 5,
            target: "sandbox x".to_owned(),
            sandbox: Some("x".to_owned()),
            facts: Vec::new(),
            repeat: "pgdyno bench sandbox:x".to_owned(),
        }
    }

    #[test]
    fn load_is_an_experiment_with_nothing_to_compare() {
        let loads = loads(&[8]);
        let record = loads.record();
        assert_eq!((record.workload.clients, record.workload.scale), (8, 7));
        let names: Vec<&str> = record.treatments.iter().map(|t| &*t.name).collect();
        assert_eq!(names, [REFERENCE]);
        assert_eq!(Judge::new(&record, "tps").against(), [None]);
        let trial = loads.trial((1, 8), 9, &crate::sim::measurement(100.0, 1.0, 10.0));
        assert_eq!((trial.treatment.as_str(), trial.position), (REFERENCE, 1));
        assert_eq!(trial.transactions.failed, Some(0));
        assert!(trial.tps.is_some());
    }

    #[test]
    fn loads_of_several_numbers_of_clients_are_a_ladder() {
        let record = loads(&[1, 4]).record();
        let of = |number: usize| {
            record.treatments[number]
                .workload
                .as_ref()
                .map(|load| load.clients)
        };
        assert_eq!((of(0), of(1)), (Some(1), Some(4)));
        assert_eq!(Judge::new(&record, "tps").against(), [None, None]);
        let ladder = Ladder::of(&record, &Catalogue::shipped().expect("a catalogue")).expect("a ladder");
        assert_eq!(ladder.clients, [CLIENTS]);
        assert!(ladder.cpus.is_empty());
    }
}
