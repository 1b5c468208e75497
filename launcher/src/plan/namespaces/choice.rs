//! Which namespaces a run has: a view of its own (mounts, processes, the host name) and a network of its own. Each is
//! there or not by itself.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::profile::{HomeMode, Level, Namespaces, NetworkMode, Profile};
use crate::request::Request;

/// Whether a run is to have something of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is.
    Made,
    /// It is not, for this reason.
    None(String),
}

impl Choice {
    fn unless(why: Option<String>) -> Choice {
        why.map_or(Choice::Made, Choice::None)
    }
}

/// What a run has of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Its view.
    pub view: Choice,
    /// Its network; `None` where none is asked for.
    pub network: Option<Choice>,
}

/// Namespaces that a machine does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Those of a view, or the mounts in them.
    View,
    /// That of a network.
    Network,
    /// Neither.
    Both,
}

/// What the machine did not give when it was tried, with the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unavailable {
    /// A view of the run's own.
    pub view: Option<String>,
    /// A network of the run's own.
    pub network: Option<String>,
    /// Overlays, in which stores are changed.
    pub overlays: Option<String>,
}

impl Unavailable {
    /// Notes what else is missing.
    pub fn add(&mut self, missing: Missing, why: &str) {
        if missing != Missing::Network {
            self.view.get_or_insert_with(|| why.to_string());
        }
        if missing != Missing::View {
            self.network.get_or_insert_with(|| why.to_string());
        }
    }

    /// Notes that overlays are missing.
    pub fn add_overlays(&mut self, why: &str) {
        self.overlays.get_or_insert_with(|| why.to_string());
    }
}

/// What the choice depends on besides flags and profile.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Landlock's version here.
    pub landlock: Version,
    /// Whether an `sbx` confines this process.
    pub nested: bool,
    /// The network.
    pub network: NetworkMode,
    /// Whether there is another way to what the run wants a network of its own for.
    pub has_other_way: bool,
    /// Whether the calling process confines itself.
    pub itself: bool,
    /// What the machine did not give.
    pub unavailable: &'a Unavailable,
}

/// Which namespaces a run has; an error where it needs some and cannot have them.
pub fn choose(request: &Request, profile: &Profile, asked: Asked<'_>) -> Result<Choices, Refusal> {
    let by_profile = profile.namespaces.as_deref();
    let private = asked.network == NetworkMode::Private;
    let needs_network = private && !asked.has_other_way;
    let needs_home = !matches!(request.home, None | Some(HomeMode::Closed));
    let full = request.require == Some(Level::Full) || profile.require.as_deref() == Some(&Level::Full);
    // Who asks for a network of the run's own gets the view as well, unless the profile says that it has none.
    let wants_network =
        private || (asked.network == NetworkMode::Loopback && by_profile != Some(&Namespaces::None));
    let wished = match request.namespaces {
        Some(Namespaces::Auto) => true,
        Some(Namespaces::None) => false,
        None => by_profile == Some(&Namespaces::Auto),
    };
    let without = || Some(format!("profile '{}' does without", profile.name));
    let obstacle = |wanted: bool| match obstacle(request, profile, asked) {
        Some(Obstacle::Always(why)) => Some(why),
        _ if !wanted => without(),
        Some(Obstacle::OfThisRun(why)) => Some(why),
        None => None,
    };
    let unavailable = asked.unavailable;
    let small = || (asked.landlock < Version::FILES).then(|| ADD_LITTLE.to_string());
    let view = obstacle(wished || full || wants_network || needs_home).or_else(small);
    let view = Choice::unless(view.or_else(|| unavailable.view.clone()));
    let network = matches!(asked.network, NetworkMode::Private | NetworkMode::Loopback);
    let network = network.then(|| obstacle(wants_network).or_else(|| unavailable.network.clone()));
    let network = network.map(Choice::unless);
    let needed = [
        (network.as_ref().filter(|_| needs_network), "a network of the run's own"),
        (Some(&view).filter(|_| needs_home), "a home of the run's own"),
        (Some(&view).filter(|_| full), "level 'full'"),
    ];
    let missing = needed.into_iter().find_map(|(choice, need)| match choice {
        Some(Choice::None(why)) => Some((why, need)),
        _ => None,
    });
    match missing {
        Some((why, need)) => Err(Refusal::new(format!(
            "cannot make namespaces, which {need} needs: {why}; 'sbx status' tells more"
        ))),
        None => Ok(Choices { view, network }),
    }
}

/// Why a run has no namespaces at all.
enum Obstacle {
    /// Whatever it wishes.
    Always(String),
    /// For want of what this run would need for them.
    OfThisRun(String),
}

fn obstacle(request: &Request, profile: &Profile, asked: Asked<'_>) -> Option<Obstacle> {
    let always = if asked.itself {
        Some(ITSELF)
    } else if profile.is_unrestricted() {
        Some("the run is unconfined, as requested")
    } else if request.namespaces == Some(Namespaces::None) {
        Some("--namespaces none asks for that")
    } else {
        None
    };
    let of_this_run = || {
        if request.exec {
            Some("--exec leaves no process that could be the first in them")
        } else if request.keep_background {
            Some("--keep-background leaves processes behind, and these end with their namespace")
        } else if asked.nested {
            Some("a sandbox of sbx around this process refuses them")
        } else {
            None
        }
    };
    let always = always.map(|why| Obstacle::Always(why.to_string()));
    always.or_else(|| of_this_run().map(|why| Obstacle::OfThisRun(why.to_string())))
}

/// Why a process that confines itself has none.
const ITSELF: &str = "a process that confines itself stays where it is";
/// Why a run without path rules has no view of its own.
pub const ADD_LITTLE: &str = "without Landlock they would add little";
