//! Arguments of the tools, whose comments an agent reads.

use rmcp::schemars;
use schemars::JsonSchema;
use serde::Deserialize;

/// A target.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct TargetArgs {
    /// A target, as the tool `targets` names it.
    pub(super) target: String,
}

/// A target, and which facts of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct FactsArgs {
    /// A target, as the tool `targets` names it.
    pub(super) target: String,
    /// Beginning of the facts' names, such as "memory." or "setting.work_mem"; all of them without
    /// it.
    #[serde(default)]
    pub(super) about: String,
}

/// A knob.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct KnobArgs {
    /// Id of a knob, such as "work_mem" or "vm.swappiness"; without it, all ids are listed.
    pub(super) knob: Option<String>,
}

/// Which experiments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ListArgs {
    /// Only experiments whose question, name, target or notes contain this; all without it.
    #[serde(default)]
    pub(super) search: String,
    /// Only the newest so many; 100 without it.
    pub(super) limit: Option<u16>,
}

/// An experiment, and which of its trials.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ShowArgs {
    /// Number of the experiment.
    pub(super) id: u32,
    /// Trials to skip; `trials_left` says how many come after those that are shown.
    #[serde(default)]
    pub(super) skip: usize,
}

/// An experiment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ExperimentArgs {
    /// Number of the experiment.
    pub(super) id: u32,
}

/// Two things to compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct PairArgs {
    /// Number of an experiment, or of one and a treatment of it: "3" or "3:more".
    pub(super) a: String,
    /// The same.
    pub(super) b: String,
}

/// A plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct RunArgs {
    /// Number of a plan that the tool `plan` made.
    pub(super) plan: usize,
}
