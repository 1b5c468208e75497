//! Copies of files of settings.

use sbx::plan::settings_copy::filtered;
use sbx::profile::{Pattern, SettingsFormat};

/// Input: a file of settings. Whatever its format, a copy of the copy is the same, and so is a copy by more patterns. No
/// copy has a line of its own for what is not kept.
pub fn settings(text: &[u8]) {
    let keep = |patterns: &[&str]| -> Vec<Pattern> {
        patterns.iter().map(|pattern| Pattern::new(pattern.to_string().into())).collect()
    };
    let (some, all) = (keep(&["kept*", "*.kept"]), keep(&["*"]));
    for format in [SettingsFormat::Git, SettingsFormat::Ini, SettingsFormat::Npm, SettingsFormat::Toml] {
        let Ok(copy) = filtered(format, &some, text) else { continue };
        assert_eq!(filtered(format, &some, &copy).as_ref(), Ok(&copy), "{format:?}");
        assert_eq!(filtered(format, &all, &copy).as_ref(), Ok(&copy), "{format:?}");
        assert_eq!(filtered(format, &[], text), Ok(Vec::new()), "{format:?}");
        assert!(!copy.iter().any(|byte| matches!(byte, 0 | b'\r')), "{format:?}");
        let whole = filtered(format, &all, text).unwrap_or_default();
        let longest = |copy: &[u8]| copy.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
        assert!(copy.len() <= whole.len() && longest(&copy) <= longest(&whole), "{format:?}");
    }
}
