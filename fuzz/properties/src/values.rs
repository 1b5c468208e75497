//! Durations, sizes, counts, ports and addresses, as in flags and profiles.

use sbx::cli::why;
use sbx::hosts::HostRule;
use sbx::profile::units::{self, Bound};

use super::assert_line;
use std::time::Duration;

/// Input: a text. A refused text gives a one-line reason. An accepted one has the value that it says, and the value
/// reads back from the way it is shown.
pub fn values(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    checked(units::size(text), |bytes| size(text) == Some(*bytes), |bytes| units::size(&bytes.to_string()));
    let shown = |time: &Duration| units::duration(&units::exactly(*time));
    checked(units::duration(text), |time| duration(text) == Some(*time), shown);
    let counted = |count: &u64| {
        text.bytes().all(|b| b.is_ascii_digit()) && text.trim_start_matches('0') == count.to_string()
    };
    checked(units::count(text), counted, |count| units::count(&count.to_string()));
    for parse in [HostRule::parse, HostRule::parse_denial] {
        match parse(text) {
            Ok(rule) => {
                let shown = rule.to_string();
                assert_line(&shown);
                assert_eq!(parse(&shown).as_ref(), Ok(&rule));
                assert!(shown.is_ascii() && rule.covers(&rule), "{shown}");
            }
            Err(wrong) => assert!(!wrong.to_string().is_empty()),
        }
    }
    if let Some(number) = why::number(data) {
        let shown = format!("{number:#x}");
        assert_eq!(why::number(shown.as_bytes()), Some(number));
        assert_eq!(why::number(number.to_string().as_bytes()), Some(number));
    }
}

fn checked<T: PartialEq + std::fmt::Debug>(
    parsed: Result<Bound<T>, String>,
    means: impl Fn(&T) -> bool,
    again: impl Fn(&T) -> Result<Bound<T>, String>,
) {
    match parsed {
        Err(why) => assert_line(&why),
        Ok(Bound::Unlimited) => {}
        Ok(Bound::At(value)) => {
            assert!(means(&value), "{value:?}");
            assert_eq!(again(&value), Ok(Bound::At(value)));
        }
    }
}

/// A number such as `12.5` times a unit, rounded down.
fn times(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = [whole, fraction].concat();
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(digits.parse::<u128>().ok()?.checked_mul(unit)? / scale)
}

fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    let power = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        letter => "kmgt".find(letter)? + 1,
    };
    times(number, 1 << (10 * power)).and_then(|bytes| u64::try_from(bytes).ok())
}

fn duration(text: &str) -> Option<Duration> {
    let mut total = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c| !is_number(c)).unwrap_or(rest.len()));
        let (unit, tail) = tail.split_at(tail.find(is_number).unwrap_or(tail.len()));
        let nanoseconds: u128 = match unit {
            "ms" => 1_000_000,
            "s" | "" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        total += times(number, nanoseconds)?;
        rest = tail;
    }
    Some(Duration::from_nanos(u64::try_from(total).ok()?))
}
