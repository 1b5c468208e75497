//! Sizes and durations as people write them: `64M`, `90s`.

use std::time::Duration;

/// A number of bytes: `4096`, `64K`, `10M`, `2G` (powers of 1024; `KiB` and `KB` are taken for `K`).
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A time: `30` and `30s` are seconds; `500ms`, `5m`, `2h`.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        "d" => seconds(86_400),
        _ => None,
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}
