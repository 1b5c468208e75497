//! Sizes, durations and counts as people write them: `64M`, `90s`, `20`. One parser for flags and profiles.

use std::fmt;
use std::time::Duration;

/// A limit, or the word that lifts one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<T> {
    /// No limit: `none` or `unlimited`.
    Unlimited,
    /// This much, and never zero.
    At(T),
}

impl<T> Bound<T> {
    /// The limit, if there is one.
    pub fn limit(self) -> Option<T> {
        match self {
            Bound::Unlimited => None,
            Bound::At(limit) => Some(limit),
        }
    }
}

impl fmt::Display for Bound<u64> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.limit().map_or("none".to_string(), |limit| limit.to_string()))
    }
}

impl fmt::Display for Bound<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.limit().map_or("none".to_string(), exactly))
    }
}

/// The maximum duration. More is a slip, and would not fit into the kernel's clocks.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
/// The maximum size: file offsets are signed.
const LARGEST: u64 = i64::MAX as u64;

/// Descriptors 0 to 2 are taken, and the notification descriptor needs one more number below the limit.
const LEAST_DESCRIPTORS: u64 = 4;

/// Numbers are counted in billionths, because of the digits after the decimal point.
const PARTS: u128 = 1_000_000_000;

const DURATIONS: &[(&str, u128)] = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", PARTS),
    ("ms", 1_000_000),
];

/// A number of bytes: `4096`, `64K`, `10MB`, `1.5GiB`. All units are powers of 1024: `M` is `MB` and `MiB`.
pub fn size(text: &str) -> Result<Bound<u64>, String> {
    bound(text, "no size, like 4096, 64K, 10MiB, 1.5G or 'none'", ZERO, |text| {
        let (value, unit) = number(text).ok_or(Problem::Unknown)?;
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return Err(Problem::Unknown),
        };
        let bytes = value.checked_mul(1 << shift).ok_or(Problem::TooMuch)? / PARTS;
        u64::try_from(bytes).ok().filter(|bytes| *bytes <= LARGEST).ok_or(Problem::TooMuch)
    })
}

/// A time: `30` and `30s` are seconds; `500ms`, `1.5s`, `5m`, `2h`, `1d`; in falling order: `1m30s`.
pub fn duration(text: &str) -> Result<Bound<Duration>, String> {
    time(text, ZERO)
}

/// The time that something is waited for, as [`duration`] reads it, with another message for zero.
pub fn patience(text: &str) -> Result<Bound<Duration>, String> {
    time(text, NO_TIME)
}

/// An age, as [`duration`] reads it.
pub fn age(text: &str) -> Result<Duration, String> {
    time(text, NO_AGE)?.limit().ok_or_else(|| "it is no duration, like 30d or 12h".to_string())
}

fn time(text: &str, zero: &str) -> Result<Bound<Duration>, String> {
    bound(text, "no duration, like 500ms, 1.5s, 90s, 1m30s, 2h or 'none'", zero, |text| {
        let (mut rest, mut units, mut total) = (text, DURATIONS, 0_u128);
        while !rest.is_empty() {
            let (value, tail) = number(rest).ok_or(Problem::Unknown)?;
            let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(end);
            let bare = unit.is_empty() && rest.len() == text.len();
            let place = units.iter().position(|(name, _)| *name == unit || (bare && *name == "s"));
            let place = place.ok_or(Problem::Unknown)?;
            let part = value.checked_mul(units[place].1).ok_or(Problem::TooMuch)? / PARTS;
            total = total.checked_add(part).ok_or(Problem::TooMuch)?;
            (rest, units) = (tail, &units[place + 1..]);
        }
        let nanoseconds = u64::try_from(total).map_err(|_| Problem::TooMuch)?;
        let time = Duration::from_nanos(nanoseconds);
        if time > LONGEST { Err(Problem::TooMuch) } else { Ok(time) }
    })
}

/// A time as [`duration`] reads it, to the nanosecond.
pub fn exactly(time: Duration) -> String {
    let (whole, rest) = (time.as_millis(), time.subsec_nanos() % 1_000_000);
    if rest == 0 {
        return format!("{whole}ms");
    }
    format!("{}ms", format!("{whole}.{rest:06}").trim_end_matches('0'))
}

/// A number of things.
pub fn count(text: &str) -> Result<Bound<u64>, String> {
    bound(text, "no number, like 20, or 'none'", ZERO, |text| {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Problem::Unknown);
        }
        text.parse().ok().filter(|count| *count <= u64::from(u32::MAX)).ok_or(Problem::TooMuch)
    })
}

/// A number of descriptors with which a command starts.
pub fn descriptors(text: &str) -> Result<Bound<u64>, String> {
    match count(text)? {
        Bound::At(few) if few < LEAST_DESCRIPTORS => Err(format!(
            "no command starts with {few}: standard input, output and error and the program's file are \
             {LEAST_DESCRIPTORS}"
        )),
        bound => Ok(bound),
    }
}

/// A TCP port.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "not a port (0 to 65535, such as 8080)".to_string())
}

/// An open file's number.
pub fn descriptor(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| "not a descriptor (such as 3)".to_string())
}

const ZERO: &str = "a limit of zero lets nothing run: write 'none' for no limit";
const NO_TIME: &str = "it must be greater than zero; use 1ms";
const NO_AGE: &str = "it must be greater than zero; --all is for all of them";

enum Problem {
    Unknown,
    TooMuch,
}

fn bound<T: Default + PartialEq>(
    text: &str,
    expected: &str,
    zero: &str,
    parse: impl FnOnce(&str) -> Result<T, Problem>,
) -> Result<Bound<T>, String> {
    let parsed = match text {
        "none" | "unlimited" => return Ok(Bound::Unlimited),
        "" => Err(Problem::Unknown),
        text => parse(text),
    };
    match parsed {
        Ok(value) if value == T::default() => Err(zero.to_string()),
        Ok(value) => Ok(Bound::At(value)),
        Err(Problem::TooMuch) => Err("it is more than can be counted: write 'none' for no limit".to_string()),
        Err(Problem::Unknown) if text.starts_with('-') => Err("it is negative".to_string()),
        Err(Problem::Unknown) => Err(format!("it is {expected}")),
    }
}

/// The decimal number that a text begins with, in billionths, and the rest of the text.
fn number(text: &str) -> Option<(u128, &str)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits(after)),
        None => ("0", rest),
    };
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    // Twenty digits overflow every unit; more would overflow the billionths.
    let whole: u128 = if whole.len() > 20 { u128::from(u64::MAX) } else { whole.parse().ok()? };
    let parts = format!("{fraction:0<9}").parse::<u128>().ok()?;
    Some((whole.checked_mul(PARTS)?.checked_add(parts)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_usual_spelling() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("4096B", 4096),
            ("64K", 65_536),
            ("64k", 65_536),
            ("1MiB", 1 << 20),
            ("1M", 1 << 20),
            ("1MB", 1 << 20),
            ("1.5m", 3 << 19),
            ("2G", 2 << 30),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(size(text), Ok(Bound::At(bytes)), "{text}");
        }
        assert_eq!(size("none"), Ok(Bound::Unlimited));
        assert_eq!(size("unlimited"), Ok(Bound::Unlimited));
    }

    #[test]
    fn durations_in_every_usual_spelling() {
        for (text, milliseconds) in [
            ("30", 30_000),
            ("90s", 90_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("1m30s", 90_000),
            ("1h1ms", 3_600_001),
            ("1.5s", 1500),
            ("0.5", 500),
        ] {
            assert_eq!(duration(text), Ok(Bound::At(Duration::from_millis(milliseconds))), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        for text in
            ["", " ", "x", "1X", "1 M", "M", "0x10", "1e3", "1.", ".5", "1.5.5", "1,5", "+1", "1\0", "1é"]
        {
            assert!(size(text).is_err_and(|why| why.contains("no size")), "{text}");
            assert!(duration(text).is_err_and(|why| why.contains("no duration")), "{text}");
            assert!(count(text).is_err_and(|why| why.contains("no number")), "{text}");
        }
        for text in ["30s1m", "1m1m", "5 s", "1m30", "s"] {
            assert!(duration(text).is_err_and(|why| why.contains("no duration")), "{text}");
        }
        let huge = "9".repeat(500);
        for text in [&huge, "99999999999999999999", "9223372036854775808"] {
            assert!(size(text).is_err_and(|why| why.contains("more than can be counted")), "{text}");
            assert!(duration(text).is_err_and(|why| why.contains("more than can be counted")), "{text}");
            assert!(count(text).is_err_and(|why| why.contains("more than can be counted")), "{text}");
        }
        assert!(size("18446744073709551615T").is_err_and(|why| why.contains("more than can be counted")));
        for text in ["0", "0K", "0.0", "0.1B"] {
            assert!(size(text).is_err_and(|why| why.contains("zero")), "{text}");
        }
        assert!(duration("0s").is_err_and(|why| why.contains("zero")));
        assert!(count("-1").is_err_and(|why| why.contains("negative")));
        assert!(size("-1M").is_err_and(|why| why.contains("negative")));
    }
}
