//! Processes in namespaces of their own, as in a container: what their numbers and their paths are
//! here.

use crate::access::HostAccess;
use crate::mount;

/// The number of a process in its own pid namespace, where that is not this one.
pub fn inner_number(host: &dyn HostAccess, pid: u32) -> Option<u32> {
    let status = host.read(&format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().skip(1).last()?.parse().ok()
}

/// The path here of the file or directory that a process sees at `path`: another one where it has
/// mounts of its own. What this process may not see of the other is taken to be the same.
///
/// # Errors
///
/// Why it has no path here: the end of a sentence.
pub fn path_here(host: &dyn HostAccess, pid: u32, path: &str) -> Result<String, String> {
    let root = format!("/proc/{pid}/root");
    let seen = mount::resolve_below(host, &root, path).and_then(|inner| {
        let identity = host.identity_of(&format!("{root}{inner}"))?;
        Ok((inner, identity))
    });
    let Ok((inner, theirs)) = seen else {
        return Ok(path.to_owned());
    };
    let is_it = |path: &str| host.identity_of(path).is_ok_and(|ours| ours == theirs);
    if is_it(path) {
        return Ok(path.to_owned());
    }
    let own = |why: &str| {
        format!(
            "the server has mounts of its own (a container): its {path} is not the one that is seen from here, {why}"
        )
    };
    let mounts = |of: &str| {
        let text = host.read(&format!("/proc/{of}/mountinfo"));
        text.map(|text| mount::parse(&text))
            .map_err(|error| error.to_string())
    };
    let theirs = mounts(&pid.to_string())?;
    let number = host.device_of(&format!("{root}{inner}")).ok();
    let of = mount::holding_on(&theirs, &inner, number).ok_or_else(|| own("and in none of its mounts"))?;
    // Its layers are gone with it.
    if of.kind == "overlay" {
        return Err(own("and in no volume"));
    }
    let within = moved(&inner, &of.point, &of.root);
    let here = mounts("self")?
        .iter()
        .filter(|mount| mount.number == of.number && mount::is_below(&within, &mount.root))
        .map(|mount| moved(&within, &mount.root, &mount.point))
        .find(|path| is_it(path));
    here.ok_or_else(|| own("and its file system is not mounted here"))
}

/// Whether a process has another root directory than this one, as in a container.
pub fn has_own_root(host: &dyn HostAccess, pid: u32) -> bool {
    let root = host.identity_of(&format!("/proc/{pid}/root"));
    root.is_ok_and(|theirs| host.identity_of("/").is_ok_and(|ours| ours != theirs))
}

/// A path below one directory as it is below another.
fn moved(path: &str, from: &str, to: &str) -> String {
    let rest = path.strip_prefix(from.trim_end_matches('/')).unwrap_or(path);
    match format!("{}{rest}", to.trim_end_matches('/')) {
        root if root.is_empty() => "/".to_owned(),
        moved => moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LocalHost;
    use std::fs;
    use std::os::unix::fs::symlink;

    const OURS: &str =
        "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n40 27 254:16 /sub /mnt/disk rw - xfs /dev/vdb rw\n";
    const LAYERS: &str = "90 80 0:77 / / rw - overlay overlay rw,upperdir=/x\n";

    /// A host with a container, process 60, whose root is at /layers. Its /data/file is this host's
    /// `file`, by a second name: a mount shows the same file.
    fn of_container(file: &str, theirs: &str) -> (tempfile::TempDir, LocalHost) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let file = root.join(file);
        for directory in [
            file.parent().unwrap(),
            &root.join("proc/60"),
            &root.join("proc/self"),
        ] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::create_dir_all(root.join("layers/data")).unwrap();
        fs::write(&file, "").unwrap();
        fs::hard_link(&file, root.join("layers/data/file")).unwrap();
        symlink("/data", root.join("layers/link")).unwrap();
        symlink("/layers", root.join("proc/60/root")).unwrap();
        fs::write(root.join("proc/self/mountinfo"), OURS).unwrap();
        fs::write(root.join("proc/60/mountinfo"), format!("{LAYERS}{theirs}")).unwrap();
        let host = LocalHost::at(root);
        (dir, host)
    }

    #[test]
    fn path_of_a_container_is_that_of_its_volume_here() {
        let check = |file: &str, theirs: &str, expected: Result<&str, &str>| {
            let (_dir, host) = of_container(file, theirs);
            for path in ["/data/file", "/link/file"] {
                let found = path_here(&host, 60, path);
                match expected {
                    Ok(here) => assert_eq!(found.as_deref(), Ok(here), "{theirs}"),
                    Err(why) => {
                        let found = found.unwrap_err();
                        assert!(found.contains(path) && found.ends_with(why), "{found}");
                    }
                }
            }
        };
        let volume = "91 90 254:1 /srv/volume /data rw - ext4 /dev/vda1 rw\n";
        check("srv/volume/file", volume, Ok("/srv/volume/file"));
        let on_disk = "91 90 254:16 /sub/volume /data rw - xfs /dev/vdb rw\n";
        check("mnt/disk/volume/file", on_disk, Ok("/mnt/disk/volume/file"));
        // The same place on another disk, or another directory of it.
        check(
            "srv/other/file",
            volume,
            Err("and its file system is not mounted here"),
        );
        let above = on_disk.replace("/sub/volume", "/volume");
        check(
            "mnt/disk/volume/file",
            &above,
            Err("and its file system is not mounted here"),
        );
        check("srv/volume/file", "", Err("and in no volume"));
    }

    #[test]
    fn path_below_another_directory() {
        for (path, from, to, expected) in [
            ("/data/a", "/data", "/srv/volume", "/srv/volume/a"),
            ("/data", "/data", "/srv/volume", "/srv/volume"),
            ("/srv/volume/a", "/", "/", "/srv/volume/a"),
            ("/srv/volume/a", "/srv", "/", "/volume/a"),
            ("/srv", "/srv", "/", "/"),
        ] {
            assert_eq!(moved(path, from, to), expected, "{path} from {from} to {to}");
        }
    }

    #[test]
    fn what_may_not_be_seen_is_taken_to_be_the_same() {
        let (_dir, host) = of_container("srv/volume/file", "");
        assert_eq!(path_here(&host, 61, "/data"), Ok("/data".to_owned()));
        assert_eq!(path_here(&host, 60, "/none"), Ok("/none".to_owned()));
    }
}
