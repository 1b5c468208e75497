//! Order statistics and a random generator for the order of a round.

use std::time::Duration;

/// Samples in ascending order.
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The value below which `percent` of the samples lie (nearest rank); 0 when there is none.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50.0)
    }
}

/// The ratio of each sample to the base's sample of the same round.
pub(crate) fn ratios(samples: &[f64], base: &[f64]) -> Sorted {
    Sorted::new(samples.iter().zip(base).filter(|(_, b)| **b > 0.0).map(|(s, b)| s / b).collect())
}

/// Events per second; 0 when no time has passed.
pub(crate) fn rate(events: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { events as f64 / elapsed.as_secs_f64() }
}

/// SplitMix64: small, and the same everywhere for one seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fisher and Yates; the bias of the remainder does not matter for a handful of entries.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = (self.next() % (last as u64 + 1)) as usize;
            items.swap(last, other);
        }
    }
}

/// A seed from the clock, for when none was asked for.
pub(crate) fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |elapsed| elapsed.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_nearest_rank() {
        let sorted = Sorted::new((1..=100).rev().map(f64::from).collect());
        assert_eq!((sorted.percentile(10.0), sorted.median(), sorted.percentile(99.0)), (10.0, 50.0, 99.0));
        assert_eq!(sorted.min(), 1.0);
        assert_eq!(Sorted::new(vec![]).median(), 0.0);
    }

    #[test]
    fn ratios_stay_inside_their_round() {
        assert_eq!(ratios(&[2.0, 30.0, 4.0], &[1.0, 10.0, 2.0]).median(), 2.0);
    }

    #[test]
    fn rates_are_by_the_second() {
        assert_eq!(rate(300, Duration::from_millis(1500)), 200.0);
        assert_eq!(rate(300, Duration::ZERO), 0.0);
    }

    #[test]
    fn shuffling_keeps_everything_and_repeats_by_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u8> = (0..9).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        let mut once = shuffled(7);
        assert_eq!(once, shuffled(7));
        once.sort_unstable();
        assert_eq!(once, (0..9).collect::<Vec<u8>>());
    }
}
