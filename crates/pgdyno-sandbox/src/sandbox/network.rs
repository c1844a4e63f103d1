//! A sandbox's own network: a namespace for its server and a link (a veth pair) to it, made and
//! removed here alone.
//!
//! Namespace and link have one name that nobody else can have given. It is recorded before they are
//! made, so that whatever a killed process leaves is found. In the namespace there are the link,
//! its address and nothing else: no route leads beyond it.

mod ip;

use super::SandboxError;
use super::file_system::token;
use ip::{Link, ip, links, routes};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;

pub(super) use ip::PROGRAM;

/// The program that makes networks, and Debian's package of it.
pub const NETWORK_PROGRAM: (&str, &str) = (PROGRAM, ip::PACKAGE);

/// The least MTU: what every host of IPv4 must take (RFC 791, section 3.1).
const MTU_MIN_BYTES: u32 = 576;
/// The largest of a veth pair: ETH_MAX_MTU of the kernel.
const MTU_MAX_BYTES: u32 = 65_535;
/// Of a link's name: IFNAMSIZ of the kernel less the terminating zero.
const NAME_LENGTH: usize = 15;
const NAME_PREFIX: &str = "pgdyno-";
/// The link's name inside of the namespace.
const INSIDE: &str = "eth0";
/// Where `ip netns` keeps namespaces by name; a link to /run is in between.
const NAMESPACES: &str = "/var/run/netns";
/// Links have their addresses from here: a part of 10.0.0.0/8 (RFC 1918) that is seldom used.
const ADDRESSES: Block = Block {
    first: 0x0AD5_0000,
    length: 16,
};
/// Two addresses, with those of the network and of all.
const LINK_LENGTH: u32 = 30;
/// So many links have room in [`ADDRESSES`].
const LINKS: u32 = 1 << (LINK_LENGTH - ADDRESSES.length);

/// A network between client and server, to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkPlan {
    /// MTU of both ends, 576 to 65535.
    pub mtu_bytes: u32,
}

impl NetworkPlan {
    /// The plan of a text as "mtu:9000".
    pub fn named(text: &str) -> Result<NetworkPlan, String> {
        let mtu = text.strip_prefix("mtu:").and_then(|mtu| mtu.parse().ok());
        match mtu.filter(|mtu| (MTU_MIN_BYTES..=MTU_MAX_BYTES).contains(mtu)) {
            Some(mtu_bytes) => Ok(NetworkPlan { mtu_bytes }),
            None => Err(format!(
                "expected mtu: and {MTU_MIN_BYTES} to {MTU_MAX_BYTES} bytes, e.g. mtu:9000"
            )),
        }
    }
}

/// One that a sandbox has, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Name of the namespace, and of the link's end outside of it.
    pub name: String,
    /// MTU of both ends of the link.
    pub mtu_bytes: u32,
    /// The end outside: whoever talks to the server.
    pub host_address: Ipv4Addr,
    /// The end inside: the server.
    pub server_address: Ipv4Addr,
}

impl Network {
    /// What would be made: a name and addresses that nobody has. Makes nothing.
    pub(super) fn planned(plan: NetworkPlan) -> Result<Network, SandboxError> {
        let token = token()?;
        let length = NAME_LENGTH - NAME_PREFIX.len();
        let name = format!("{NAME_PREFIX}{}", token.get(..length).unwrap_or(&token));
        if links()?.iter().any(|link| link.name == name) || Path::new(NAMESPACES).join(&name).exists() {
            return Err(network(
                &name,
                "there is a link or a namespace of this name already",
            ));
        }
        let begin = token
            .get(length..)
            .and_then(|text| text.get(..4))
            .and_then(|text| u32::from_str_radix(text, 16).ok());
        let block = free_block(&routes()?, begin.unwrap_or(0)).ok_or_else(|| {
            let reason =
                "no four consecutive addresses are free there: `ip route show table all` shows who uses them";
            network(&ADDRESSES.to_string(), reason)
        })?;
        Ok(Network {
            name,
            mtu_bytes: plan.mtu_bytes,
            host_address: Ipv4Addr::from_bits(block.first + 1),
            server_address: Ipv4Addr::from_bits(block.first + 2),
        })
    }

    /// The plan that it was made from.
    pub fn plan(&self) -> NetworkPlan {
        NetworkPlan {
            mtu_bytes: self.mtu_bytes,
        }
    }

    /// Makes it; it has been recorded. `directory` is the sandbox's, which the link bears as its
    /// alias. The end outside is up when everything else is done.
    pub(super) fn make(&self, directory: &Path) -> Result<(), SandboxError> {
        let name = self.name.as_str();
        let mtu = self.mtu_bytes.to_string();
        let [outside, inside] =
            [self.host_address, self.server_address].map(|address| format!("{address}/{LINK_LENGTH}"));
        self.check_alone()?;
        ip(&["netns", "add", name])?;
        // Both ends in one step: the one inside has never been outside.
        ip(&[
            "link", "add", name, "mtu", &mtu, "type", "veth", "peer", "name", INSIDE, "netns", name, "mtu",
            &mtu,
        ])?;
        ip(&["link", "set", name, "alias", &alias_of(directory)])?;
        // A packet for each segment, as on a wire: else TCP hands up to 64 KiB through memory at
        // once, whatever the MTU.
        ip(&["link", "set", name, "gso_max_segs", "1"])?;
        ip(&["-n", name, "link", "set", INSIDE, "gso_max_segs", "1"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        ip(&["-n", name, "address", "add", &inside, "dev", INSIDE])?;
        ip(&["-n", name, "link", "set", INSIDE, "up"])?;
        ip(&["address", "add", &outside, "dev", name])?;
        ip(&["link", "set", name, "up"])?;
        // Somebody may have taken the addresses at the same moment.
        self.check_alone()
    }

    /// Makes it again where it is not there in full, as after a restart of the machine. The server
    /// must not run.
    pub(super) fn restore(&self, directory: &Path) -> Result<(), SandboxError> {
        let is_up = |link: &Link| link.name == self.name && link.is_up();
        if self.has_namespace() && links()?.iter().any(is_up) {
            return Ok(());
        }
        self.remove()?;
        self.make(directory)
    }

    /// The door to its namespace.
    pub(super) fn open(&self) -> Result<File, SandboxError> {
        let path = Path::new(NAMESPACES).join(&self.name);
        File::open(&path).map_err(SandboxError::io(&path, "opened"))
    }

    /// Removes it as far as it was ever made.
    pub(super) fn remove(&self) -> Result<(), SandboxError> {
        let is_ours = self.name.len() == NAME_LENGTH
            && self
                .name
                .strip_prefix(NAME_PREFIX)
                .is_some_and(|token| token.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !is_ours {
            return Err(network(&self.name, "it has no sandbox's name and is left alone"));
        }
        remove(&self.name)
    }

    /// `ip netns add` has come to its end: the file is the namespace, not the empty one it starts
    /// as.
    fn has_namespace(&self) -> bool {
        /// NSFS_MAGIC of the kernel.
        const MAGIC: i128 = 0x6E73_6673;
        let found = rustix::fs::statfs(Path::new(NAMESPACES).join(&self.name));
        found.is_ok_and(|found| i128::from(found.f_type) == MAGIC)
    }

    /// Nobody else has a route to its addresses.
    fn check_alone(&self) -> Result<(), SandboxError> {
        let own = Block::new(self.host_address, LINK_LENGTH);
        let routes = routes()?;
        let mut others = routes
            .iter()
            .filter(|route| route.device.as_ref() != Some(&self.name));
        let taken = others.find_map(|route| route.block().filter(|block| block.meets(own)));
        match taken {
            None => Ok(()),
            Some(block) => Err(network(
                &own.to_string(),
                &format!("this machine has another route to it by now, {block}"),
            )),
        }
    }
}

/// What keeps a network from being made, found before anything is.
pub(super) fn check(plan: Option<NetworkPlan>) -> Result<(), SandboxError> {
    if plan.is_none() {
        return Ok(());
    }
    if !pgdyno_server::User::is_root() {
        return Err(SandboxError::NetworkNeedsRoot);
    }
    ip::check_program()
}

/// Removes the network of a sandbox whose record is lost: its link identifies it.
pub(super) fn remove_of(directory: &Path) -> Result<(), SandboxError> {
    // Who has none needs no iproute2 for that.
    if !pgdyno_server::User::is_root() || ip::check_program().is_err() {
        return Ok(());
    }
    let alias = alias_of(directory);
    links()?
        .iter()
        .filter(|link| link.name.starts_with(NAME_PREFIX) && link.alias.as_ref() == Some(&alias))
        .try_for_each(|link| remove(&link.name))
}

fn remove(name: &str) -> Result<(), SandboxError> {
    // The link first, and both its ends at once: with the namespace it would go too, but some time
    // later.
    if links()?.iter().any(|link| link.name == name) {
        ip(&["link", "delete", name])?;
    }
    if Path::new(NAMESPACES).join(name).exists() {
        ip(&["netns", "delete", name])?;
    }
    Ok(())
}

fn alias_of(directory: &Path) -> String {
    directory.display().to_string()
}

fn network(what: &str, reason: &str) -> SandboxError {
    SandboxError::Network {
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    first: u32,
    /// How many bits, 0 to 32.
    length: u32,
}

impl Block {
    /// The one of this length that has an address.
    fn new(address: Ipv4Addr, length: u32) -> Block {
        let first = address.to_bits() & mask(length);
        Block { first, length }
    }

    /// A block of addresses as "10.0.0.0/8", or one address.
    fn parse(text: &str) -> Option<Block> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let length = length.parse().ok().filter(|length| *length <= 32)?;
        Some(Block::new(address.parse().ok()?, length))
    }

    fn meets(self, other: Block) -> bool {
        (self.first ^ other.first) & mask(self.length.min(other.length)) == 0
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.first), self.length)
    }
}

fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0)
}

/// Addresses for a link that no route leads to, but the default one; the search begins at the
/// `begin`th of all.
fn free_block(routes: &[ip::Route], begin: u32) -> Option<Block> {
    let near: Vec<Block> = routes
        .iter()
        .filter_map(ip::Route::block)
        .filter(|block| block.meets(ADDRESSES))
        .collect();
    let nth = |n: u32| Block {
        first: ADDRESSES.first + 4 * (begin.wrapping_add(n) % LINKS),
        length: LINK_LENGTH,
    };
    (0..LINKS)
        .map(nth)
        .find(|block| !near.iter().any(|taken| taken.meets(*block)))
}

/// What `ip` prints, for the fuzz targets.
pub(crate) fn fuzzed_ip_json(text: &str) {
    let links = ip::parsed::<Link>(text).unwrap_or_default();
    let _ = links.iter().filter(|link| link.is_up()).count();
    let routes = ip::parsed::<ip::Route>(text).unwrap_or_default();
    let _ = routes.iter().filter_map(ip::Route::block).count();
}

#[cfg(test)]
mod tests;
