//! Conditions as the named restrictions of a profile, where they say the same. A name is what the rest of a run knows:
//! the loader's needs, the supervisor, reports. A document that was made of a profile becomes that profile again.

use sbx_policy::calls::Call;
use sbx_policy::restrictions::{self, Condition, RESTRICTIONS};

use crate::profile::foreign::oci::cubes::{self, Cube, TooMany};

/// Restrictions by their names, and the conditions that none of them covers. Together they hold exactly when the
/// alternatives did.
pub fn recognised(call: Call, alternatives: Vec<Vec<Condition>>) -> (Vec<&'static str>, Vec<Vec<Condition>>) {
    match of_cubes(call, &alternatives) {
        Ok((names, kept)) => {
            let mut kept = kept.into_iter();
            let rest = alternatives.into_iter().filter(|_| kept.next().unwrap_or(true)).collect();
            (names, rest)
        }
        Err(TooMany) => (Vec::new(), alternatives),
    }
}

/// The names, and which alternatives stay.
fn of_cubes(call: Call, alternatives: &[Vec<Condition>]) -> Result<(Vec<&'static str>, Vec<bool>), TooMany> {
    let each: Vec<Vec<Cube>> =
        alternatives.iter().map(|all| cubes::of_all(std::slice::from_ref(all))).collect::<Result<_, _>>()?;
    let whole = each.concat();
    if whole.len() > cubes::MOST {
        return Err(TooMany);
    }
    let mut known = Vec::new();
    for place in restrictions::of_call(call) {
        let Some(restriction) = RESTRICTIONS.get(place) else { continue };
        let any: Vec<Vec<Condition>> = restriction.any.iter().map(|all| all.to_vec()).collect();
        let set = cubes::of_all(&any)?;
        // Nothing that the document does not say. One for which that takes too long to tell is another one.
        if cubes::minus(set.clone(), &whole).is_ok_and(|more| more.is_empty()) {
            known.push((restriction.name, set));
        }
    }
    let (mut names, mut said) = (Vec::new(), Vec::new());
    let mut kept = vec![true; each.len()];
    // The widest first: it says what narrower ones would.
    while !known.is_empty() {
        let mut widest = 0;
        for at in 1..known.len() {
            if cubes::minus(known[widest].1.clone(), &known[at].1)?.is_empty() {
                widest = at;
            }
        }
        let (name, set) = known.swap_remove(widest);
        let with: Vec<Cube> = [&said[..], &set[..]].concat();
        let mut says_more = false;
        for (keeps, cubes) in kept.iter_mut().zip(&each) {
            if *keeps && cubes::minus(cubes.clone(), &with)?.is_empty() {
                (*keeps, says_more) = (false, true);
            }
        }
        if says_more {
            names.push(name);
            said = with;
        }
    }
    names.sort_unstable();
    Ok((names, kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sbx_policy::restrictions::{Op, Width};

    fn masked(arg: u8, mask: u64, value: u64) -> Condition {
        Condition { arg, width: Width::Qword, op: Op::MaskedEq(mask), value }
    }

    fn of(call: &str, alternatives: &[&[Condition]]) -> (Vec<&'static str>, usize) {
        let call = Call::named(call.as_bytes()).unwrap();
        let (names, rest) = recognised(call, alternatives.iter().map(|all| all.to_vec()).collect());
        (names, rest.len())
    }

    #[test]
    fn what_a_restriction_says_gets_its_name_and_nothing_wider_does() {
        let no_set_id = masked(1, 0o6000, 0);
        assert_eq!(of("chmod", &[&[no_set_id]]), (vec!["no-setid"], 0));
        // In two halves.
        let (low, high) = (masked(1, 0o6001, 0), masked(1, 0o6001, 1));
        assert_eq!(of("chmod", &[&[low], &[high]]), (vec!["no-setid"], 0));
        assert_eq!(of("chmod", &[&[low]]), (vec![], 1));
        // Beside something else.
        let owner = masked(1, u64::MAX, 0o6755);
        assert_eq!(of("chmod", &[&[no_set_id], &[owner]]), (vec!["no-setid"], 1));
        // Wider than any name: the conditions say it all.
        assert_eq!(of("chmod", &[&[masked(1, 0o4000, 0)]]), (vec![], 1));
        assert_eq!(of("getpid", &[&[no_set_id]]), (vec![], 1));
    }

    #[test]
    fn every_restriction_is_recognised_by_its_conditions() {
        for restriction in RESTRICTIONS {
            let call = Call::named(restriction.call.as_bytes()).unwrap();
            let all: Vec<_> = restriction.any.iter().map(|all| all.to_vec()).collect();
            let cubes = cubes::of_all(&all).unwrap();
            let as_written: Vec<Vec<Condition>> = cubes
                .iter()
                .map(|cube| {
                    cube.comparisons().map(|(arg, mask, value)| masked(arg as u8, mask, value)).collect()
                })
                .collect();
            let (names, rest) = recognised(call, as_written);
            assert!(
                rest.is_empty() && !names.is_empty(),
                "{}[{}]: {rest:?}",
                restriction.call,
                restriction.name
            );
        }
    }
}
