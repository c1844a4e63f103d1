//! Reports of ladders: curves with their laws and zones.

use super::factors::{factorial, ladder, report};

#[test]
fn a_ladder_has_a_curve_with_its_law_and_its_zone() {
    let report = report(&ladder());
    let [curve] = &report.curves[..] else {
        panic!("one curve")
    };
    assert_eq!(
        (curve.x.as_str(), curve.points.len(), &curve.title),
        ("clients", 6, &None)
    );
    let usl = curve.usl.as_ref().unwrap();
    assert!((usl.sigma.value.unwrap() - 0.02).abs() < 0.02, "{usl:?}");
    assert!((usl.peak_x.value.unwrap() - 44.0).abs() < 5.0, "{usl:?}");
    let zone = curve.zone.as_ref().unwrap();
    assert!(zone.lowest <= zone.best && zone.best <= zone.highest, "{zone:?}");
    let answer = &report.experiment.answer;
    assert!(
        answer.contains("throughput is highest with 32 clients"),
        "{answer}"
    );
    assert!(answer.contains("the happy zone is"), "{answer}");
    assert_eq!(report.experiment.headline.as_deref(), Some("clients=32"));
    assert!(report.treatments.iter().all(|t| t.step.is_none()));
    assert_eq!(report.decision.minimum_detectable_effect, None);
}

#[test]
fn a_curve_says_why_it_has_no_law_and_no_zone() {
    let few = report(&factorial("ladder", &[("cpus", true, &["1", "2"])], |row| {
        [100.0, 190.0][row[0]]
    }));
    assert_eq!(few.curves[0].x, "CPUs");
    assert!(few.curves[0].why_no_usl.as_ref().unwrap().contains("at least 4"));
    assert!(few.curves[0].why_no_zone.is_some());
    let words = report(&factorial("ladder", &[("disk", true, &["xfs", "ext4"])], |row| {
        [100.0, 190.0][row[0]]
    }));
    assert!(words.curves.is_empty());
    assert!(
        words
            .experiment
            .answer
            .contains("is best with \u{201c}The disk=ext4\u{201d}"),
        "{}",
        words.experiment.answer
    );
}
