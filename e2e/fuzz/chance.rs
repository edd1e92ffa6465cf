//! Draws from a seed.

use std::time::Duration;

use drainplan::plan::Random;

/// A generator with the draws that scenarios need.
pub struct Chance(Random);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// A number from `least` to `most`, both included.
    pub fn number(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most.saturating_sub(least) + 1)
    }

    pub fn count(&mut self, least: u64, most: u64) -> usize {
        usize::try_from(self.number(least, most)).unwrap_or(0)
    }

    pub fn int(&mut self, least: u32, most: u32) -> i32 {
        i32::try_from(self.number(u64::from(least), u64::from(most))).unwrap_or(0)
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(usize::try_from(self.0.below(of.len() as u64)).ok()?)
    }

    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.number(least, most))
    }
}
