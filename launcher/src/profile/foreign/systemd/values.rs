//! Values of directives: truth, sizes, times, and paths with specifiers.

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::systemd::unit::{Setting, is_blank, stripped};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// The cache of a run, as the export writes it.
const CACHE: &str = "/var/cache/sbx";

/// A truth value.
pub fn truth(setting: &Setting) -> Result<bool, ProfileCause> {
    maybe_truth(&setting.value)
        .ok_or_else(|| setting.wrong(format!("'{}' is neither yes nor no", Plain(&setting.value))))
}

/// The same of a text that may be something else.
pub fn maybe_truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

/// A size in bytes: a number with K, M, G, T, P or E behind it, in powers of 1024. `None` for `infinity`.
pub fn size(setting: &Setting) -> Result<Option<u64>, ProfileCause> {
    let text = &setting.value;
    if text == "infinity" {
        return Ok(None);
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match stripped(unit) {
        "" | "B" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        "P" => Some(50),
        "E" => Some(60),
        _ => None,
    };
    let value =
        digits.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    value.map(Some).ok_or_else(|| setting.wrong(format!("'{}' is no size in bytes, like 64M", Plain(text))))
}

/// A plain number. `None` for `infinity`. With a zero in front it would be one of another base to systemd.
pub fn count(setting: &Setting) -> Result<Option<u64>, ProfileCause> {
    let text = &setting.value;
    if text == "infinity" {
        return Ok(None);
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let value = text.parse::<u64>().ok().filter(|_| is_plain);
    value.map(Some).ok_or_else(|| setting.wrong(format!("'{}' is no number, like 1024", Plain(text))))
}

/// A time in milliseconds. `None` for `infinity`.
pub fn time(setting: &Setting) -> Result<Option<u64>, ProfileCause> {
    if setting.value == "infinity" {
        return Ok(None);
    }
    let wrong = || setting.wrong(format!("'{}' is no time, like '1min 30s'", Plain(&setting.value)));
    let mut total: u64 = 0;
    let mut rest = stripped(&setting.value);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, tail) = rest.split_at(end);
        let tail = tail.trim_start_matches(is_blank);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit = match unit {
            "ms" | "msec" => Some(1),
            "" | "s" | "sec" | "second" | "seconds" => Some(1000),
            "m" | "min" | "minute" | "minutes" => Some(60_000),
            "h" | "hr" | "hour" | "hours" => Some(3_600_000),
            "d" | "day" | "days" => Some(86_400_000),
            "w" | "week" | "weeks" => Some(604_800_000),
            _ => None,
        };
        let part = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = tail.trim_start_matches(is_blank);
    }
    if total == 0 { Err(wrong()) } else { Ok(Some(total)) }
}

/// A path, after its prefixes `-` and `+` were taken off. The error says why no profile can have it.
pub fn path(text: &str) -> Result<Location, String> {
    let (base, rest) = match text.strip_prefix("%h") {
        Some(rest) => (Some(Variable::Home), rest.to_string()),
        None => (None, text.to_string()),
    };
    let rest = expanded(&rest)?;
    let path = match base {
        Some(variable) => format!("${{{variable}}}{rest}"),
        None if rest.starts_with("${") => return Err(format!("'{}' is not absolute", Plain(text))),
        None => rest,
    };
    // `//` and `/./` say nothing.
    let parts = path.split('/').enumerate().filter(|(at, part)| *at == 0 || !matches!(*part, "" | "."));
    let mut tidy = parts.map(|(_, part)| part).collect::<Vec<_>>().join("/");
    if tidy.is_empty() && path.starts_with('/') {
        tidy.push('/');
    }
    // The old name of the same directory.
    if let Some(rest) = tidy.strip_prefix("/var/run").filter(|rest| rest.is_empty() || rest.starts_with('/'))
    {
        tidy = format!("/run{rest}");
    }
    // What the export writes for a run's cache.
    if let Some(rest) = tidy.strip_prefix(CACHE).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        tidy = format!("${{{}}}{rest}", Variable::Cache);
    }
    if tidy.contains('*') {
        return Err(format!("'{}' has a '*'", Plain(text)));
    }
    Location::path(tidy.into()).map_err(|mistake| mistake.to_string())
}

/// Replaces the specifiers of directories (systemd.unit(5)) by those of the system's own services.
fn expanded(text: &str) -> Result<String, String> {
    let mut whole = String::new();
    let mut parts = text.split('%');
    whole.push_str(parts.next().unwrap_or(""));
    while let Some(part) = parts.next() {
        let mut chars = part.chars();
        let replaced = match chars.next() {
            // Two in a row are one.
            None => {
                whole.push('%');
                whole.push_str(parts.next().unwrap_or(""));
                continue;
            }
            Some('C') => "/var/cache",
            Some('E') => "/etc",
            Some('L') => "/var/log",
            Some('S') => "/var/lib",
            Some('t') => "/run",
            Some('T') => "/tmp",
            Some('V') => "/var/tmp",
            Some(other) => {
                return Err(format!(
                    "'{}': what %{} stands for is not known beforehand",
                    Plain(text),
                    Plain(&other.to_string())
                ));
            }
        };
        whole.push_str(replaced);
        whole.push_str(chars.as_str());
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(value: &str) -> Setting {
        Setting { line: 1, name: "X".into(), value: value.into() }
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(size(&setting("64M")).unwrap(), Some(64 << 20));
        assert_eq!(size(&setting("infinity")).unwrap(), None);
        assert!(size(&setting("50%")).is_err() && size(&setting("99999999E")).is_err());
        assert_eq!(time(&setting("1min 30s")).unwrap(), Some(90_000));
        assert_eq!(time(&setting("5")).unwrap(), Some(5000));
        assert_eq!(time(&setting("infinity")).unwrap(), None);
        assert!(time(&setting("soon")).is_err() && time(&setting("")).is_err());
        assert_eq!(size(&setting("64 M")).unwrap(), Some(64 << 20));
        assert_eq!(time(&setting("1 min\t30 s")).unwrap(), Some(90_000));
        assert!(size(&setting("64\u{a0}M")).is_err() && time(&setting("1\u{a0}min")).is_err());
        assert!(time(&setting("1min\u{a0}30s")).is_err() && time(&setting("1min\u{a0}")).is_err());
    }

    #[test]
    fn counts_have_none() {
        let of = |value: &str| count(&setting(value)).ok();
        assert_eq!((of("1024"), of("0"), of("infinity")), (Some(Some(1024)), Some(Some(0)), Some(None)));
        for wrong in ["", "1K", "0x10", "010", "+5", "64 ", "no", "99999999999999999999"] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn paths_have_specifiers() {
        let shown = |text: &str| path(text).map_or_else(|why| why, |location| location.to_string());
        assert_eq!(shown("/var//lib/./x/"), "/var/lib/x");
        assert_eq!(shown("/"), "/");
        assert_eq!(shown("%S/x"), "/var/lib/x");
        assert_eq!(shown("%h/.cache"), "${HOME}/.cache");
        assert_eq!(shown("%C/sbx/x"), "${CACHE}/x");
        assert_eq!(shown("%C/sbxes"), "/var/cache/sbxes");
        assert_eq!((&*shown("/var/run/x"), &*shown("/var/runs")), ("/run/x", "/var/runs"));
        assert_eq!(shown("/a%%b"), "/a%b");
        assert!(shown("/run/%i").contains("%i"));
        assert!(shown("x").contains("neither absolute"));
        assert!(shown("${HOME}").contains("not absolute"));
        assert!(shown("/a/../b").contains("'..'"));
        assert!(shown("/a/*").contains("'*'"));
    }
}
