//! A profile without one of its entries: a run here may be refused for one, and the others are reviewed all the same.

use crate::profile::{Origin, Profile};

/// Every profile that lacks one thing, with its place, what concerns the whole run first. Entries of built-in profiles
/// stay.
pub fn of(profile: &Profile) -> Vec<(String, Profile)> {
    let mut all = Vec::new();
    if let Some(require) = &profile.require {
        all.push((require.origin.to_string(), Profile { require: None, ..profile.clone() }));
    }
    macro_rules! without_each {
        ($($section:ident $list:ident,)*) => {$({
            let origins = profile.$section.$list.iter().map(|entry| &*entry.origin).enumerate();
            for (place, origin) in origins.filter(|(_, origin)| !origin.built_in) {
                let mut less = profile.clone();
                less.$section.$list.to_mut().remove(place);
                all.push((origin.to_string(), less));
            }
        })*};
    }
    without_each! {
        network connect, network deny, network bind, network unix, commands allow, commands block,
        paths read, paths execute, paths write, paths deny, paths protect, home stores,
    }
    macro_rules! without_all {
        ($($section:ident $list:ident,)*) => {$({
            let is_own = |origin: &Origin| !origin.built_in;
            if let Some(first) = profile.$section.$list.iter().find(|entry| is_own(&entry.origin)) {
                let mut less = profile.clone();
                less.$section.$list.to_mut().retain(|entry| !is_own(&entry.origin));
                all.push((format!("{} of profile '{}'", first.origin.key, first.origin.profile), less));
            }
        })*};
    }
    without_all! { network connect, network deny, network bind, paths protect, paths deny, }
    all
}
