//! Plays one part of a case on a control plane that holds nothing else: the case at rest and its end, its later states,
//! or its end under another plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::ResourceExt as _;
use serde_json::{Map, Value};

use crate::ask;
use crate::compare::{self, Answers};
use crate::expect::{Case, End, PodExpectation};
use crate::plane::Plane;
use crate::world::World;
use crate::{end, falsify, load, offline, steps, subject};

/// A case and where its objects are.
pub struct Situation {
    pub case: Case,
    pub cluster: PathBuf,
    /// It defines kinds, which the controller manager has to learn.
    pub defines: bool,
}

/// What is played from one loading of a case's objects.
#[derive(Clone)]
pub struct Part {
    pub situation: Arc<Situation>,
    pub what: What,
}

/// Which part it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// What is said at rest, and the plan's end.
    AtRest,
    /// The later states, one after the other.
    Later,
    /// The end under another plan.
    Variant(usize),
}

/// How a part went.
#[derive(Default)]
pub struct Report {
    /// What was not as expected.
    pub wrong: Vec<String>,
    /// How many values were compared.
    pub compared: usize,
    /// How many falsified expectations were noticed.
    pub noticed: usize,
    pub took: Duration,
}

impl Situation {
    /// The parts of the case.
    pub fn parts(self: &Arc<Self>) -> Vec<Part> {
        let mut all = vec![What::AtRest];
        all.extend((!self.case.later.is_empty()).then_some(What::Later));
        all.extend((0..self.case.variants.len()).map(What::Variant));
        all.into_iter().map(|what| Part { situation: Arc::clone(self), what }).collect()
    }
}

impl Part {
    /// What it is called within its case.
    pub fn title(&self) -> String {
        match self.what {
            What::AtRest => "at rest and end".to_owned(),
            What::Later => "later".to_owned(),
            What::Variant(number) => format!("variant {}", number + 1),
        }
    }

    /// About how many seconds it waits, so that long ones are begun first.
    pub fn waits(&self) -> u64 {
        let case = &self.situation.case;
        let later = case.later.iter().flat_map(|state| &state.steps);
        let steps: Vec<&String> = match self.what {
            What::Later => case.before.iter().chain(later).collect(),
            _ => case.before.iter().collect(),
        };
        let seconds = |step: &String| match step.strip_prefix("wait ") {
            Some(time) => time.trim_end_matches('s').parse().unwrap_or(0),
            None => 1,
        };
        let ends = match self.what {
            What::Later => false,
            What::AtRest => case.end.is_some(),
            What::Variant(_) => true,
        };
        let others = [(ends, 35), (self.situation.defines, load::LEARNS_KINDS.as_secs())];
        let others = others.into_iter().filter(|(whether, _)| *whether).map(|(_, seconds)| seconds);
        steps.into_iter().map(seconds).chain(others).sum()
    }

    /// Plays it and removes everything again.
    pub async fn play(&self, plane: &Plane) -> anyhow::Result<Report> {
        let start = Instant::now();
        let mut world = World::new(plane);
        let mut report = Report::default();
        let played = self.play_in(&mut world, &mut report).await;
        plane.clean(world).await.context("removing everything")?;
        played?;
        report.took = start.elapsed();
        Ok(report)
    }

    async fn play_in(&self, world: &mut World<'_>, report: &mut Report) -> anyhow::Result<()> {
        let case = &self.situation.case;
        load::all(world, load::read(&self.situation.cluster)?, case).await?;
        steps::run(world, &case.before).await?;
        match self.what {
            What::AtRest => {
                state(world, "at rest", &case.at_rest, report).await?;
                budgets(world, case, report).await?;
                offline::compare(world, report).await?;
                if let Some(end) = &case.end {
                    ends("end".to_owned(), world, case, (&case.plan, &[]), end, report).await?;
                }
            }
            What::Later => {
                for (number, later) in (1..).zip(&case.later) {
                    let name = format!("later {number}");
                    steps::run(world, &later.steps).await.with_context(|| name.clone())?;
                    state(world, &name, &later.expect, report).await?;
                }
            }
            What::Variant(number) => {
                let variant = case.variants.get(number).context("no such variant")?;
                steps::run(world, &variant.before).await?;
                ends(self.title(), world, case, (&variant.plan, &variant.during), &variant.end, report)
                    .await?;
            }
        }
        Ok(())
    }
}

/// Asks and compares in one state.
async fn state(
    world: &mut World<'_>,
    state: &str,
    expected: &[PodExpectation],
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut answers = Answers { explained: BTreeMap::new(), pods: BTreeMap::new() };
    for expectation in expected {
        let manner = (expectation.subject.clone(), expectation.verify);
        if answers.explained.contains_key(&manner) {
            continue;
        }
        let kubeconfig = match &expectation.subject {
            Some(subject) => subject::kubeconfig(world, subject).await?,
            None => world.plane.testbed().simulator(),
        };
        answers.explained.insert(manner, ask::explain(&kubeconfig, expectation.verify).await?);
    }
    for pod in world.snapshot().await?.pods {
        let key = (pod.namespace().unwrap_or_default(), pod.name_any());
        answers.pods.insert(key, pod.metadata.deletion_timestamp.is_some());
    }
    for expectation in expected {
        let wrong = compare::pod(expectation, expected, &answers, &mut report.compared);
        let falsified = falsify::pod(expectation).into_iter();
        let again = falsified.map(|(what, changed)| {
            let name = &expectation.pod.name;
            (format!("{what} of {name}"), compare::pod(&changed, expected, &answers, &mut 0))
        });
        report.judge(state, wrong, again);
    }
    Ok(())
}

async fn budgets(world: &World<'_>, case: &Case, report: &mut Report) -> anyhow::Result<()> {
    if case.budgets.is_empty() {
        return Ok(());
    }
    let answer = ask::budgets(&world.plane.testbed().simulator()).await?;
    for budget in &case.budgets {
        let compare = |budget: &_, compared: &mut usize| {
            compare::budget(budget, &answer.budgets, world.controlled, compared)
        };
        let wrong = compare(budget, &mut report.compared);
        let again = falsify::budget(budget).into_iter();
        let name = &budget.name;
        let again = again.map(|(what, changed)| (format!("{what} of {name}"), compare(&changed, &mut 0)));
        report.judge("at rest", wrong, again);
    }
    Ok(())
}

/// Runs a plan to its end and compares.
async fn ends(
    about: String,
    world: &mut World<'_>,
    case: &Case,
    (plan, during): (&Map<String, Value>, &[String]),
    end: &End,
    report: &mut Report,
) -> anyhow::Result<()> {
    let ended = end::play(world, case, plan, during, end.plan).await?;
    let mut wrong = ended.differences(end, &mut report.compared);
    if !wrong.is_empty() {
        wrong.push(format!("said: {}", ended.told));
    }
    let again = falsify::end(end).into_iter();
    let again = again.map(|(what, changed)| (what, ended.differences(&changed, &mut 0)));
    report.judge(&about, wrong, again);
    Ok(())
}

impl Report {
    /// Takes in what was wrong, or else which falsified expectations nobody has noticed.
    fn judge(
        &mut self,
        about: &str,
        mut wrong: Vec<String>,
        falsified: impl Iterator<Item = (String, Vec<String>)>,
    ) {
        if wrong.is_empty() {
            for (what, noticed) in falsified {
                if noticed.is_empty() {
                    wrong.push(format!("a wrong {what} is not noticed"));
                } else {
                    self.noticed += 1;
                }
            }
        }
        self.wrong.extend(wrong.into_iter().map(|wrong| format!("{about}: {wrong}")));
    }
}
