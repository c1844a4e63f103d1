//! Huge pages and swap of the host: what the kernel moves beside them, and what a file is known by,
//! are restored too.

use common::machine::{Volume, quiet_machine, whole_machine};
use common::{Home, kernel, tool};
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

/// The kernel keeps more memory free for huge pages, whichever file of them is written. A smaller
/// reserve is restored, and what a colleague writes to another of these files meanwhile is shown by
/// that file.
#[test]
fn what_huge_pages_want_free_goes_back_with_each_of_their_files() {
    let _machine = whole_machine();
    let home = Home::new();
    let reserve = "/proc/sys/vm/min_free_kbytes";
    let place = |file: &str| format!("/sys/kernel/mm/transparent_hugepage/{file}");
    let files = [
        "enabled",
        "shmem_enabled",
        "hugepages-2048kB/enabled",
        "hugepages-2048kB/shmem_enabled",
    ]
    .map(place);
    for (file, word) in files.iter().zip(["never", "never", "inherit", "inherit"]) {
        fs::write(file, word).expect("written");
    }
    fs::write(reserve, "30000").expect("written");
    let state = || (kernel(reserve), files.each_ref().map(|file| kernel(file)));
    let before = state();
    for setting in [
        "transparent_hugepage.enabled=madvise",
        "transparent_hugepage.shmem_enabled=advise",
        "transparent_hugepage.size_enabled@2048=madvise",
        "transparent_hugepage.size_shmem_enabled@2048=advise",
    ] {
        home.run(&["apply", "--host-only", setting]).fine();
        assert_ne!(
            kernel(reserve),
            "30000",
            "{setting} raises nothing here: this shows nothing"
        );
        home.run(&["restore"]).fine();
        assert_eq!(state(), before, "{setting}");
    }
    // One's own wish beside it counts, and is restored too; what a colleague does to a file that
    // was not touched stays.
    home.run(&[
        "apply",
        "--host-only",
        "vm.min_free_kbytes=30000",
        "transparent_hugepage.shmem_enabled=advise",
    ])
    .fine();
    assert_eq!(kernel(reserve), "30000");
    fs::write(&files[2], "always").expect("written");
    home.run(&["restore"]).fine();
    assert_eq!(kernel(reserve), "30000");
    assert_eq!(kernel(&files[1]), before.1[1]);
    assert!(kernel(&files[2]).contains("[always]"));
    // Nor is one that was touched, and is the colleague's now, in the way of another.
    fs::write(&files[2], "inherit").expect("written");
    fs::write(reserve, "30000").expect("written");
    home.run(&[
        "apply",
        "--host-only",
        "transparent_hugepage.enabled=madvise",
        "transparent_hugepage.shmem_enabled=advise",
    ])
    .fine();
    fs::write(&files[1], "within_size").expect("written");
    let left = home.run(&["restore"]).fine();
    assert!(
        left.out.contains("someone else set it to within_size"),
        "{}",
        left.out
    );
    assert!(kernel(&files[1]).contains("[within_size]"));
    assert_eq!(kernel(&files[0]), before.1[0]);
}

/// A server that has gone for everyone gives its pages back a moment later.
#[test]
fn huge_pages_are_restored_when_the_last_user_of_them_is_about_to_end() {
    let _machine = whole_machine();
    let home = Home::new();
    let pools = [
        "/proc/sys/vm/nr_hugepages",
        "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    ];
    let state = || pools.map(kernel);
    let before = state();
    home.run(&["apply", "--host-only", "vm.nr_hugepages=8"]).fine();
    // MAP_HUGETLB is 0x40000; both pages are written to, and held for a second.
    let user = "import mmap, time\nm = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x40000)\n\
                m[0] = m[2 << 20] = 1\nprint('has them', flush=True)\ntime.sleep(1)";
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", user])
        .stdout(Stdio::piped())
        .spawn()
        .expect("Debian's python3");
    let mut said = [0; 8];
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut said).expect("it has its pages");
    let restored = home.run(&["restore"]).fine();
    assert!(!restored.out.contains("FAILED"), "{}", restored.out);
    assert_eq!(state(), before);
    assert!(child.wait().expect("an end").success());
}

#[test]
fn a_swap_file_without_a_path_is_beside_the_data() {
    let _machine = quiet_machine();
    let home = Home::on_disk();
    home.run(&["sandbox", "create", "x"]).fine();
    let before = common::swap();
    home.run(&["apply", "sandbox:x", "swap.file=16777216"]).fine();
    let file = home.data("x").with_file_name("pgdyno.swap");
    let now = common::swap();
    assert!(
        now.iter().any(|line| line.contains(&*file.to_string_lossy())),
        "{now:?}"
    );
    home.run(&["restore"]).fine();
    assert_eq!(common::swap(), before);
    assert!(!file.exists());
}

#[test]
fn a_swap_file_of_the_users_comes_back_as_what_it_is_known_by() {
    let _machine = quiet_machine();
    let home = Home::new();
    let volume = Volume::new(&home, "swap");
    let file = volume.place.join("its file");
    let path = file.to_string_lossy().into_owned();
    fs::write(&file, vec![0; 8 << 20]).expect("written");
    tool("chmod", &["600", &path]);
    tool("mkswap", &["--label", "spare", &path]);
    tool("swapon", &["--priority", "7", &path]);
    let state = || {
        let known_by = tool("blkid", &["-p", "-o", "export", &path]);
        let swaps = fs::read_to_string("/proc/swaps").expect("swaps");
        let line = swaps.lines().find(|line| line.contains("its\\040file"));
        (
            known_by,
            // How much of it is used is the kernel's business.
            line.and_then(|line| line.split_whitespace().last().map(str::to_owned)),
            fs::metadata(&file).map(|file| file.len()).ok(),
        )
    };
    let before = state();
    assert_eq!(before.1.as_deref(), Some("7"));
    assert!(
        before.0.contains("spare") && before.0.contains("UUID="),
        "{before:?}"
    );
    let knob = format!("swap.file@{path}");
    home.run(&["apply", "--host-only", &format!("{knob}=16777216")])
        .fine();
    let larger = state();
    assert_eq!(larger, (before.0.clone(), before.1.clone(), Some(16 << 20)));
    home.run(&["restore"]).fine();
    assert_eq!(state(), before);
    home.run(&["apply", "--host-only", &format!("{knob}=0")]).fine();
    assert!(!file.exists());
    home.run(&["restore"]).fine();
    assert_eq!(state(), before);
}
