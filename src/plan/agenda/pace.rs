//! When to try again what has failed.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::Random;

/// What is done one at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Task {
    /// Writing the status of the plan of that uid.
    Status(String),
    /// Changing the finalizers of the plan of that uid.
    Finalizer(String),
    /// Patching the node of that name.
    Node(String),
    /// Listing the pods of the node of that name.
    List(String),
    /// Listing the plans.
    Plans,
    /// Reading the scale of the owner of that uid.
    Scale(String),
    /// Asking for the right to evict in the namespace of that name; in all of them without a name.
    Right(String),
}

/// Which tasks are under way, and which failed ones wait. Times are counted from the start of the process.
#[derive(Debug, Default)]
pub struct Tasks {
    states: HashMap<Task, State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    UnderWay { failures: u32 },
    Waits { failures: u32, until: Duration },
}

/// The first and the longest wait after a failure.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(15);

impl Tasks {
    /// Marks the task as under way; false when it is already, or has failed a short time ago.
    pub fn begin(&mut self, task: Task, now: Duration) -> bool {
        let failures = match self.states.get(&task) {
            Some(State::UnderWay { .. }) => return false,
            Some(State::Waits { until, .. }) if *until > now => return false,
            Some(State::Waits { failures, .. }) => *failures,
            None => 0,
        };
        self.states.insert(task, State::UnderWay { failures });
        true
    }

    /// The task succeeded.
    pub fn done(&mut self, task: &Task) {
        self.states.remove(task);
    }

    /// The task failed: it may begin again after a while, which doubles each time.
    pub fn failed(&mut self, task: Task, now: Duration, random: &mut Random) {
        let failures = match self.states.get(&task) {
            Some(State::UnderWay { failures } | State::Waits { failures, .. }) => failures.saturating_add(1),
            None => 1,
        };
        let until = now + jittered(doubled(FIRST, failures, LONGEST), random);
        self.states.insert(task, State::Waits { failures, until });
    }

    /// When the next failed task may begin again.
    pub fn next(&self, now: Duration) -> Option<Duration> {
        let waits = self.states.values().filter_map(|state| match state {
            State::Waits { until, .. } if *until > now => Some(*until),
            _ => None,
        });
        waits.min()
    }

    /// Drops what nobody has asked for since its wait was over.
    pub fn forget_old(&mut self, now: Duration) {
        self.states.retain(|_, state| match state {
            State::UnderWay { .. } => true,
            State::Waits { until, .. } => *until + LONGEST > now,
        });
    }
}

/// Lets a few things happen in any second.
#[derive(Debug, Default)]
pub struct Few {
    /// The last times, oldest first.
    times: VecDeque<Duration>,
}

/// How many of them in a second.
const FEW: usize = 5;

impl Few {
    /// Whether one more may happen now.
    pub fn may(&self, now: Duration) -> bool {
        self.next().is_none_or(|at| at <= now)
    }
    /// It happens now.
    pub fn happens(&mut self, now: Duration) {
        self.times.push_back(now);
        if self.times.len() > FEW {
            self.times.pop_front();
        }
    }
    /// When the next one may happen, if it has to wait.
    pub fn next(&self) -> Option<Duration> {
        let oldest = self.times.front().filter(|_| self.times.len() == FEW)?;
        Some(*oldest + Duration::from_secs(1))
    }
}

/// `first` doubled for every failure after the first, at most `longest`.
pub fn doubled(first: Duration, failures: u32, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(20))).min(longest)
}

/// Up to a fifth longer, so that what failed together does not try again together.
pub fn jittered(wait: Duration, random: &mut Random) -> Duration {
    let thousandths = u32::try_from(random.below(200)).unwrap_or(0);
    wait + wait.mul_f64(f64::from(thousandths) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_under_way_once_and_waits_longer_after_each_failure() {
        let mut tasks = Tasks::default();
        let mut random = Random::new(1);
        let task = || Task::Node("node-a".to_owned());
        let start = Duration::ZERO;
        assert!(tasks.begin(task(), start));
        assert!(!tasks.begin(task(), start));
        tasks.failed(task(), start, &mut random);
        assert!(!tasks.begin(task(), start));
        let again = tasks.next(start).unwrap();
        assert!(again >= start + FIRST && again <= start + FIRST * 2);
        assert!(tasks.begin(task(), again));
        tasks.failed(task(), again, &mut random);
        assert!(tasks.next(again).unwrap() >= again + FIRST * 2);
        tasks.done(&task());
        assert!(tasks.begin(task(), again));
    }

    #[test]
    fn in_any_second_only_a_few_happen() {
        let mut few = Few::default();
        let at = Duration::from_millis;
        for time in [0, 0, 300, 400, 900] {
            assert!(few.may(at(time)));
            few.happens(at(time));
        }
        assert!(!few.may(at(999)) && few.next() == Some(at(1000)));
        few.happens(at(1000));
        few.happens(at(1000));
        assert!(!few.may(at(1299)) && few.may(at(1300)));
    }

    #[test]
    fn waits_are_bounded() {
        let mut random = Random::new(1);
        assert_eq!(doubled(FIRST, 1, LONGEST), FIRST);
        assert_eq!(doubled(FIRST, u32::MAX, LONGEST), LONGEST);
        assert!((0..1000).all(|_| jittered(LONGEST, &mut random) <= LONGEST.mul_f64(1.2)));
    }
}
