//! Network interfaces.

use super::sheet::{Sheet, object, or_null};
use crate::access::HostAccess;
use serde_json::Value;

const NET: &str = "/sys/class/net";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    let names = sheet.host.list(NET).map_err(super::sheet::why);
    let interfaces = names.map(|names| {
        // Files that are beside the interfaces (bonding_masters) have no MTU.
        let interfaces = names.iter().filter_map(|name| interface(sheet, name));
        interfaces.collect::<Vec<_>>()
    });
    sheet.note("network.interfaces", NET, interfaces);
}

fn interface(sheet: &Sheet<'_>, name: &str) -> Option<Value> {
    let path = |file: &str| format!("{NET}/{name}/{file}");
    let mtu = sheet.number_of(&path("mtu")).ok()?;
    let driver = last_of_link(sheet.host, &path("device/driver"));
    let place = sheet.host.read_link(&format!("{NET}/{name}")).unwrap_or_default();
    let kind = if name == "lo" {
        "loopback"
    } else if place.contains("/virtual/") {
        "virtual"
    } else {
        "device"
    };
    let queues = sheet.host.list(&path("queues")).unwrap_or_default();
    let count = queues.iter().filter(|queue| queue.starts_with("rx-")).count();
    Some(object([
        ("name", name.into()),
        ("kind", kind.into()),
        ("driver", driver.into()),
        ("state", or_null(sheet.text_of(&path("operstate")))),
        ("mtu_bytes", mtu.into()),
        // -1 where the driver does not know, and no answer at all where the interface is down.
        ("speed_mbit_per_s", or_null(sheet.number_of(&path("speed")))),
        ("receive_queues", (count > 0).then_some(count).into()),
    ]))
}

fn last_of_link(host: &dyn HostAccess, path: &str) -> Option<String> {
    let target = host.read_link(path).ok()?;
    target.rsplit('/').next().map(str::to_owned)
}
