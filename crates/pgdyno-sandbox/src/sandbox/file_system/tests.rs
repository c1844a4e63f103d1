//! What is decided about file systems without making one.

use super::*;

fn plan(kind: FileSystemKind, size_bytes: u64) -> FileSystemPlan {
    FileSystemPlan { kind, size_bytes }
}

#[test]
fn kinds_have_the_kernels_names() {
    for kind in FileSystemKind::ALL {
        assert_eq!(FileSystemKind::named(kind.name()), Some(kind));
        let text = serde_json::to_string(&kind).unwrap();
        assert_eq!(text, format!("\"{}\"", kind.name()));
    }
    assert_eq!(FileSystemKind::named("zfs"), None);
}

#[test]
fn two_plans_never_share_an_image() {
    let directory = tempfile::tempdir().unwrap();
    let images = tempfile::tempdir().unwrap();
    let planned = |kind, images| {
        FileSystem::planned(directory.path(), images, Holds::Data, plan(kind, 1 << 30)).unwrap()
    };
    let (one, other) = (
        planned(FileSystemKind::Xfs, Some(images.path())),
        planned(FileSystemKind::Xfs, Some(images.path())),
    );
    assert_ne!(one.image, other.image);
    let image = one.image.as_deref().unwrap();
    assert_eq!(
        image.parent(),
        Some(fs::canonicalize(images.path()).unwrap().as_path())
    );
    assert_eq!(
        one.place(),
        fs::canonicalize(directory.path())
            .unwrap()
            .join("data.mount/data")
    );
    assert_eq!(planned(FileSystemKind::Tmpfs, None).image, None);
}

#[test]
fn what_is_not_the_sandboxs_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    let check = |point: &Path, image: &Path| {
        let wrong = FileSystem {
            holds: Holds::Data,
            kind: FileSystemKind::Ext4,
            size_bytes: 1,
            point: point.to_owned(),
            image: Some(image.to_owned()),
        };
        let error = wrong.remove(directory.path()).unwrap_err().to_string();
        assert!(error.contains("left alone"), "{error}");
        assert!(precious.exists());
    };
    let here = fs::canonicalize(directory.path()).unwrap();
    check(&here.join("data.mount"), &precious);
    check(elsewhere.path(), &here.join("pgdyno-sandbox-1.data"));
    // Nothing was made yet.
    let unmade = FileSystem::planned(
        directory.path(),
        None,
        Holds::Wal,
        plan(FileSystemKind::Ext4, 1 << 30),
    );
    unmade.unwrap().remove(directory.path()).unwrap();
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_made() {
    if !pgdyno_server::User::is_root() {
        let error = check(&[plan(FileSystemKind::Tmpfs, 1 << 30)], Path::new("/")).unwrap_err();
        assert!(matches!(error, SandboxError::NeedsRoot), "{error}");
        return;
    }
    let refused = |kind, bytes, message: &str| {
        let error = check(&[plan(kind, bytes)], Path::new("/tmp/none/yet"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{error}");
    };
    refused(FileSystemKind::Tmpfs, 1 << 50, "memory available");
    refused(FileSystemKind::Tmpfs, 1 << 20, "at least");
    refused(FileSystemKind::Ext4, 1 << 50, "are free there");
    check(&[], Path::new("/")).unwrap();
    check(&[plan(FileSystemKind::Tmpfs, 128 << 20)], Path::new("/")).unwrap();
}
