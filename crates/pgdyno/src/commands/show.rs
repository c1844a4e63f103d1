//! `pgdyno show`: one experiment as text, with the numbers of its trials.

use crate::cli::ShowArgs;
use crate::commands::stored::{number, store, whole};
use crate::commands::{labels, report};
use crate::context::Context;
use crate::exit;
use crate::failure::Result;
use crate::show;
use pgdyno_record::{StoredExperiment, TrialRecord, TrialStatus};
use serde_json::json;

pub(crate) fn run(context: &Context, args: &ShowArgs) -> Result<u8> {
    whole(args.experiment.as_ref())?;
    let store = store(context, args.store.place())?;
    let id = number(&store, args.experiment.as_ref())?;
    let stored = store.experiment(id)?;
    let report = report::build(context, &store, id)?;
    if args.json {
        put_page!(
            "{}",
            serde_json::to_string_pretty(&as_json(&stored, &report.experiment.answer))?
        );
        return Ok(exit::FINE);
    }
    let record = &stored.record;
    put!("experiment {id}, {}: {}\n", record.name, record.question);
    for line in labels::lines(&store, id)? {
        put!("{line}");
    }
    put!("{}\n", report.experiment.answer);
    put_page!("{}\n", show::verdicts(&report));
    for treatment in &record.treatments {
        if let Some(why) = &treatment.why_not {
            put!("not tested: {}: {why}", treatment.name);
        }
    }
    put_page!("{}", trials(&stored));
    Ok(exit::FINE)
}

fn trials(stored: &StoredExperiment) -> String {
    let metric = &stored.record.metric;
    let rows = stored.trials.iter().map(|(number, trial)| {
        let figure = trial.figure(metric).map(show::figure);
        let mut said = trial.disturbances.clone();
        said.extend(trial.reason.clone());
        vec![
            number.to_string(),
            trial.block.to_string(),
            trial.treatment.clone(),
            status(trial).to_owned(),
            figure.unwrap_or_else(|| "\u{2013}".to_owned()),
            said.join("; "),
        ]
    });
    let headings = [
        "trial",
        "block",
        "treatment",
        "status",
        metric.as_str(),
        "disturbed by",
    ];
    show::table(&headings, &[0, 1, 4], rows.collect())
}

fn status(trial: &TrialRecord) -> &'static str {
    match trial.status {
        TrialStatus::Finished => "finished",
        TrialStatus::Failed => "failed",
        TrialStatus::Invalid => "invalid",
    }
}

fn as_json(stored: &StoredExperiment, answer: &str) -> serde_json::Value {
    let record = &stored.record;
    let treatments: Vec<_> = record
        .treatments
        .iter()
        .map(|t| json!({"name": t.name, "title": t.title, "levels": t.levels, "against": t.against, "why_not": t.why_not}))
        .collect();
    let trials: Vec<_> = stored
        .trials
        .iter()
        .map(|(number, trial)| {
            json!({
                "number": number, "block": trial.block, "position": trial.position, "treatment": trial.treatment,
                "status": trial.status, "reason": trial.reason, "figure": trial.figure(&record.metric),
                "tps": trial.tps, "percentiles": trial.percentiles, "disturbed": trial.disturbed,
                "disturbances": trial.disturbances,
            })
        })
        .collect();
    json!({
        "format": "pgdyno-show/1", "experiment": stored.id, "name": record.name, "question": record.question,
        "answer": answer, "status": stored.status, "target": record.target, "metric": record.metric,
        "treatments": treatments, "trials": trials,
    })
}
