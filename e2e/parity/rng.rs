//! Random choices that a seed repeats.

/// SplitMix64.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        let span = u64::try_from(i64::from(high) - i64::from(low) + 1).unwrap_or(1);
        let step = i64::try_from(self.next() % span).unwrap_or_default();
        i32::try_from(i64::from(low) + step).unwrap_or(high)
    }
    pub fn percent(&mut self, chance: i32) -> bool {
        self.between(1, 100) <= chance
    }
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let last = i32::try_from(from.len()).ok()?.checked_sub(1).filter(|last| *last >= 0)?;
        from.get(usize::try_from(self.between(0, last)).ok()?)
    }
}

/// Cards in given shares, drawn in random order: no share is left to chance.
pub struct Deck<T> {
    cards: Vec<T>,
    left: Vec<T>,
}

impl<T: Copy> Deck<T> {
    pub fn new(shares: &[(T, usize)]) -> Self {
        let cards = shares.iter().flat_map(|(card, times)| std::iter::repeat_n(*card, *times)).collect();
        Self { cards, left: Vec::new() }
    }
    pub fn draw(&mut self, rng: &mut Rng) -> T {
        loop {
            let last = i32::try_from(self.left.len()).unwrap_or_default() - 1;
            if last >= 0 {
                let at = usize::try_from(rng.between(0, last)).unwrap_or_default();
                return self.left.swap_remove(at);
            }
            self.left.clone_from(&self.cards);
        }
    }
}
