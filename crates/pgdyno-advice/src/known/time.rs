//! Instants as the server's JSON has them.

/// Seconds from the first day of the year 0 to an instant as the server's JSON has it, in UTC:
/// 2026-11-22T08:17:07.123+00:00.
pub(super) fn utc_s(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix("+00:00")?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u16>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let hour: u16 = time.next()?.parse().ok()?;
    let minute: u16 = time.next()?.parse().ok()?;
    let second: f64 = time.next()?.parse().ok()?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    if !(0.0..61.0).contains(&second) {
        return None;
    }
    // The year begins in March, so that the day of a leap year is its last: the days before a month
    // are then 30.6 times its number, rounded (proleptic Gregorian calendar).
    let (year, month) = match month {
        1 | 2 => (u32::from(year.checked_sub(1)?), u32::from(month) + 9),
        _ => (u32::from(year), u32::from(month) - 3),
    };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (month * 306 + 5) / 10 + u32::from(day) - 1;
    Some(f64::from(days) * 86_400.0 + f64::from(hour) * 3600.0 + f64::from(minute) * 60.0 + second)
}
