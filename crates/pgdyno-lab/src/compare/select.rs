//! Which treatments or trials two references mean, and why they cannot be compared with each other.

use super::{CompareError, Named, Side, Which, of};
use pgdyno_record::{TreatmentRecord, TrialStatus};

/// Sides to be compared with each other, A first.
pub(super) fn pairs<'a>(a: Named<'a>, b: Named<'a>) -> Result<Vec<(Side<'a>, Side<'a>)>, CompareError> {
    let is_same = a.stored.id == b.stored.id && a.store == b.store;
    let pairs = match (a.which, b.which) {
        (Which::Trial(of_a), Which::Trial(of_b)) => vec![(trial(a, *of_a)?, trial(b, *of_b)?)],
        (Which::Trial(_), _) | (_, Which::Trial(_)) => return Err(CompareError::Mixed),
        (Which::Treatment(of_a), Which::Treatment(of_b)) => vec![(treatment(a, of_a)?, treatment(b, of_b)?)],
        (Which::All, Which::All) if !is_same => shared(a, b)?,
        (Which::All, Which::All) => {
            return Err(CompareError::Same {
                what: of(a.stored, a.store),
            });
        }
        (Which::Treatment(name), Which::All) => {
            let a = treatment(a, name)?;
            vec![(a, counterpart(b, name)?)]
        }
        (Which::All, Which::Treatment(name)) => {
            let b = treatment(b, name)?;
            vec![(counterpart(a, name)?, b)]
        }
    };
    let one_and_the_same = |(a, b): &&(Side<'_>, Side<'_>)| {
        a.is_of_same_experiment(b)
            && a.treatment.name == b.treatment.name
            && a.trial.map(|(number, _)| number) == b.trial.map(|(number, _)| number)
    };
    match pairs.iter().find(one_and_the_same) {
        Some((a, _)) => Err(CompareError::Same { what: a.label() }),
        None => Ok(pairs),
    }
}

/// Number of pairs that the intervals of one figure hold together over: those of treatments of one
/// name, where these are such, else all that can be asked for.
pub(super) fn family(a: Named<'_>, b: Named<'_>, pairs: &[(Side<'_>, Side<'_>)]) -> usize {
    let (of_a, of_b) = (names(a), names(b));
    let is_of_one_name = pairs.iter().all(|(a, b)| a.treatment.name == b.treatment.name);
    let together = match is_of_one_name {
        true => of_a.iter().filter(|name| of_b.contains(name)).count(),
        false => of_a.len() * of_b.len(),
    };
    together.max(pairs.len())
}

fn tested<'a>(named: Named<'a>) -> impl Iterator<Item = &'a TreatmentRecord> {
    let treatments = named.stored.record.treatments.iter();
    treatments.filter(|treatment| treatment.why_not.is_none())
}

fn names(named: Named<'_>) -> Vec<String> {
    tested(named).map(|treatment| treatment.name.clone()).collect()
}

fn side<'a>(named: Named<'a>, treatment: &'a TreatmentRecord) -> Side<'a> {
    Side {
        stored: named.stored,
        store: named.store,
        treatment,
        trial: None,
    }
}

fn treatment<'a>(named: Named<'a>, name: &str) -> Result<Side<'a>, CompareError> {
    let of = || of(named.stored, named.store);
    let found = named
        .stored
        .record
        .treatments
        .iter()
        .find(|treatment| treatment.name == name);
    let found = found.ok_or_else(|| CompareError::NoTreatment {
        of: of(),
        name: name.to_owned(),
        there: names(named),
    })?;
    match &found.why_not {
        Some(why) => Err(CompareError::NotTested {
            of: of(),
            name: name.to_owned(),
            why: why.clone(),
        }),
        None => Ok(side(named, found)),
    }
}

/// The treatment of the same name, or the only one there is.
fn counterpart<'a>(named: Named<'a>, name: &str) -> Result<Side<'a>, CompareError> {
    let all: Vec<&TreatmentRecord> = tested(named).collect();
    match (
        all.iter().find(|treatment| treatment.name == name),
        all.as_slice(),
    ) {
        (Some(found), _) => Ok(side(named, found)),
        (None, [only]) => Ok(side(named, only)),
        _ => treatment(named, name),
    }
}

/// Treatments that both have tested; where each has a single one, these.
fn shared<'a>(a: Named<'a>, b: Named<'a>) -> Result<Vec<(Side<'a>, Side<'a>)>, CompareError> {
    let of_b: Vec<&TreatmentRecord> = tested(b).collect();
    let same = |of_a: &'a TreatmentRecord| {
        let found = of_b.iter().find(|of_b| of_b.name == of_a.name);
        found.map(|of_b| (side(a, of_a), side(b, of_b)))
    };
    let pairs: Vec<_> = tested(a).filter_map(same).collect();
    let of_a: Vec<&TreatmentRecord> = tested(a).collect();
    match (pairs.is_empty(), of_a.as_slice(), of_b.as_slice()) {
        (false, ..) => Ok(pairs),
        (true, [of_a], [of_b]) => Ok(vec![(side(a, of_a), side(b, of_b))]),
        _ => Err(CompareError::NothingShared {
            a: of(a.stored, a.store),
            b: of(b.stored, b.store),
            of_a: names(a),
            of_b: names(b),
        }),
    }
}

fn trial<'a>(named: Named<'a>, number: i64) -> Result<Side<'a>, CompareError> {
    let of = || of(named.stored, named.store);
    let found = named.stored.trials.iter().find(|(id, _)| *id == number);
    let (_, record) = found.ok_or_else(|| CompareError::NoTrial { of: of(), number })?;
    if record.status != TrialStatus::Finished {
        let why = record
            .reason
            .clone()
            .unwrap_or_else(|| "it was not finished".into());
        return Err(CompareError::BadTrial {
            of: of(),
            number,
            why,
        });
    }
    Ok(Side {
        trial: Some((number, record)),
        ..treatment(named, &record.treatment)?
    })
}
