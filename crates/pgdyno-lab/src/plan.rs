//! The plan: treatments with all their settings, and the order of trials in each block.

use crate::file::{Design, ExperimentFile, settings_of};
use pgdyno_knobs::{Catalogue, CatalogueError, Risk, Setting};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A treatment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treatment {
    /// Unique name; "reference" for the first.
    pub name: String,
    /// For people.
    pub title: String,
    /// Why it is tried.
    pub reason: Option<String>,
    /// All its settings.
    pub settings: Vec<Setting>,
    /// What the step itself sets.
    pub step: Vec<Setting>,
    /// Why it is not tested, if it is not.
    pub why_not: Option<String>,
}

/// What the user has agreed to.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    /// Knobs that trade durability and may be turned all the same.
    pub durability: Vec<String>,
    /// Whether a server that is no sandbox may be restarted.
    pub restart: bool,
}

/// What makes a plan impossible.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A knob that trades durability without consent.
    #[error(
        "{treatment} sets {knob}, which can lose committed data in a crash, and nobody has agreed to that"
    )]
    Durability {
        /// Name of the treatment.
        treatment: String,
        /// Id of the knob.
        knob: String,
    },
}

/// An experiment, worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file.
    pub file: ExperimentFile,
    /// Treatments, the reference first.
    pub treatments: Vec<Treatment>,
    /// Seed of order and load.
    pub seed: u64,
}

impl Plan {
    /// Works out a file. A knob that trades durability is refused without consent to just that knob.
    pub fn new(
        file: ExperimentFile,
        seed: u64,
        catalogue: &Catalogue,
        consent: &Consent,
    ) -> Result<Plan, PlanError> {
        let base = settings_of(&file.base);
        let mut treatments = vec![Treatment {
            name: "reference".into(),
            title: "As it is".into(),
            reason: None,
            settings: base.clone(),
            step: Vec::new(),
            why_not: None,
        }];
        for step in &file.step {
            treatments.push(Treatment {
                name: step.name.clone(),
                title: step.title.clone().unwrap_or_else(|| step.name.clone()),
                reason: step.reason.clone(),
                settings: Vec::new(),
                step: settings_of(&step.settings),
                why_not: None,
            });
        }
        for treatment in &treatments {
            for setting in treatment.settings.iter().chain(&treatment.step) {
                let risky = catalogue.get(&setting.knob)?.risk_of(&setting.value) == Risk::Durability;
                if risky && !consent.durability.contains(&setting.knob) {
                    return Err(PlanError::Durability {
                        treatment: treatment.name.clone(),
                        knob: setting.knob.clone(),
                    });
                }
            }
        }
        let mut plan = Plan {
            file,
            treatments,
            seed,
        };
        plan.fill(&base);
        Ok(plan)
    }

    /// Leaves treatments out, by number, with the reason; later cumulative steps then go without their settings.
    pub fn leave_out(&mut self, reasons: &[(usize, String)]) {
        for (number, reason) in reasons {
            if let Some(treatment) = self.treatments.get_mut(*number) {
                treatment.why_not = Some(reason.clone());
            }
        }
        let base = settings_of(&self.file.base);
        self.fill(&base);
    }

    fn fill(&mut self, base: &[Setting]) {
        let mut so_far = base.to_vec();
        for treatment in &mut self.treatments {
            let mut settings = match self.file.design {
                Design::Cumulative => so_far.clone(),
                Design::OneAtATime => base.to_vec(),
            };
            for setting in &treatment.step {
                settings.retain(|other| other.knob != setting.knob);
                settings.push(setting.clone());
            }
            if treatment.why_not.is_none() {
                so_far.clone_from(&settings);
            }
            treatment.settings = settings;
        }
    }

    /// Numbers of the treatments that are tested, in random order for this block (1-based): the same for the same
    /// seed, whatever has run before.
    pub fn order_of_block(&self, block: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.treatments.len())
            .filter(|&i| self.treatments[i].why_not.is_none())
            .collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (u64::from(block) << 32));
        // Fisher-Yates. The bias of the remainder is below 2^-50 for any number of treatments.
        for i in (1..order.len()).rev() {
            #[expect(clippy::cast_possible_truncation, reason = "a remainder of i + 1")]
            let j = (random.next_u64() % (i as u64 + 1)) as usize;
            order.swap(i, j);
        }
        order
    }

    /// Trials in all.
    pub fn trials(&self) -> u32 {
        let tested = self.treatments.iter().filter(|t| t.why_not.is_none()).count();
        self.file.blocks * u32::try_from(tested).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn plan(design: &str, consent: &Consent) -> Result<Plan, PlanError> {
        let catalogue = Catalogue::shipped().unwrap();
        let text = format!(
            "name='x'\nquestion='?'\ndesign='{design}'\nblocks=3\n[data]\nscale=1\n\
             [load]\nworkload='tpcb'\nclients=1\nwarmup_s=0\nmeasure_s=1\n[base]\njit='off'\n\
             [[step]]\nname='a'\nsettings.shared_buffers='1GB'\n\
             [[step]]\nname='b'\nsettings.vm.swappiness=1\n\
             [[step]]\nname='c'\n[step.settings]\njit='on'\nsynchronous_commit='off'\n"
        );
        let file = ExperimentFile::parse(&text, Path::new("x"), &catalogue).unwrap();
        Plan::new(file, 7, &catalogue, consent)
    }

    fn agreed() -> Consent {
        Consent {
            durability: vec!["synchronous_commit".into()],
            restart: false,
        }
    }

    fn knobs(plan: &Plan, i: usize) -> Vec<String> {
        plan.treatments[i]
            .settings
            .iter()
            .map(|s| format!("{}={}", s.knob, s.value))
            .collect()
    }

    #[test]
    fn cumulative_steps_add_up_and_later_ones_win() {
        let plan = plan("cumulative", &agreed()).unwrap();
        assert_eq!(knobs(&plan, 0), ["jit=off"]);
        assert_eq!(
            knobs(&plan, 2),
            ["jit=off", "shared_buffers=1GB", "vm.swappiness=1"]
        );
        assert_eq!(
            knobs(&plan, 3),
            [
                "shared_buffers=1GB",
                "vm.swappiness=1",
                "jit=on",
                "synchronous_commit=off"
            ]
        );
    }

    #[test]
    fn one_at_a_time_stands_on_the_base() {
        let plan = plan("one-at-a-time", &agreed()).unwrap();
        assert_eq!(knobs(&plan, 2), ["jit=off", "vm.swappiness=1"]);
    }

    #[test]
    fn what_is_left_out_is_left_out_of_later_steps_too() {
        let mut plan = plan("cumulative", &agreed()).unwrap();
        plan.leave_out(&[(2, "not permitted".into())]);
        assert!(!knobs(&plan, 3).contains(&"vm.swappiness=1".to_owned()));
        assert!(plan.order_of_block(1).iter().all(|&i| i != 2));
        assert_eq!(plan.trials(), 9);
    }

    #[test]
    fn durability_needs_consent_to_that_very_knob() {
        let other = Consent {
            durability: vec!["fsync".into()],
            restart: false,
        };
        assert!(matches!(
            plan("cumulative", &other),
            Err(PlanError::Durability { .. })
        ));
    }

    #[test]
    fn blocks_hold_every_treatment_once_in_orders_that_repeat() {
        let (a, b) = (
            plan("cumulative", &agreed()).unwrap(),
            plan("cumulative", &agreed()).unwrap(),
        );
        let orders: Vec<Vec<usize>> = (1..=20).map(|block| a.order_of_block(block)).collect();
        for (i, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert_eq!(*order, b.order_of_block(u32::try_from(i).unwrap() + 1));
        }
        assert!(orders.iter().any(|order| order != &orders[0]));
    }
}
