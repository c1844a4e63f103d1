//! An address of this host's at which a sandbox's server is reached from others, and who is let in.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address, and the hosts that are let in with the password: those whose addresses begin with
/// the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Listen {
    /// Address of this host.
    pub address: IpAddr,
    /// Bits of the network; none lets everybody in, and is refused.
    bits: u8,
}

impl Listen {
    /// The line of pg_hba.conf that lets its network in.
    pub(super) fn line(self) -> String {
        format!("host  all         all {self} scram-sha-256")
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        let read = || {
            let (address, bits) = text.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| (1..=most).contains(bits))?;
            (!address.is_unspecified()).then_some(Listen { address, bits })
        };
        read().ok_or_else(|| {
            "expected an address of this host with the bits of the network that is let in, e.g. 10.0.0.5/24"
                .to_owned()
        })
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Listen, String> {
        text.parse()
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> String {
        listen.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_comes_with_its_network() {
        for text in ["10.0.0.5/24", "fd00::5/64", "192.168.1.1/32"] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.to_string(), text);
        }
        for text in ["10.0.0.5", "10.0.0.5/0", "10.0.0.5/33", "0.0.0.0/8", "db1/24", ""] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
