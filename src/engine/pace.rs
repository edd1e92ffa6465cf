//! How many requests a second the controller sends.
//!
//! Watches and the lease are not in it: a watch is one request for a long time, and a lease that waited behind what
//! it protects would be lost just when there is most to do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

/// Requests a second, with a burst of twice as many after a while of silence. Without a limit by default. Clones
/// share it.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    limit: Option<Arc<Limit>>,
}

#[derive(Debug)]
struct Limit {
    /// The time that one request takes up.
    each: Duration,
    /// The time that a burst takes up.
    burst: Duration,
    /// Until when all time is taken up.
    taken: Mutex<Instant>,
}

impl Pace {
    /// So many requests a second; none is no limit.
    #[must_use]
    pub fn of(a_second: u32) -> Self {
        let Some(each) = Duration::from_secs(1).checked_div(a_second) else { return Self::default() };
        let limit = Limit { each, burst: each * a_second * 2, taken: Mutex::new(Instant::now()) };
        limit.rest();
        Self { limit: Some(Arc::new(limit)) }
    }

    /// Waits for the turn of so many requests, in the order of asking. False after `patience` when it would come still
    /// later: what was decided so long ago is to be decided anew.
    pub async fn turn(&self, requests: u32, patience: Duration) -> bool {
        let Some(limit) = &self.limit else { return true };
        let turn = limit.take(requests, Instant::now() + patience);
        match turn {
            Some(at) => sleep_until(at).await,
            None => sleep(patience).await,
        }
        turn.is_some()
    }
}

impl Limit {
    /// As after a long silence.
    fn rest(&self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.checked_sub(self.burst).unwrap_or(*taken);
    }

    /// The instant at which so many may be sent, unless it is later than the latest.
    fn take(&self, requests: u32, latest: Instant) -> Option<Instant> {
        let now = Instant::now();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = now.checked_sub(self.burst).map_or(*taken, |rested| rested.max(*taken));
        let until = rested + self.each * requests;
        if until > latest {
            return None;
        }
        *taken = until;
        Some(until.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    /// Seconds from the start until each of so many turns.
    async fn turns(pace: &Pace, count: usize) -> Vec<f32> {
        let start = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..count {
            assert!(pace.turn(1, PATIENCE).await);
            turns.push(start.elapsed().as_secs_f32());
        }
        turns
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_twice_as_many_and_then_one_after_the_other() {
        tokio::time::advance(Duration::from_mins(1)).await;
        let pace = Pace::of(2);
        assert_eq!(turns(&pace, 6).await, [0.0, 0.0, 0.0, 0.0, 0.5, 1.0]);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(turns(&pace, 3).await, [0.0, 0.0, 0.5], "a second of silence makes up for two");
        sleep(Duration::from_mins(1)).await;
        assert_eq!(turns(&pace.clone(), 5).await, [0.0, 0.0, 0.0, 0.0, 0.5], "never more than the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn whose_turn_does_not_come_soon_gives_up_and_takes_up_nothing() {
        tokio::time::advance(Duration::from_mins(1)).await;
        let (pace, start) = (Pace::of(1), Instant::now());
        assert!(pace.turn(2, PATIENCE).await && start.elapsed().is_zero());
        assert!(!pace.turn(4, PATIENCE).await);
        assert_eq!(start.elapsed(), PATIENCE, "at once, it would be asked for again at once");
        assert!(pace.turn(2, PATIENCE).await && start.elapsed() == PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nobody_waits() {
        for pace in [Pace::default(), Pace::of(0)] {
            assert_eq!(turns(&pace, 1000).await, vec![0.0; 1000]);
        }
    }
}
