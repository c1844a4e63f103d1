//! Numbers of block devices.

use crate::access::{HostAccess, HostError};

/// The number of a device by its name, be it a disk or a partition.
pub(crate) fn number_of_name(host: &dyn HostAccess, name: &str) -> Result<(u32, u32), HostError> {
    let path = format!("/sys/class/block/{name}/dev");
    number_in(host, &path).or_else(|_| number_in(host, &format!("/sys/block/{name}/dev")))
}

/// The number in a file of sysfs.
pub(crate) fn number_in(host: &dyn HostAccess, path: &str) -> Result<(u32, u32), HostError> {
    let text = host.read_trimmed(path)?;
    text.split_once(':')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| HostError::Malformed {
            path: path.to_owned(),
            line: 1,
            expected: "a device number, as 8:1",
            found: text.chars().take(40).collect(),
        })
}
