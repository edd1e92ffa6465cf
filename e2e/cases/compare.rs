//! Compares what was said in one state with what is expected. Nothing here asks anybody: the same answers are compared
//! again with falsified expectations.

use std::collections::BTreeMap;

use crate::ask::{Budget, Explained, Pod};
use crate::expect::{BudgetExpectation, Mention, PodExpectation, Wanted};
use crate::mention::said as mentions;

/// As whom, and whether the server was asked as well.
pub type Manner = (Option<String>, bool);

/// What was said in one state.
pub struct Answers {
    pub explained: BTreeMap<Manner, Explained>,
    /// Which pods were there, and whether they were terminating, by namespace and name.
    pub pods: BTreeMap<(String, String), bool>,
}

/// What is wrong about one of a state's expectations; `compared` counts what was looked at.
pub fn pod(
    expectation: &PodExpectation,
    all: &[PodExpectation],
    answers: &Answers,
    compared: &mut usize,
) -> Vec<String> {
    let manner = (expectation.subject.clone(), expectation.verify);
    let Some(answer) = answers.explained.get(&manner) else {
        return vec![format!("{manner:?} was not asked")];
    };
    let found: Vec<&Pod> = answer.pods.iter().filter(|pod| belongs(pod, expectation, all, answers)).collect();
    let about = format!("{}/{}", expectation.pod.namespace, expectation.pod.name);
    if found.is_empty() {
        return vec![format!("{about}: no such pod in the answer")];
    }
    let mut wrong = Vec::new();
    for pod in found {
        let of_pod = differences(expectation, pod, &answer.pods, compared);
        if !of_pod.is_empty() {
            let said = format!("said: {} → {}", pod.message, pod.remedy);
            wrong.extend(
                of_pod.into_iter().chain([said]).map(|text| format!("{about} ({}): {text}", pod.name)),
            );
        }
    }
    wrong
}

/// The pod is one of this expectation: no other one has a longer name that fits.
fn belongs(pod: &Pod, expectation: &PodExpectation, all: &[PodExpectation], answers: &Answers) -> bool {
    let which = &expectation.pod;
    let longer = |other: &PodExpectation| {
        other.pod.namespace == pod.namespace
            && other.pod.name.len() > which.name.len()
            && pod.name.starts_with(&other.pod.name)
    };
    let there = answers.pods.get(&(pod.namespace.clone(), pod.name.clone()));
    pod.namespace == which.namespace
        && pod.name.starts_with(&which.name)
        && which.node.as_ref().is_none_or(|node| pod.node.as_ref() == Some(node))
        && there.is_some_and(|going| which.terminating.is_none_or(|wanted| wanted == *going))
        && !all.iter().any(longer)
}

fn differences(expectation: &PodExpectation, pod: &Pod, all: &[Pod], compared: &mut usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, expected: String, found: String| {
        *compared += 1;
        if expected != found {
            wrong.push(format!("{what} is {found}, expected {expected}"));
        }
    };
    if let Some(action) = &expectation.action {
        compare("action", action.clone(), pod.action.clone());
    }
    if let Some(code) = expectation.code {
        let ours = pod.eviction.code;
        let found =
            if expectation.verify { pod.verified.as_ref().map_or(0, |found| found.code) } else { ours };
        compare("code", code.to_string(), found.to_string());
    }
    if let Some(budgets) = &expectation.budgets {
        compare("budgets", budgets.join(","), pod.eviction.budgets.join(","));
    }
    let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
    if let Wanted::Exactly(reason) = &expectation.reason {
        compare("reason", or_null(reason), or_null(&pod.reason));
    }
    if let Wanted::Exactly(outlook) = &expectation.outlook {
        compare("outlook", or_null(outlook), or_null(&pod.outlook));
    }
    let said = format!("{}\n{}", pod.message, pod.remedy);
    let others = all.iter().filter(|other| other.namespace == pod.namespace && other.name != pod.name);
    let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
    for mention in &expectation.mentions {
        *compared += 1;
        if !mentions(&said, mention, &others) {
            wrong.push(format!("{} is not mentioned", mention.shown()));
        }
    }
    wrong
}

/// What is wrong about a budget: what its status shows and, where the controller keeps it, what is recomputed.
pub fn budget(
    expected: &BudgetExpectation,
    all: &[Budget],
    controlled: bool,
    compared: &mut usize,
) -> Vec<String> {
    let about = format!("budget {}/{}", expected.namespace, expected.name);
    let mut listed = all.iter();
    let Some(found) =
        listed.find(|found| found.namespace == expected.namespace && found.name == expected.name)
    else {
        return vec![format!("{about}: not in the answer")];
    };
    let mut wrong = Vec::new();
    let sides = [("reported", &found.reported), ("computed", &found.computed.numbers)];
    for (side, numbers) in sides.into_iter().take(if controlled { 2 } else { 1 }) {
        for (name, expected, found) in [
            ("expectedPods", expected.expected_pods, numbers.expected_pods),
            ("currentHealthy", expected.current_healthy, numbers.current_healthy),
            ("desiredHealthy", expected.desired_healthy, numbers.desired_healthy),
            ("disruptionsAllowed", expected.disruptions_allowed, numbers.disruptions_allowed),
        ] {
            let Some(expected) = expected else { continue };
            *compared += 1;
            if expected != found {
                wrong.push(format!("{about}: {side} {name} is {found}, expected {expected}"));
            }
        }
    }
    *compared += 1;
    if found.computed.sync_error.is_some() != expected.sync_failed {
        wrong.push(format!("{about}: syncError is {:?}", found.computed.sync_error));
    }
    if let Some(findings) = &expected.findings {
        *compared += 1;
        if *findings != found.findings.iter().cloned().collect() {
            wrong.push(format!("{about}: findings are {:?}, expected {findings:?}", found.findings));
        }
    }
    wrong
}

impl Mention {
    /// As it stands in the file.
    pub fn shown(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}
