//! Policies of other tools: importing them, and exporting what they make.

use super::profile::load;
use super::{assert_line, is_harmless};
use sbx::host::Host;
use sbx::host::landlock::Version;
use sbx::plan::calls;
use sbx::plan::network;
use sbx::profile::foreign::Losses;
use sbx::profile::foreign::languages::{LANGUAGES, Language};
use sbx::profile::{self, Profile, Variables};
use sbx::request::Request;
use std::ffi::OsStr;

/// Declares a property for each language.
macro_rules! imports {
    ($($name:ident)*) => {$(
        #[doc = concat!("Input: a document in the language `", stringify!($name), "`. What holds, `imported` says.")]
        pub fn $name(text: &[u8]) {
            imported(stringify!($name), text);
        }
    )*};
}

imports! { spo systemd srt claude codex cursor }

/// A refused document gives a one-line message. An accepted one makes a profile that can be read and shown, whose
/// network can be had, and that can be written in another language. What is written as a unit can be read again.
fn imported(word: &str, text: &[u8]) {
    let language = Language::named(word).expect("it is one of the languages");
    match language.import(OsStr::new("x"), text, &Variables::default()).expect("profiles are made of it") {
        Err(error) => assert_line(&error.to_string()),
        Ok(imported) => {
            imported.losses.lines().iter().for_each(|line| assert_line(line));
            let made = imported.document.to_string();
            let profile = load(made.as_bytes()).unwrap_or_else(|error| panic!("{error}: {made}"));
            let shown = profile::human(&profile);
            assert!(shown.lines().all(|line| line.chars().all(is_harmless)), "{shown:?}");
            has_a_network(&profile, &made);
            // One language an input: each takes longer than all of the rest.
            let written: Vec<_> = LANGUAGES.iter().filter(|language| language.is_written()).collect();
            let sum =
                text.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
            write(&profile, written[sum % written.len()]);
        }
    }
}

/// No rule about hosts is one that never applies.
fn has_a_network(profile: &Profile, made: &str) {
    let asked = network::asked(&Request::default(), profile, &Host::of_this_process(), Version::UNIX);
    if let Err(error) = asked {
        let why = error.to_string();
        assert!(why.contains("ports together"), "{why}: {made}");
    }
}

fn write(profile: &Profile, to: &Language) {
    let mut losses = Losses::default();
    // A filter may have no room for all conditions.
    let Ok(text) = calls::alone(profile, &mut losses, |exported, losses| to.export(exported, losses)) else {
        return;
    };
    let text = text.expect("profiles are written in it");
    losses.lines().iter().for_each(|line| assert_line(line));
    if to.word == "systemd" {
        let again =
            to.import(OsStr::new("y"), &text, &Variables::default()).expect("profiles are made of it");
        let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
        load(again.document.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{error}: {}", again.document));
    }
}
