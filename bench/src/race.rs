//! The order in which contestants run.

use crate::options::Options;
use crate::stats::Random;

/// Runs every entry once a round, shuffled anew each round, so that no entry always follows the same neighbour and
/// slow moments of the machine affect all alike. `run_once` is told whether the round counts.
pub(crate) fn interleave<T>(
    entries: &mut [T],
    options: &Options,
    seed: u64,
    mut run_once: impl FnMut(&mut T, bool),
) {
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..entries.len()).collect();
    for round in 0..options.warm_up.saturating_add(options.rounds) {
        random.shuffle(&mut order);
        for &place in &order {
            if let Some(entry) = entries.get_mut(place) {
                run_once(entry, round >= options.warm_up);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_runs_in_every_round_and_warm_up_does_not_count() {
        let options = Options { rounds: 5, warm_up: 2, ..Options::default() };
        let mut runs = [(0, 0); 3];
        interleave(&mut runs, &options, 1, |(all, kept), keep| {
            *all += 1;
            *kept += u32::from(keep);
        });
        assert_eq!(runs, [(7, 5); 3]);
    }
}
