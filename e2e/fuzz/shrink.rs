//! Makes a failing scenario smaller, as long as it still fails in the same way.

use drainplan::api::PodPolicy;
use drainplan::simulate::Timing;

use super::scenario::Scenario;

/// How many smaller ones are tried at most.
const TRIES: u32 = 600;

struct Shrinker<F> {
    best: Scenario,
    fails: F,
    tries: u32,
}

/// The smallest scenario found that `fails`.
pub fn shrink(scenario: &Scenario, fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    let mut shrinker = Shrinker { best: scenario.clone(), fails, tries: TRIES };
    loop {
        let smaller = shrinker.drop_parts() | shrinker.simplify();
        if !smaller || shrinker.tries == 0 {
            return shrinker.best;
        }
    }
}

impl<F: FnMut(&Scenario) -> bool> Shrinker<F> {
    fn accept(&mut self, change: impl FnOnce(&mut Scenario)) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let mut smaller = self.best.clone();
        change(&mut smaller);
        let fails = (self.fails)(&smaller);
        if fails {
            self.best = smaller;
        }
        fails
    }

    /// Leaves out acts, plans, workloads, budgets and nodes; many at once first.
    fn drop_parts(&mut self) -> bool {
        let acts = self.drop_some(|scenario| &mut scenario.acts);
        let plans = self.drop_some(|scenario| &mut scenario.plans);
        let workloads = self.drop_some(|scenario| &mut scenario.workloads);
        let budgets = self.drop_some(|scenario| &mut scenario.budgets);
        let spares = self.drop_some(|scenario| &mut scenario.spares);
        let actors = self.drop_some(|scenario| &mut scenario.actors);
        let nodes = self.drop_some(|scenario| &mut scenario.nodes);
        acts | plans | workloads | budgets | spares | actors | nodes
    }

    fn drop_some<T>(&mut self, list: impl Fn(&mut Scenario) -> &mut Vec<T>) -> bool {
        let mut smaller = false;
        let mut chunk = list(&mut self.best).len();
        while chunk > 0 {
            let mut at = 0;
            while at < list(&mut self.best).len() {
                let dropped = self.accept(|scenario| {
                    let list = list(scenario);
                    let end = (at + chunk).min(list.len());
                    list.drain(at..end);
                });
                smaller |= dropped;
                if !dropped {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
        smaller
    }

    /// Makes what is left plainer.
    fn simplify(&mut self) -> bool {
        let mut smaller = self.best.processes > 1 && self.accept(|scenario| scenario.processes = 1);
        smaller |= self.best.timing != Timing::default()
            && self.accept(|scenario| scenario.timing = Timing::default());
        smaller |= self.best.housed && self.accept(|scenario| scenario.housed = false);
        smaller |= self.best.most_cordoned.is_some() && self.accept(|scenario| scenario.most_cordoned = None);
        for at in 0..self.best.workloads.len() {
            while self.best.workloads.get(at).is_some_and(|workload| workload.replicas > 1) {
                let fewer = |scenario: &mut Scenario| {
                    if let Some(workload) = scenario.workloads.get_mut(at) {
                        workload.replicas -= 1;
                    }
                };
                if !self.accept(fewer) {
                    break;
                }
                smaller = true;
            }
        }
        for at in 0..self.best.plans.len() {
            let plain = |scenario: &mut Scenario| {
                if let Some((_, plan)) = scenario.plans.get_mut(at) {
                    plan.spec.max_failed_nodes = None;
                    plan.spec.on_node_timeout = None;
                    plan.spec.pods = Some(PodPolicy::default());
                }
            };
            let mut plainer = self.best.clone();
            plain(&mut plainer);
            let differs = plainer.plans.get(at).map(|(_, plan)| &plan.spec)
                != self.best.plans.get(at).map(|(_, plan)| &plan.spec);
            smaller |= differs && self.accept(plain);
        }
        smaller
    }
}
