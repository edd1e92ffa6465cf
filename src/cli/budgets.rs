//! `kubectl drainplan budgets`.

use jiff::Timestamp;
use serde::Serialize;

use super::args::Global;
use super::output::Outcome;
use super::source::{Scope, Source};
use super::table::{self, Table};
use crate::api::Finding;
use crate::budget::Numbers;
use crate::cluster::{Cluster, Pdb};
use crate::explain::{Explainer, Found, Patience};

/// The answer; a contract with scripts.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    budgets: Vec<Budget>,
}

#[derive(Debug, Serialize)]
struct Budget {
    namespace: String,
    name: String,
    reported: Four,
    computed: Computed,
    agrees: bool,
    findings: Vec<&'static str>,
    details: Vec<Detail>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Four {
    expected_pods: i32,
    current_healthy: i32,
    desired_healthy: i32,
    disruptions_allowed: i32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Computed {
    #[serde(flatten)]
    numbers: Four,
    sync_error: Option<String>,
    /// Owners whose scale could not be read: the numbers are then those reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread_scales: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Detail {
    finding: &'static str,
    message: String,
    remedy: String,
}

pub(super) async fn run(global: &Global) -> anyhow::Result<Outcome> {
    let source = Source::open(global).await?;
    let scope = source.scope(global);
    let cluster = source.read(&scope).await?;
    let (answer, blocked) = answer(&cluster, &scope, Timestamp::now());
    Outcome::of(global.output, &answer, blocked, || table(&answer, &scope, table::width()))
}

pub(super) fn answer(cluster: &Cluster, scope: &Scope, now: Timestamp) -> (Answer, bool) {
    let patience = Patience::default();
    let explainer = Explainer::new(cluster, now, &patience);
    let mut budgets: Vec<&Pdb> =
        cluster.budgets().map(AsRef::as_ref).filter(|budget| scope.contains(&budget.namespace)).collect();
    budgets.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let mut blocked = false;
    let budgets = budgets
        .into_iter()
        .map(|budget| {
            let found = explainer.findings(budget);
            blocked |= found.iter().any(|found| blocks(found.finding));
            describe(&explainer, budget, found)
        })
        .collect();
    (Answer { budgets }, blocked)
}

/// Whether a finding keeps pods from being evicted.
fn blocks(finding: Finding) -> bool {
    !matches!(finding, Finding::SelectsNothing | Finding::SelectsJobs)
}

fn describe(explainer: &Explainer<'_>, budget: &Pdb, found: Vec<Found>) -> Budget {
    let standing = explainer.standing(budget);
    let computed = &standing.computed;
    let (reported, numbers) = (Four::from(Numbers::reported(budget)), Four::from(computed.numbers));
    let failed = (budget.status.sync_failed.is_some(), computed.sync_error.is_some());
    Budget {
        namespace: budget.namespace.to_string(),
        name: budget.name.to_string(),
        reported,
        computed: Computed {
            numbers,
            sync_error: computed.sync_error.clone(),
            unread_scales: computed
                .unread_scales
                .iter()
                .map(|(namespace, owner)| format!("{} {namespace}/{}", owner.kind, owner.name))
                .collect(),
        },
        agrees: reported == numbers && failed.0 == failed.1,
        findings: found.iter().map(|found| found.finding.as_str()).collect(),
        details: found
            .into_iter()
            .map(|found| Detail {
                finding: found.finding.as_str(),
                message: found.message,
                remedy: found.remedy,
            })
            .collect(),
    }
}

impl From<Numbers> for Four {
    fn from(numbers: Numbers) -> Self {
        let Numbers { expected_pods, current_healthy, desired_healthy, disruptions_allowed } = numbers;
        Self { expected_pods, current_healthy, desired_healthy, disruptions_allowed }
    }
}

pub(super) fn table(answer: &Answer, scope: &Scope, width: usize) -> String {
    if answer.budgets.is_empty() {
        return match scope {
            Scope::All => "No PodDisruptionBudgets.\n".to_owned(),
            Scope::One(namespace) => format!("No PodDisruptionBudgets in namespace {namespace}.\n"),
        };
    }
    let mut table =
        Table::new(&["NAMESPACE", "NAME", "ALLOWED", "EXPECTED", "HEALTHY", "DESIRED", "FINDINGS"], width);
    let mut differs = None;
    for budget in &answer.budgets {
        let (reported, computed) = (budget.reported, budget.computed.numbers);
        let pairs = [
            (reported.disruptions_allowed, computed.disruptions_allowed),
            (reported.expected_pods, computed.expected_pods),
            (reported.current_healthy, computed.current_healthy),
            (reported.desired_healthy, computed.desired_healthy),
        ];
        differs = differs.or_else(|| pairs.into_iter().find(|(reported, computed)| reported != computed));
        let [allowed, expected, healthy, desired] =
            pairs.map(|(reported, computed)| both(reported, computed));
        table.row(vec![
            budget.namespace.clone(),
            budget.name.clone(),
            allowed,
            expected,
            healthy,
            desired,
            if budget.findings.is_empty() { "-".to_owned() } else { budget.findings.join(",") },
        ]);
        for detail in &budget.details {
            table.sentence(&detail.message);
            table.remedy(&detail.remedy);
        }
    }
    if let Some((reported, computed)) = differs {
        table.blank();
        table.sentence(&format!(
            "{}: the budget's status reports {reported}, and by its pods and owners it should report {computed}.",
            both(reported, computed)
        ));
    }
    table.render()
}

fn both(reported: i32, computed: i32) -> String {
    if reported == computed { reported.to_string() } else { format!("{reported}→{computed}") }
}
