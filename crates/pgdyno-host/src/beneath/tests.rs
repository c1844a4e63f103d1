use super::*;
use rustix::fs::mknodat;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// A user other than root.
const STRANGER: u32 = 12_345;
const LIMIT_BYTES: u64 = 1 << 10;

fn owner(uid: u32, mode: u32) -> Owner {
    Owner { uid, gid: uid, mode }
}

/// A directory of another user's (root alone can make one), and a directory of root's with a
/// secret.
struct Scene {
    dir: tempfile::TempDir,
    theirs: PathBuf,
    secret: PathBuf,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("ours"));
    for place in [&theirs, &ours] {
        fs::create_dir(place).unwrap();
        fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let secret = ours.join("conf");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&theirs, Some(STRANGER), Some(STRANGER)).unwrap();
    Scene { dir, theirs, secret }
}

fn refusal<T: std::fmt::Debug>(outcome: io::Result<T>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    error.to_string()
}

#[test]
fn a_link_to_a_root_only_file_is_refused_whatever_kind_of_link_it_is() {
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    let directory = Directory::open(&theirs).unwrap();
    symlink(&secret, theirs.join("conf")).unwrap();
    assert!(refusal(directory.read("conf", LIMIT_BYTES)).contains("symbolic link"));
    assert!(refusal(directory.append("conf")).contains("symbolic link"));
    fs::remove_file(theirs.join("conf")).unwrap();
    fs::hard_link(&secret, theirs.join("conf")).unwrap();
    let reason = refusal(directory.read("conf", LIMIT_BYTES));
    assert!(
        reason.contains("belongs to user 0, expected user 12345"),
        "{reason}"
    );
    // What everybody may read discloses nothing.
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(directory.read("conf", LIMIT_BYTES).unwrap(), b"secret");
}

#[test]
fn a_fifo_a_device_and_a_large_file_end_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    for (name, kind, device) in [
        ("fifo", FileType::Fifo, 0),
        ("zero", FileType::CharacterDevice, rustix::fs::makedev(1, 5)),
    ] {
        mknodat(&directory.handle, name, kind, Mode::from_raw_mode(0o666), device).unwrap();
        assert!(refusal(directory.read(name, LIMIT_BYTES)).contains("expected a regular file"));
        assert!(refusal(directory.append(name)).contains("expected a regular file"));
    }
    let file = directory.create("large", 0o600).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = directory.read("large", LIMIT_BYTES).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(directory.tail("large", 0, 10).unwrap(), [0; 10]);
}

#[test]
fn a_name_with_a_way_out_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    for name in ["..", ".", "", "a/b", "/etc/passwd"] {
        assert!(refusal(directory.read(name, LIMIT_BYTES)).contains("expected the name of a file"));
        assert!(directory.remove_tree(name).is_err() && directory.create(name, 0o600).is_err());
    }
}

#[test]
fn a_directory_behind_a_strangers_link_is_refused_unless_it_is_the_strangers() {
    let Scene { dir, theirs, secret } = scene();
    let (link, own) = (theirs.join("data"), theirs.join("main"));
    let chown = |path: &Path| std::os::unix::fs::lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    fs::create_dir(&own).unwrap();
    chown(&own);
    // The stranger's link to root's directory, and to his own.
    symlink(secret.parent().unwrap(), &link).unwrap();
    chown(&link);
    assert!(refusal(Directory::open(&link)).contains("belongs to user 12345"));
    fs::remove_file(&link).unwrap();
    symlink("main", &link).unwrap();
    chown(&link);
    assert_eq!(Directory::open(&link).unwrap().owner().uid, STRANGER);
    // A path through the stranger's directory is his to exchange.
    assert!(!Directory::open(&own).unwrap().keeps_paths());
    fs::create_dir(theirs.join("roots")).unwrap();
    assert!(!Directory::open(&theirs.join("roots")).unwrap().keeps_paths());
    assert!(Directory::open(secret.parent().unwrap()).unwrap().keeps_paths());
    // Root's own link leads anywhere.
    symlink(secret.parent().unwrap(), dir.path().join("roots")).unwrap();
    assert_eq!(Directory::open(&dir.path().join("roots")).unwrap().owner().uid, 0);
}

#[test]
fn a_replaced_file_has_the_given_owner_and_what_a_link_named_is_untouched() {
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    let directory = Directory::open(&theirs).unwrap();
    for name in ["conf", "conf.pgdyno-new"] {
        symlink(&secret, theirs.join(name)).unwrap();
    }
    directory.replace("conf", b"new", owner(STRANGER, 0o600)).unwrap();
    let meta = fs::symlink_metadata(theirs.join("conf")).unwrap();
    assert!(meta.is_file() && meta.uid() == STRANGER && meta.mode() & 0o7777 == 0o600);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
}

#[test]
fn a_tree_is_removed_without_what_its_links_name() {
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    fs::create_dir_all(theirs.join("a/b/c")).unwrap();
    fs::write(theirs.join("a/b/file"), "12345").unwrap();
    symlink(secret.parent().unwrap(), theirs.join("a/b/out")).unwrap();
    symlink(secret.parent().unwrap(), theirs.join("out")).unwrap();
    let directory = Directory::open(&theirs).unwrap();
    assert_eq!(directory.bytes(&[]).unwrap(), 5);
    directory.remove_tree("a").unwrap();
    directory.remove_tree("out").unwrap();
    directory.remove_tree("not there").unwrap();
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    assert!(secret.exists());
}

/// The owner of the directory exchanges its file for a link, again and again, while root reads and
/// writes it.
#[test]
fn a_swapped_link_discloses_nothing_at_any_instant() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const ROUNDS: usize = 2_000;
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    let directory = Directory::open(&theirs).unwrap();
    let write = |name: &str, text: &str| directory.replace(name, text.as_bytes(), owner(STRANGER, 0o600));
    write("conf", "harmless").unwrap();
    symlink(&secret, theirs.join("link")).unwrap();
    let (stop, mut seen) = (AtomicBool::new(false), (0, 0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(Ordering::Relaxed) {
                let _ =
                    rustix::fs::renameat_with(&directory.handle, "conf", &directory.handle, "link", flags);
            }
        });
        for _ in 0..ROUNDS {
            match directory.read("conf", LIMIT_BYTES) {
                Ok(bytes) => {
                    assert_eq!(bytes, b"harmless");
                    seen.0 += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("symbolic link"), "{error}");
                    seen.1 += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen.0 + seen.1, ROUNDS);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
}

#[test]
fn directories_are_made_down_to_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = dir.path().join("a/b/c");
    for _ in 0..2 {
        make_directory(&wanted, 0o700).unwrap();
        assert_eq!(fs::metadata(&wanted).unwrap().permissions().mode() & 0o777, 0o700);
    }
    // Other users must be able to pass through to its siblings.
    fs::create_dir(dir.path().join("usual")).unwrap();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
    assert_eq!([mode("a"), mode("a/b")], [mode("usual"); 2]);
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(make_directory(&dir.path().join("file/below"), 0o700).is_err());
}

#[test]
fn a_directory_below_a_strangers_link_to_roots_is_not_made() {
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    symlink(secret.parent().unwrap(), theirs.join("way")).unwrap();
    std::os::unix::fs::lchown(theirs.join("way"), Some(STRANGER), Some(STRANGER)).unwrap();
    assert!(refusal(make_directory(&theirs.join("way/a/b"), 0o700)).contains("belongs to user 12345"));
    assert_eq!(fs::read_dir(secret.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_directory_that_was_exchanged_is_where_its_handle_leads() {
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    let (place, moved) = (theirs.join("data"), theirs.join("moved"));
    let held = make_directory(&place, 0o700).unwrap();
    assert_eq!(held.resolved().unwrap(), place.canonicalize().unwrap());
    fs::rename(&place, &moved).unwrap();
    symlink(secret.parent().unwrap(), &place).unwrap();
    assert_eq!(held.resolved().unwrap(), moved.canonicalize().unwrap());
    fs::remove_dir(&moved).unwrap();
    assert_eq!(held.resolved().unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// The bits of a group are the mask of an access control list, and users are members of root's
/// group.
#[test]
fn a_directory_that_a_group_may_write_is_shared_whatever_group_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for (mode, is_private) in [(0o750, true), (0o770, false), (0o702, false)] {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        assert_eq!(directory.owner().gid, 0);
        assert_eq!(directory.is_private(), is_private, "{mode:o}");
        assert_eq!(directory.keeps_paths(), is_private, "{mode:o}");
    }
}

#[test]
fn a_file_of_others_in_a_strangers_directory_is_neither_written_nor_given_a_mode() {
    let Scene {
        dir: _dir,
        theirs,
        secret,
    } = scene();
    let directory = Directory::open(&theirs).unwrap();
    // Everybody may read it, and nobody but root write it.
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    fs::hard_link(&secret, theirs.join("conf")).unwrap();
    assert!(directory.file("conf").is_ok());
    for refused in [
        directory.append("conf").map(drop),
        directory.update("conf").map(drop),
    ] {
        assert!(refusal(refused).contains("belongs to user 0"));
    }
    assert!(refusal(directory.set_mode("conf", 0o600)).contains("belongs to user 0"));
    assert!(refusal(directory.file_of("conf", STRANGER)).contains("belongs to user 0"));
    // His own, with a name elsewhere.
    fs::remove_file(theirs.join("conf")).unwrap();
    directory.replace("conf", b"", owner(STRANGER, 0o600)).unwrap();
    fs::hard_link(theirs.join("conf"), theirs.join("again")).unwrap();
    assert!(refusal(directory.append("conf")).contains("another name"));
    fs::remove_file(theirs.join("again")).unwrap();
    assert!(directory.append("conf").is_ok() && directory.file_of("conf", STRANGER).is_ok());
    directory.set_mode("conf", 0o640).unwrap();
    assert_eq!(fs::metadata(theirs.join("conf")).unwrap().mode() & 0o7777, 0o640);
    symlink(&secret, theirs.join("link")).unwrap();
    assert!(refusal(directory.set_mode("link", 0o600)).contains("symbolic link"));
    assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o7777, 0o644);
}
