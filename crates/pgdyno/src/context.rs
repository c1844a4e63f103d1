//! What every command needs: the environment, directories, and the request to stop.

use crate::failure::Exposed;
use crate::failure::{Failure, InContext as _, Result};
use pgdyno_host::{Directory, LocalHost, given_text};
use pgdyno_knobs::{Catalogue, Journals, OtherUser};
use pgdyno_remote::{CarriedFile, Coordinator, InventoryHost, Request};
use pgdyno_sandbox::BinarySources;
use pgdyno_server::User;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where pgdyno keeps its files. docs/reference/files.md describes each.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    /// Directory of downloads.
    pub(crate) cache: PathBuf,
    /// Directory of sandboxes, journals and unpacked servers.
    pub(crate) state: PathBuf,
    /// Directory of the store of results.
    pub(crate) data: PathBuf,
    /// What is changed on this host, by whichever home of this user.
    pub(crate) registry: PathBuf,
    /// Name of this home in messages: "PGDYNO_HOME=/srv/lab".
    pub(crate) home: String,
}

/// The context of a command.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) host: LocalHost,
    pub(crate) catalogue: Catalogue,
    pub(crate) directories: Directories,
    journals: Journals,
    /// What has come with the command from another host; `None` where it is not run for one.
    served: Option<Arc<Served>>,
    /// Hosts of an inventory that drive the command's load.
    pub(crate) load_group: Arc<[InventoryHost]>,
}

/// A command of another host.
struct Served {
    request: Request,
    coordinator: Coordinator,
}

impl Context {
    pub(crate) fn new() -> Result<Context> {
        let host = LocalHost::new();
        let directories = Directories::find(&variable)?.kept_from_others()?;
        let journals = Journals {
            directory: directories.state.join("journal"),
            registry: directories.registry.clone(),
            home: directories.home.clone(),
            others: other_users(&host, &variable)?,
        };
        Ok(Context {
            host,
            catalogue: Catalogue::shipped()?,
            directories,
            journals,
            served: SERVED.get().cloned(),
            load_group: Arc::default(),
        })
    }

    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.directories.state.join("sandboxes")
    }

    pub(crate) fn journals(&self) -> &Journals {
        &self.journals
    }

    /// Where programs of PostgreSQL come from.
    pub(crate) fn binaries(&self) -> BinarySources {
        BinarySources {
            archives: self.directories.cache.join("postgresql"),
            unpacked: self.directories.state.join("postgresql"),
            path: variable("PATH"),
        }
    }

    /// Files of another host that the command is run with.
    pub(crate) fn carried(&self) -> Option<&[CarriedFile]> {
        self.served.as_ref().map(|served| served.request.files.as_slice())
    }

    /// The text of a file that the command names; of one that has come with it, what came.
    pub(crate) fn given_text(&self, path: &Path) -> io::Result<String> {
        let mut carried = self.carried().unwrap_or_default().iter();
        match carried.find(|file| Path::new(&file.path) == path) {
            Some(file) => Ok(file.content.clone().unwrap_or_default()),
            None => given_text(path),
        }
    }

    /// Who keeps the results of an experiment that is run for another host.
    pub(crate) fn coordinator(&self) -> Option<&Coordinator> {
        self.served.as_ref().map(|served| &served.coordinator)
    }

    /// What an experiment keeps while it runs.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.directories.state.join("scratch")
    }
}

impl Directories {
    /// By the XDG base directory specification. Root's home is closed to the user that a sandbox
    /// runs as, so without a variable root's state and data are below /var/lib. PGDYNO_HOME puts
    /// all three below one directory.
    fn find(variable: &dyn Fn(&str) -> Option<String>) -> Result<Directories> {
        let registry = registry(variable);
        if let Some(home) = variable("PGDYNO_HOME") {
            let home = std::path::absolute(&home).with_context(|| format!("PGDYNO_HOME={home}"))?;
            // Whoever named it means where its links lead to now; none of another user's is
            // followed.
            let home = Directory::open(&home)
                .and_then(|held| held.resolved())
                .unwrap_or(home);
            return Ok(Directories {
                cache: home.join("cache"),
                state: home.join("state"),
                data: home.join("data"),
                registry: registry.unwrap_or_else(|| home.join("state/registry")),
                home: format!("PGDYNO_HOME={}", home.display()),
            });
        }
        let home = variable("HOME").map(PathBuf::from);
        let place = |name: &str, below_home: &str, of_root: Option<&str>| -> Result<PathBuf> {
            let set = variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            if let Some(path) = set {
                return Ok(path.join("pgdyno"));
            }
            match (of_root, &home) {
                (Some(path), _) if User::is_root() => Ok(PathBuf::from(path)),
                (_, Some(home)) => Ok(home.join(below_home).join("pgdyno")),
                // A service of root's may have no home.
                (None, None) if User::is_root() => Ok(PathBuf::from("/var/cache/pgdyno")),
                (_, None) => Err(Failure::new(format!(
                    "neither HOME nor {name} nor PGDYNO_HOME is set, so there is no place for files"
                ))),
            }
        };
        let state = place("XDG_STATE_HOME", ".local/state", Some("/var/lib/pgdyno"))?;
        Ok(Directories {
            cache: place("XDG_CACHE_HOME", ".cache", None)?,
            data: place("XDG_DATA_HOME", ".local/share", Some("/var/lib/pgdyno"))?,
            registry: registry.unwrap_or_else(|| state.join("registry")),
            home: match state.parent() {
                Some(parent) if variable("XDG_STATE_HOME").is_some() => {
                    format!("XDG_STATE_HOME={}", parent.display())
                }
                _ => format!("{}, without PGDYNO_HOME", state.display()),
            },
            state,
        })
    }

    /// Root runs programs from there, mounts and removes below it, and restores what a journal
    /// there says: by paths, which nobody else may be able to lead elsewhere.
    fn kept_from_others(self) -> Result<Directories> {
        if !User::is_root() {
            return Ok(self);
        }
        for place in [&self.state, &self.data] {
            if let Some(reason) = exposed(place) {
                let message = format!("{} is not used by root: {reason}", place.display());
                return Err(Exposed(message).into());
            }
        }
        Ok(self)
    }
}

/// Why other users can lead a path elsewhere; `None` where they cannot. What is not there yet is as
/// what is there above it.
fn exposed(place: &Path) -> Option<String> {
    for above in place.ancestors() {
        let held = match Directory::open(above) {
            Ok(held) => held,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Some(format!("{}: {e}", above.display())),
        };
        return (!held.keeps_paths()).then(|| {
            format!(
                "other users can exchange {} or what is in it (user {}, mode {:o})",
                above.display(),
                held.owner().uid,
                held.owner().mode
            )
        });
    }
    None
}

/// One place for all homes of a user: root's changes of this host, or those that another user can
/// make. A boot keeps it, for settings of servers outlive it. `None` for a user without a home,
/// also where `HOME` is still that of the user before.
fn registry(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = variable("PGDYNO_REGISTRY").map(PathBuf::from);
    let of_user = || match User::is_root() {
        true => Some(PathBuf::from("/var/lib/pgdyno/registry")),
        false => {
            let home = PathBuf::from(variable("HOME")?);
            let is_own = home
                .metadata()
                .is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw());
            is_own.then(|| home.join(".local/state/pgdyno/registry"))
        }
    };
    named.filter(|path| path.is_absolute()).or_else(of_user)
}

/// Users whose changes of this host are checked: root's by everybody, all users' by root. Whoever
/// has a registry of another name sees those that `PGDYNO_OTHER_REGISTRIES` names, as
/// USER=DIRECTORY:USER=DIRECTORY.
fn other_users(host: &LocalHost, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<OtherUser>> {
    let of = |user: User, home: PathBuf, registry: &str| OtherUser {
        name: user.name,
        uid: user.uid,
        home,
        registry: PathBuf::from(registry),
    };
    if let Some(named) = variable("PGDYNO_OTHER_REGISTRIES") {
        let wrong = || {
            Failure::new(format!(
                "PGDYNO_OTHER_REGISTRIES={named}: expected USER=DIRECTORY:USER=DIRECTORY with users of this host"
            ))
        };
        let one = |text: &str| {
            let (name, path) = text.split_once('=')?;
            Some(of(User::named(host, name)?, PathBuf::from(path), ""))
        };
        let parts = named.split(':').filter(|part| !part.is_empty());
        return parts.map(|part| one(part).ok_or_else(wrong)).collect();
    }
    if variable("PGDYNO_REGISTRY").is_some() {
        return Ok(Vec::new());
    }
    if !User::is_root() {
        let root = User::named(host, "root");
        return Ok(root
            .map(|root| of(root, PathBuf::from("/var/lib/pgdyno"), "registry"))
            .into_iter()
            .collect());
    }
    let homes = User::homes(host).into_iter().filter(|(user, _)| user.uid != 0);
    Ok(homes
        .map(|(user, home)| of(user, home, ".local/state/pgdyno/registry"))
        .collect())
}

/// The one place where the environment is read. docs/reference/files.md lists what is read.
#[expect(
    clippy::disallowed_methods,
    reason = "the program reads the environment, here and nowhere else"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    let carried = SERVED.get().map_or(&[][..], |served| &served.request.variables);
    let carried = carried.iter().find(|(known, _)| known == name);
    let value = carried.map(|(_, value)| value.clone());
    value
        .or_else(|| std::env::var(name).ok())
        .filter(|value| !value.is_empty())
}

/// What another host has asked this process to do.
static SERVED: OnceLock<Arc<Served>> = OnceLock::new();

/// Takes a coordinator's variables and files for those of this process, which serves it alone.
pub(crate) fn serve_request(request: &Request, coordinator: Coordinator) {
    let _ = SERVED.set(Arc::new(Served {
        request: request.clone(),
        coordinator,
    }));
}

/// Where agents of this user are found that wait for another connection; `None` where nothing can
/// be kept.
pub(crate) fn waiting_agents() -> Option<PathBuf> {
    let directories = Directories::find(&variable).and_then(Directories::kept_from_others);
    Some(directories.ok()?.state.join("agents"))
}

/// A flag that Ctrl-C, SIGTERM and the loss of the terminal set, so that a command ends in order.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("signals cannot be caught")?;
    }
    *IN_FORCE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&stop));
    Ok(stop)
}

/// The flag that was made last.
static IN_FORCE: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// What a request to stop sets now; where nothing catches signals they end the process, and nothing
/// sets it.
pub(crate) fn stop_in_force() -> Arc<AtomicBool> {
    let in_force = IN_FORCE.lock().unwrap_or_else(PoisonError::into_inner);
    in_force.clone().unwrap_or_default()
}

/// Present time in milliseconds since 1970.
pub(crate) fn now_unix_ms() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_follow_the_variables() {
        let found = Directories::find(&|name| match name {
            "XDG_CACHE_HOME" => Some("/c".into()),
            "XDG_STATE_HOME" => Some("/s".into()),
            "XDG_DATA_HOME" => Some("/d".into()),
            _ => None,
        })
        .unwrap();
        assert_eq!(found.cache, Path::new("/c/pgdyno"));
        assert_eq!(found.state, Path::new("/s/pgdyno"));
        let found = Directories::find(&|name| (name == "PGDYNO_HOME").then(|| "/x".into())).unwrap();
        assert_eq!(found.data, Path::new("/x/data"));
        match Directories::find(&|_| None) {
            Ok(of_root) if User::is_root() => assert_eq!(of_root.cache, Path::new("/var/cache/pgdyno")),
            other => assert!(other.is_err() && !User::is_root()),
        }
    }

    /// As sudo -E passes them on.
    #[test]
    fn directory_of_another_user_is_not_roots_home() {
        const STRANGER: u32 = 12_345;
        let dir = tempfile::tempdir().unwrap();
        let (theirs, roots) = (dir.path().join("theirs"), dir.path().join("roots"));
        for place in [&theirs, &roots] {
            std::fs::create_dir(place).unwrap();
        }
        let link = theirs.join("link");
        std::os::unix::fs::symlink(&roots, &link).unwrap();
        for path in [&theirs, &link] {
            std::os::unix::fs::lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
        }
        let find = |name: &'static str, place: &Path| {
            let text = |path: &Path| Some(path.to_string_lossy().into_owned());
            Directories::find(&|wanted| match wanted {
                _ if wanted == name => text(place),
                "HOME" => text(dir.path()),
                _ => None,
            })
            .and_then(Directories::kept_from_others)
        };
        for name in ["PGDYNO_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            for place in [&theirs, &theirs.join("new/er"), &link, &link.join("new")] {
                let error = find(name, place).unwrap_err();
                assert_eq!(error.class(), pgdyno_record::ErrorClass::Refused, "{error:?}");
                assert!(error.to_string().contains("theirs"), "{error}");
                assert!(error.hint().is_some());
            }
        }
        let own = dir.path().join("own");
        std::os::unix::fs::symlink(&roots, &own).unwrap();
        assert_eq!(
            find("PGDYNO_HOME", &own).unwrap().state,
            roots.canonicalize().unwrap().join("state")
        );
    }
}
