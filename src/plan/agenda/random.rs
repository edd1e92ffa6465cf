//! Chance that can be repeated: the same seed gives the same numbers.

/// A small generator (SplitMix64), which can be split into independent ones.
#[derive(Debug, Clone)]
pub struct Random(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// A generator for this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// A number below `bound`; 0 when there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below anything that is looked at here.
        self.draw().checked_rem(bound).unwrap_or(0)
    }

    /// A generator of its own for whatever has this name: it does not depend on what else is drawn.
    #[must_use]
    pub fn split(&self, name: &str) -> Self {
        Self(name.bytes().fold(mixed(self.0 ^ GOLDEN), |seed, byte| mixed(seed ^ u64::from(byte))))
    }
}

fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_repeatable_and_split_by_name() {
        let draw = |mut random: Random| (0..4000).map(|_| random.below(4)).collect::<Vec<_>>();
        let random = Random::new(7);
        assert_eq!(draw(random.clone()), draw(random.clone()));
        for value in 0..4 {
            let count = draw(random.clone()).iter().filter(|drawn| **drawn == value).count();
            assert!((900..1100).contains(&count), "{value} came {count} times");
        }
        assert_ne!(draw(random.split("a")), draw(random.split("b")));
        assert_ne!(draw(random.split("a")), draw(random.clone()));
        assert_eq!(Random::new(1).below(0), 0);
    }
}
