use super::*;

#[test]
fn commands_can_be_pasted_into_a_shell() {
    assert_eq!(quoted("sandbox:main"), "sandbox:main");
    assert_eq!(quoted("host=db user=postgres"), "'host=db user=postgres'");
    assert_eq!(quoted("it's"), "'it'\\''s'");
    assert_eq!(quoted(""), "''");
}

#[test]
fn a_password_is_seen_in_a_connection_string() {
    for text in [
        "host=db password=x",
        "host=db PASSWORD = 'x y'",
        "postgresql://me:secret@db/app",
        "postgres://db/app?password=x",
        "postgres://db/app?sslpassword=x",
    ] {
        assert!(may_hold_password(text), "{text}");
    }
    for text in [
        "host=db user=me",
        "postgresql://me@db:5432/app",
        "sandbox:main",
        "",
    ] {
        assert!(!may_hold_password(text), "{text}");
    }
}
