//! A comparison that cannot fail proves nothing: every expectation is changed in turn, and each change must be noticed
//! on the same answers.

use drainplan::api::{NodePhase, PlanPhase};

use crate::expect::{BudgetExpectation, End, Mention, NodeEnd, PodExpectation, Wanted};

/// What no message mentions.
fn unsaid() -> [Mention; 3] {
    [Mention::Number(1_234_567), Mention::Text(other()), Mention::Text(format!("{}*", other()))]
}

/// What nothing is called.
fn other() -> String {
    "Unheard-of".to_owned()
}

/// An expectation, and the same with one thing changed, each with the name of what is changed.
struct Changes<'t, T> {
    true_one: &'t T,
    all: Vec<(String, T)>,
}

impl<'t, T: Clone> Changes<'t, T> {
    fn of(true_one: &'t T) -> Self {
        Self { true_one, all: Vec::new() }
    }

    fn add(&mut self, what: impl Into<String>, change: impl FnOnce(&mut T)) {
        let mut changed = self.true_one.clone();
        change(&mut changed);
        self.all.push((what.into(), changed));
    }
}

/// A pod's expectation with one thing changed.
pub fn pod(expected: &PodExpectation) -> Vec<(String, PodExpectation)> {
    let mut changes = Changes::of(expected);
    changes.add("name", |changed| changed.pod.name = other());
    changes.add("namespace", |changed| changed.pod.namespace = other());
    if expected.pod.node.is_some() {
        changes.add("node", |changed| changed.pod.node = Some(other()));
    }
    if let Some(terminating) = expected.pod.terminating {
        changes.add("terminating", |changed| changed.pod.terminating = Some(!terminating));
    }
    if expected.action.is_some() {
        changes.add("action", |changed| changed.action = Some(other()));
    }
    if let Some(code) = expected.code {
        changes.add("code", |changed| changed.code = Some(code + 1));
    }
    if let Some(budgets) = &expected.budgets {
        changes.add("budgets", |changed| changed.budgets.get_or_insert_default().push(other()));
        for at in 0..budgets.len() {
            changes.add("budgets", |changed| changed.budgets = Some(without(budgets, at)));
        }
    }
    if let Wanted::Exactly(reason) = &expected.reason {
        for wrong in [Some(other()), None].into_iter().filter(|wrong| wrong != reason) {
            changes.add("reason", |changed| changed.reason = Wanted::Exactly(wrong));
        }
    }
    if let Wanted::Exactly(outlook) = &expected.outlook {
        let any = ["WillClear", "MayClear", "NeverClears"].map(|any| Some(any.to_owned()));
        for wrong in any.into_iter().chain([None]).filter(|wrong| wrong != outlook) {
            changes.add("outlook", |changed| changed.outlook = Wanted::Exactly(wrong));
        }
    }
    for mention in unsaid() {
        changes.add("mentions", |changed| changed.mentions.push(mention));
    }
    changes.all
}

/// A budget's expectation with one thing changed.
pub fn budget(expected: &BudgetExpectation) -> Vec<(String, BudgetExpectation)> {
    type Number = fn(&mut BudgetExpectation) -> &mut Option<i64>;
    let numbers: [(&str, Number); 4] = [
        ("expectedPods", |budget| &mut budget.expected_pods),
        ("currentHealthy", |budget| &mut budget.current_healthy),
        ("desiredHealthy", |budget| &mut budget.desired_healthy),
        ("disruptionsAllowed", |budget| &mut budget.disruptions_allowed),
    ];
    let mut changes = Changes::of(expected);
    for (what, number) in numbers {
        if let Some(value) = *number(&mut expected.clone()) {
            for wrong in [value - 1, value + 1] {
                changes.add(what, |changed| *number(changed) = Some(wrong));
            }
        }
    }
    changes.add("name", |changed| changed.name = other());
    changes.add("syncFailed", |changed| changed.sync_failed = !expected.sync_failed);
    if let Some(findings) = &expected.findings {
        for finding in findings.iter().cloned().chain([other()]) {
            changes.add("findings", |changed| {
                let wrong = changed.findings.get_or_insert_default();
                if !wrong.remove(&finding) {
                    wrong.insert(finding);
                }
            });
        }
    }
    changes.all
}

/// An end with one thing changed.
pub fn end(expected: &End) -> Vec<(String, End)> {
    let mut changes = Changes::of(expected);
    if let Some(plan) = expected.plan {
        let wrong = if plan == PlanPhase::Completed { PlanPhase::Failed } else { PlanPhase::Completed };
        changes.add("plan", |changed| changed.plan = Some(wrong));
    }
    nodes(&mut changes, expected);
    whereabouts(&mut changes, expected);
    for at in 0..=expected.reasons.as_ref().map_or(0, Vec::len) {
        changes.add("reasons", |changed| {
            let reasons = changed.reasons.get_or_insert_default();
            match reasons.get_mut(at) {
                Some(reason) => *reason = other(),
                None => reasons.push(other()),
            }
        });
    }
    for mention in unsaid() {
        changes.add("mentions", |changed| changed.mentions.push(mention));
    }
    if let Some(evictions) = expected.evictions {
        changes.add("evictions", |changed| changed.evictions = Some(evictions + 1));
        if let Some(less) = evictions.checked_sub(1) {
            changes.add("evictions", |changed| changed.evictions = Some(less));
        }
    }
    changes.all
}

fn nodes(changes: &mut Changes<'_, End>, expected: &End) {
    changes.add("node", |changed| {
        changed.nodes.insert(other(), NodeEnd::default());
    });
    for (name, node) in &expected.nodes {
        let mut change = |what: &str, wrong: NodeEnd| {
            changes.add(format!("{what} of {name}"), |changed| {
                changed.nodes.insert(name.clone(), wrong);
            });
        };
        if let Some(phase) = node.phase {
            let wrong = if phase == NodePhase::Done { NodePhase::Failed } else { NodePhase::Done };
            change("phase", NodeEnd { phase: Some(wrong), ..node.clone() });
        }
        if let Some(cordoned) = node.cordoned {
            change("cordoned", NodeEnd { cordoned: Some(!cordoned), ..node.clone() });
        }
        if let Some(touched) = node.touched {
            change("touched", NodeEnd { touched: Some(!touched), ..node.clone() });
        }
    }
}

fn whereabouts(changes: &mut Changes<'_, End>, expected: &End) {
    if let Some(moved) = &expected.moved {
        changes.add("moved", |changed| changed.moved.get_or_insert_default().push(other()));
        for (at, entry) in moved.iter().enumerate() {
            // What another entry says as well may be left out.
            if !moved.iter().any(|other| other != entry && entry.starts_with(other.as_str())) {
                changes.add("moved", |changed| changed.moved = Some(without(moved, at)));
            }
            changes.add("stays", |changed| {
                changed.moved = Some(without(moved, at));
                changed.stays.get_or_insert_default().push(entry.clone());
            });
        }
    }
    if let Some(stays) = &expected.stays {
        changes.add("stays", |changed| changed.stays.get_or_insert_default().push(other()));
        for (at, entry) in stays.iter().enumerate() {
            changes.add("moved", |changed| {
                changed.stays = Some(without(stays, at));
                changed.moved.get_or_insert_default().push(entry.clone());
            });
        }
    }
    let mut left = |entry: &str, number: (usize, usize)| {
        changes.add("left", |changed| {
            changed.left.insert(entry.to_owned(), number);
        });
    };
    left(&other(), (0, 0));
    for (entry, (least, most)) in &expected.left {
        left(entry, (most + 1, most + 1));
        if let Some(less) = least.checked_sub(1) {
            left(entry, (0, less));
        }
    }
}

fn without(list: &[String], at: usize) -> Vec<String> {
    list.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, entry)| entry.clone()).collect()
}
