//! What managed services let their customers set: catalog/advice/services.toml.

use pgdyno_knobs::Layer;
use serde::Deserialize;

/// What is known of some services.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    names: Vec<String>,
    layers: Vec<Layer>,
    forbids: Vec<String>,
    how: String,
    #[expect(dead_code, reason = "for those who read the file")]
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    service: Vec<Service>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Service>, String> {
    toml::from_str::<File>(text)
        .map(|file| file.service)
        .map_err(|error| error.to_string())
}

/// What holds on one service; nothing is forbidden by none.
#[derive(Debug)]
pub(super) struct Limits<'a> {
    name: &'a str,
    of: Vec<&'a Service>,
}

pub(super) fn limits<'a>(services: &'a [Service], name: &'a str) -> Limits<'a> {
    let of = services
        .iter()
        .filter(|service| service.names.iter().any(|other| other == name))
        .collect();
    Limits { name, of }
}

impl Limits<'_> {
    /// Why a knob is not the customer's.
    pub(super) fn forbids(&self, id: &str, layer: Option<Layer>) -> Option<String> {
        let forbidden = |service: &&&Service| {
            service.forbids.iter().any(|knob| knob == id)
                || layer.is_some_and(|layer| !service.layers.contains(&layer))
        };
        let service = self.of.iter().find(forbidden)?;
        Some(format!(
            "{} does not let its customers set it ({} sets what may be set)",
            self.name, service.how
        ))
    }

    /// How parameters are set there.
    pub(super) fn how(&self) -> Option<&str> {
        self.of.last().map(|service| service.how.as_str())
    }
}
