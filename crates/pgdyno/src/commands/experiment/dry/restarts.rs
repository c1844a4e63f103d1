//! Which trials restart the server: those whose changes the server itself says want it, from the
//! state that it is in.

use crate::context::Context;
use pgdyno_knobs::{Catalogue, Cost, Kind, Reader, Setting, Target};
use pgdyno_lab::{Plan, Prewarm, RestartPolicy, Treatment};
use std::collections::{BTreeMap, BTreeSet};

/// What changes between two trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) any: bool,
    pub(super) restart: bool,
}

/// What is asked of the target once.
pub(super) struct Restarts<'a> {
    catalogue: &'a Catalogue,
    /// `None` of a target that is not there yet: then the catalogue answers.
    reader: Option<Reader<'a>>,
    can_restart: bool,
    always: bool,
    costs: BTreeMap<String, bool>,
    differs: Vec<(Setting, bool)>,
}

impl<'a> Restarts<'a> {
    pub(super) fn new(context: &'a Context, target: Option<&'a Target>, plan: &Plan) -> Restarts<'a> {
        Restarts {
            catalogue: &context.catalogue,
            reader: target.map(|target| Reader {
                host: &context.host,
                catalogue: &context.catalogue,
                target: Some(target),
                journals: None,
            }),
            can_restart: target.is_none_or(|target| target.control.can_restart()),
            always: plan.file.target.restarts() == RestartPolicy::Always,
            costs: BTreeMap::new(),
            differs: Vec::new(),
        }
    }

    /// From one treatment to the next, or from the present state where there is none before it.
    pub(super) fn between(&mut self, before: Option<&Treatment>, now: &Treatment) -> Changes {
        let is_of_target = now.variant().is_target();
        let of = |treatment: &Treatment, knob: &str| {
            let mut settings = treatment.settings.iter();
            settings.find(|setting| setting.knob == knob).cloned()
        };
        let settings = before.into_iter().chain([now]).flat_map(|of| &of.settings);
        let knobs: BTreeSet<String> = settings.map(|setting| setting.knob.clone()).collect();
        let mut changes = Changes {
            any: false,
            restart: self.can_restart && (self.always || now.data.prewarm == Some(Prewarm::Cold)),
        };
        for knob in knobs {
            let values = (before.and_then(|before| of(before, &knob)), of(now, &knob));
            let changed = match values {
                (Some(one), Some(other)) => one != other || self.is_pool(&knob),
                (Some(one), None) | (None, Some(one)) => !is_of_target || self.differs(&one),
                (None, None) => false,
            };
            changes.any |= changed;
            changes.restart |= changed && self.restarts(&knob, is_of_target);
        }
        changes
    }

    /// The server is stopped for a pool of huge pages, whatever its size.
    fn is_pool(&self, knob: &str) -> bool {
        self.catalogue
            .find(knob)
            .is_some_and(|knob| knob.kind == Kind::HugepagePool)
    }

    fn restarts(&mut self, knob: &str, is_of_target: bool) -> bool {
        let by_catalogue = || {
            let knob = self.catalogue.find(knob);
            knob.is_some_and(|knob| matches!(knob.cost, Cost::Restart | Cost::Reboot))
        };
        let Some(reader) = self.reader.filter(|_| is_of_target) else {
            return by_catalogue();
        };
        if let Some(known) = self.costs.get(knob) {
            return *known;
        }
        let restarts = match reader.cost(knob) {
            Ok(cost) => matches!(cost, Cost::Restart | Cost::Reboot),
            Err(_) => by_catalogue(),
        };
        self.costs.insert(knob.to_owned(), restarts);
        restarts
    }

    /// Whether a setting differs from the state that the target is in.
    fn differs(&mut self, setting: &Setting) -> bool {
        let Some(reader) = self.reader else { return true };
        if let Some((_, known)) = self.differs.iter().find(|(of, _)| of == setting) {
            return *known;
        }
        let differs = reader.would_change(setting).unwrap_or(true);
        self.differs.push((setting.clone(), differs));
        differs
    }
}
