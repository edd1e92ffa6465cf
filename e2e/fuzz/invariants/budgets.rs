//! What evictions do to budgets: invariant 3, and that none is sent which the budget, as last seen, would refuse.

use std::collections::{BTreeMap, VecDeque};

use drainplan::budget::{recompute, scales_of};
use drainplan::cluster::{BudgetKey, Cluster, Scale, Text};
use drainplan::simulate::{Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::{Verdict, hold};

/// States of a budget that are older are not needed.
const KEPT: SignedDuration = SignedDuration::from_secs(60);
/// What a process has sent counts as in flight for so long after the answer; what its watch of budgets has not brought
/// by then it cannot know.
const IN_FLIGHT: SignedDuration = SignedDuration::from_secs(2);

/// One state of a budget.
struct State {
    at: Timestamp,
    /// Healthy pods beyond what is wanted, in truth.
    spare: i64,
    /// What the controller reports.
    allowed: i64,
    /// Healthy pods of ours that the server had let go by then.
    evicted: i64,
}

#[derive(Default)]
struct History {
    states: VecDeque<State>,
    evicted: i64,
    /// Evictions that were sent and not refused, by pod, with the life of a process that sent them.
    sent: BTreeMap<Text, (Timestamp, Life)>,
}

/// A process, and how often it was started.
type Life = (usize, u32);

/// An eviction on its way.
struct Sent {
    at: Timestamp,
    /// The process knew everything that was older.
    known: Timestamp,
    /// It could not read an owner's scale: then the reported allowance alone decides, and the message says so.
    blind: bool,
    by: Life,
}

#[derive(Default)]
pub struct Budgets {
    histories: BTreeMap<BudgetKey, History>,
    under_way: BTreeMap<Text, Sent>,
}

impl Budgets {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::EvictionSent { process, eviction } => {
                let Some(sender) = world.processes().get(*process) else { return Ok(()) };
                let by = (*process, sender.life());
                let known = sender.behind_since(world.now());
                let blind = eviction.spends.iter().any(|key| is_blind(sender.agenda().cluster(), key));
                self.under_way.insert(eviction.uid.clone(), Sent { at: world.now(), known, blind, by });
                for key in &eviction.spends {
                    let history = self.histories.entry(key.clone()).or_default();
                    history.sent.insert(eviction.uid.clone(), (world.now(), by));
                }
                Ok(())
            }
            Fact::Evicted { eviction, code, charged, healthy, .. } => {
                let Some(sent) = self.under_way.remove(&eviction.uid) else { return Ok(()) };
                match code {
                    201 if *healthy => self.let_go(world, &eviction.uid, charged.as_ref(), &sent),
                    429 => self.refused(world, &eviction.uid, &eviction.spends, &sent),
                    _ => Ok(()),
                }
            }
            Fact::EvictionConcluded { eviction, accepted: false, .. } => {
                for history in self.histories.values_mut() {
                    history.sent.remove(&eviction.uid);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A healthy pod was let go: its budget must have had one to spare, as far as the sender could know.
    fn let_go(&mut self, world: &World, uid: &Text, charged: Option<&BudgetKey>, sent: &Sent) -> Verdict {
        let Some(key) = charged else { return Ok(()) };
        let Some(history) = self.histories.get_mut(key) else { return Ok(()) };
        history.evicted += 1;
        let Some(spare) = spare(world, key) else { return Ok(()) };
        let knowable = history.states.iter().filter(|state| state.until_after(sent.known, &history.states));
        let best =
            knowable.filter(|state| state.at <= sent.at).map(|state| state.spare + state.evicted).max();
        let overdrawn = !sent.blind && spare < 0 && best.is_some_and(|best| history.evicted > best);
        hold("3 no budget is driven below its desired healthy count by us", !overdrawn, || {
            format!(
                "the eviction of {uid} leaves {}/{} {} healthy pods short; decided at {} knowing all before {}",
                key.namespace, key.name, -spare, sent.at, sent.known
            )
        })
    }

    /// The budget has refused: it must have looked otherwise to the sender.
    fn refused(&mut self, world: &World, uid: &Text, spends: &[BudgetKey], sent: &Sent) -> Verdict {
        // What was sent longer ago than the budget's events are late is not known to be in flight any more.
        if sent.at.duration_since(sent.known) >= IN_FLIGHT {
            return Ok(());
        }
        let [key] = spends else { return Ok(()) };
        let Some(history) = self.histories.get(key) else { return Ok(()) };
        let exhausted = world.store().cluster().budget(key).is_some_and(|budget| {
            budget.status.disruptions_allowed == 0 && budget.status.observed_generation >= budget.generation
        });
        // What was sent after a state is not in its numbers; what is still on its way from before may be.
        let since = |state: &State| {
            let mine =
                history.sent.values().filter(|(at, by)| *by == sent.by && *at > state.at && *at <= sent.at);
            i64::try_from(mine.count()).unwrap_or(i64::MAX)
        };
        let knowable = history.states.iter().filter(|state| state.until_after(sent.known, &history.states));
        let mut knowable = knowable.filter(|state| state.at <= sent.at).peekable();
        let in_vain =
            exhausted && knowable.peek().is_some() && knowable.all(|state| since(state) > state.allowed);
        hold("no eviction is sent that the budget, as last seen, would refuse", !in_vain, || {
            format!(
                "{uid} was refused by {}/{}; decided at {} knowing all before {}",
                key.namespace, key.name, sent.at, sent.known
            )
        })
    }

    /// Takes down how all budgets stand.
    pub fn count(&mut self, world: &World) {
        let now = world.now();
        for budget in world.store().budgets() {
            let key = budget.key();
            let spare = spare(world, &key).unwrap_or(i64::from(i32::MAX));
            let history = self.histories.entry(key).or_default();
            let allowed = i64::from(budget.status.disruptions_allowed);
            let evicted = history.evicted;
            let same = history
                .states
                .back()
                .is_some_and(|last| (last.spare, last.allowed, last.evicted) == (spare, allowed, evicted));
            if !same {
                history.states.push_back(State { at: now, spare, allowed, evicted });
            }
            history.sent.retain(|_, (at, _)| now.duration_since(*at) < KEPT);
            while history.states.get(1).is_some_and(|second| now.duration_since(second.at) > KEPT) {
                history.states.pop_front();
            }
        }
        self.histories.retain(|key, _| world.store().cluster().budget(key).is_some());
    }
}

impl State {
    /// It still held at that instant, or came later.
    fn until_after(&self, instant: Timestamp, all: &VecDeque<Self>) -> bool {
        self.at >= instant
            || all.iter().find(|other| other.at > self.at).is_none_or(|next| next.at >= instant)
    }
}

/// An owner's scale could not be read.
fn is_blind(cluster: &Cluster, key: &BudgetKey) -> bool {
    let owners = cluster.budget(key).map(|budget| scales_of(cluster, budget)).unwrap_or_default();
    owners.iter().any(|(_, owner)| matches!(cluster.scale(&owner.uid), Some(Scale::Unreadable(_))))
}

/// Healthy pods beyond what the budget wants; `None` when that cannot be computed.
fn spare(world: &World, key: &BudgetKey) -> Option<i64> {
    let budget = world.store().cluster().budget(key)?;
    let computed = recompute(world.store().cluster(), budget, world.now());
    let known = computed.sync_error.is_none() && computed.unread_scales.is_empty();
    let numbers = computed.numbers;
    known.then(|| i64::from(numbers.current_healthy) - i64::from(numbers.desired_healthy))
}
