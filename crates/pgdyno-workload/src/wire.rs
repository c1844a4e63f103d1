//! Requests as tests read them.

/// The kinds of the messages in `bytes`: fails where a length does not fit.
pub(crate) fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        kinds.push(char::from(kind));
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        bytes = &rest[length..];
    }
    kinds
}
