//! `pgdyno verify`: whether settings are in force.

use super::status::verify_kept;
use super::wanted::{Wanted, wanted};
use super::{print, reader};
use crate::cli::VerifyArgs;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{exit, target};

pub(crate) fn verify(context: &Context, args: &VerifyArgs) -> Result<u8> {
    let words = args.words();
    if args.target.is_none() && words.is_empty() {
        return verify_kept(context, args.json);
    }
    let held = match &args.target {
        Some(target) if !args.host_only => Some(target::read_only(context, target)?),
        _ => None,
    };
    let server = args.target.as_deref().filter(|_| !args.host_only);
    let wanted = wanted(context, &words, server)?;
    let reader = reader(context, held.as_ref());
    let mut lines = Vec::new();
    for Wanted {
        setting, of_profile, ..
    } in &wanted
    {
        match reader.verify_one(setting) {
            Ok(line) => lines.push(line),
            // As it is not applied, it is not missed.
            Err(error) if *of_profile && reader.check(setting).is_err() => {
                err!("{} is not verified: {error}", setting.knob);
            }
            Err(error) => {
                let what = format!("{} = {}", setting.knob, setting.value);
                return Err(Failure::from(error).context(what));
            }
        }
    }
    print(
        &lines,
        args.target.as_deref().unwrap_or("this host"),
        args.json,
        None,
    )?;
    let holds = lines.iter().all(|line| line.took);
    Ok(if holds { exit::FINE } else { exit::NOT_HELD })
}
