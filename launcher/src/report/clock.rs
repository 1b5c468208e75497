//! Points in time as text.

use std::time::Duration;

/// RFC 3339 in UTC, with nanoseconds, of a time since 1970.
pub fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    let nanoseconds = since_1970.subsec_nanos();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z")
}

/// The date that many days after 1970-01-01, in the Gregorian calendar. Years are counted from March, so that
/// the leap day is the last of its year, and in cycles of 400.
fn date(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const BEFORE_1970: u64 = 719_468;
    let days = days + BEFORE_1970;
    let (cycle, day) = (days / CYCLE, days % CYCLE);
    // What the leap days before it take out: one in 1,461 days, but for the last day of each century.
    let year = (day - day / 1_460 + day / 36_524 - day / (CYCLE - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, months have 31 and 30 days in turn, five of them 153.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds: u64| rfc3339(Duration::from_secs(seconds)).replace(".000000000Z", "");
        assert_eq!(at(0), "1970-01-01T00:00:00");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00");
        assert_eq!(at(1_709_210_096), "2024-02-29T12:34:56");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59");
        assert_eq!(at(1_735_689_600), "2025-01-01T00:00:00");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00");
        assert_eq!(rfc3339(Duration::new(1, 2)), "1970-01-01T00:00:01.000000002Z");
    }

    #[test]
    fn every_day_of_400_years_follows_the_one_before() {
        let length = |year: u64, month: u64| match month {
            2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut before = date(0);
        for days in 1..150_000 {
            let (year, month, day) = before;
            let next = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == length(year, month) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            assert_eq!(date(days), next);
            before = next;
        }
    }
}
