//! Asks `kubectl-drainplan` and compares.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::api::PostParams;
use kube::config::Kubeconfig;
use kube::{Api, ResourceExt as _};
use serde::Deserialize;

use crate::Report;
use crate::expect::{BudgetExpectation, Case, Mention, PodExpectation, Wanted};
use crate::world::World;

/// The answer of `explain`, as far as it is compared.
#[derive(Debug, Deserialize)]
struct Answer {
    pods: Vec<Pod>,
}

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    namespace: String,
    name: String,
    node: Option<String>,
    action: String,
    eviction: Eviction,
    verified: Option<Verified>,
    reason: Option<String>,
    outlook: Option<String>,
    message: String,
    remedy: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Eviction {
    code: u16,
    budgets: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Verified {
    code: u16,
}

pub async fn at_rest(world: &mut World<'_>, case: &Case, report: &mut Report) -> anyhow::Result<()> {
    later(world, "at rest", &case.at_rest, report).await?;
    if !case.budgets.is_empty() {
        budgets(world, &case.budgets, report)?;
    }
    offline(world, report)
}

/// Compares the expectations of one state.
pub async fn later(
    world: &mut World<'_>,
    state: &str,
    expected: &[PodExpectation],
    report: &mut Report,
) -> anyhow::Result<()> {
    for expectation in expected {
        let kubeconfig = match &expectation.subject {
            Some(subject) => impersonate(world, subject).await?,
            None => world.testbed.kubeconfig(),
        };
        let answer = explain(&kubeconfig, expectation.verify)?;
        let matching = matching(world, expected, expectation, &answer).await?;
        let about = format!("{state}: {}/{}", expectation.pod.namespace, expectation.pod.name);
        if matching.is_empty() {
            report.wrong.push(format!("{about}: no such pod in the answer"));
        }
        for pod in matching {
            let mut wrong = differences(expectation, pod, &answer.pods, &mut report.compared);
            if wrong.is_empty() {
                // A comparison that cannot fail proves nothing.
                let falsified = expectation.falsified().into_iter();
                let blind =
                    falsified.filter(|(_, other)| differences(other, pod, &answer.pods, &mut 0).is_empty());
                wrong.extend(blind.map(|(what, _)| format!("a wrong {what} is not noticed")));
            } else {
                wrong.push(format!("said: {} → {}", pod.message, pod.remedy));
            }
            report.wrong.extend(wrong.into_iter().map(|wrong| format!("{about} ({}): {wrong}", pod.name)));
        }
    }
    Ok(())
}

/// The pods of an expectation: those for which no other one has a longer name that fits.
async fn matching<'a>(
    world: &World<'_>,
    all: &[PodExpectation],
    expectation: &PodExpectation,
    answer: &'a Answer,
) -> anyhow::Result<Vec<&'a Pod>> {
    let which = &expectation.pod;
    let there: Vec<String> = world.pods(which).await?.iter().map(kube::ResourceExt::name_any).collect();
    let longer = |pod: &Pod| {
        all.iter().any(|other| {
            other.pod.namespace == pod.namespace
                && other.pod.name.len() > which.name.len()
                && pod.name.starts_with(&other.pod.name)
        })
    };
    let fits = |pod: &&Pod| {
        pod.namespace == which.namespace
            && pod.name.starts_with(&which.name)
            && which.node.is_none_or_equal(pod.node.as_ref())
            && there.contains(&pod.name)
            && !longer(pod)
    };
    Ok(answer.pods.iter().filter(fits).collect())
}

trait NoneOrEqual {
    fn is_none_or_equal(&self, other: Option<&String>) -> bool;
}

impl NoneOrEqual for Option<String> {
    fn is_none_or_equal(&self, other: Option<&String>) -> bool {
        self.as_ref().is_none_or(|value| other == Some(value))
    }
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
    for mention in &expectation.mentions {
        *compared += 1;
        if !mentions(&said, mention, pod, all) {
            wrong.push(format!("{mention:?} is not mentioned"));
        }
    }
    wrong
}

fn mentions(said: &str, mention: &Mention, pod: &Pod, all: &[Pod]) -> bool {
    match mention {
        Mention::Number(number) => has_word(said, &number.to_string()),
        Mention::Text(text) => match text.strip_suffix('*') {
            Some(prefix) => all
                .iter()
                .filter(|other| other.namespace == pod.namespace && other.name != pod.name)
                .any(|other| other.name.starts_with(prefix) && has_word(said, &other.name)),
            None if text.chars().all(|letter| letter.is_ascii_digit()) => has_word(said, text),
            None => said.contains(text.as_str()),
        },
    }
}

/// The word stands for itself, not inside of another.
fn has_word(said: &str, word: &str) -> bool {
    let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    said.match_indices(word).any(|(at, _)| {
        let before = said.get(..at).and_then(|text| text.chars().next_back());
        let after = said.get(at + word.len()..).and_then(|text| text.chars().next());
        !inside(before) && !inside(after)
    })
}

/// The program under test lies beside this one's directory.
fn program() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let directory = here.parent().and_then(Path::parent).context("this program lies in no directory")?;
    Ok(directory.join("kubectl-drainplan"))
}

/// Runs the program with these arguments and a path behind them.
fn ask<T: for<'de> Deserialize<'de>>(arguments: &[&str], path: &Path) -> anyhow::Result<T> {
    let program = program()?;
    let output = Command::new(&program)
        .args(["-o", "json"])
        .args(arguments)
        .arg(path)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        matches!(output.status.code(), Some(0 | 3)),
        "{} {}: {} {said}",
        program.display(),
        arguments.join(" "),
        output.status
    );
    serde_json::from_slice(&output.stdout).context("the answer is no JSON of the contract")
}

fn explain(kubeconfig: &Path, verify: bool) -> anyhow::Result<Answer> {
    let verify: &[&str] = if verify { &["--verify"] } else { &[] };
    ask(&[&["explain", "--all"], verify, &["--kubeconfig"]].concat(), kubeconfig)
}

/// The answer of `budgets`, as far as it is compared.
#[derive(Debug, Deserialize)]
struct BudgetsAnswer {
    budgets: Vec<Budget>,
}

#[derive(Debug, Deserialize)]
struct Budget {
    namespace: String,
    name: String,
    reported: Numbers,
    computed: Computed,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Numbers {
    expected_pods: i64,
    current_healthy: i64,
    desired_healthy: i64,
    disruptions_allowed: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Computed {
    #[serde(flatten)]
    numbers: Numbers,
    sync_error: Option<String>,
}

/// What the budgets' status shows, and, where somebody keeps it, that the recomputed numbers agree with it.
fn budgets(world: &World<'_>, expected: &[BudgetExpectation], report: &mut Report) -> anyhow::Result<()> {
    let answer: BudgetsAnswer = ask(&["budgets", "-A", "--kubeconfig"], &world.testbed.kubeconfig())?;
    for budget in expected {
        let about = format!("budget {}/{}", budget.namespace, budget.name);
        let mut listed = answer.budgets.iter();
        let Some(found) =
            listed.find(|found| found.namespace == budget.namespace && found.name == budget.name)
        else {
            report.wrong.push(format!("{about}: not in the answer"));
            continue;
        };
        let sides = [("reported", &found.reported), ("computed", &found.computed.numbers)];
        for (side, numbers) in sides.into_iter().take(if world.controlled { 2 } else { 1 }) {
            for (name, expected, found) in [
                ("expectedPods", budget.expected_pods, numbers.expected_pods),
                ("currentHealthy", budget.current_healthy, numbers.current_healthy),
                ("desiredHealthy", budget.desired_healthy, numbers.desired_healthy),
                ("disruptionsAllowed", budget.disruptions_allowed, numbers.disruptions_allowed),
            ] {
                report.compared += 1;
                if expected.is_some_and(|expected| expected != found) {
                    report.wrong.push(format!("{about}: {side} {name} is {found}, expected {expected:?}"));
                }
            }
        }
        report.compared += 1;
        if found.computed.sync_error.is_some() != budget.sync_failed {
            report.wrong.push(format!("{about}: syncError is {:?}", found.computed.sync_error));
        }
    }
    Ok(())
}

/// Kinds that decide about evictions, besides those that the case defines.
const KINDS: &str = "nodes,namespaces,pods,pdb,rc,rs,deploy,sts,ds,jobs,crd";

/// From a dump of the cluster the same is said as from the cluster itself.
fn offline(world: &World<'_>, report: &mut Report) -> anyhow::Result<()> {
    let defined =
        world.testbed.kubectl(&["get", "crd", "-o", "jsonpath={range .items[*]},{.metadata.name}{end}"])?;
    let kinds = format!("{KINDS}{defined}");
    for format in ["json", "yaml"] {
        let dump = world.testbed.directory.join(format!("dump.{format}"));
        std::fs::write(&dump, world.testbed.kubectl(&["get", &kinds, "-A", "-o", format])?)?;
        for arguments in [["budgets", "-A"], ["explain", "--all"]] {
            let [command, all] = arguments;
            let live: serde_json::Value = ask(&[command, all, "--kubeconfig"], &world.testbed.kubeconfig())?;
            let offline: serde_json::Value = ask(&[command, all, "--from"], &dump)?;
            report.compared += 1;
            if live != offline {
                report
                    .wrong
                    .push(format!("{command} from {format}: {offline}\n     from the cluster: {live}"));
            }
        }
    }
    Ok(())
}

/// A kubeconfig of a service account, which may read everything besides what it may anyway.
async fn impersonate(world: &World<'_>, subject: &str) -> anyhow::Result<PathBuf> {
    let mut parts = subject.strip_prefix("system:serviceaccount:").unwrap_or(subject).split(':');
    let (Some(namespace), Some(name)) = (parts.next(), parts.next()) else {
        anyhow::bail!("{subject} is no service account");
    };
    let rule = PolicyRule {
        api_groups: Some(vec!["*".to_owned()]),
        resources: Some(vec!["*".to_owned()]),
        verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
        ..PolicyRule::default()
    };
    let mut role = ClusterRole { rules: Some(vec![rule]), ..ClusterRole::default() };
    role.metadata.name = Some("case-reader".to_owned());
    ignore_existing(
        Api::<ClusterRole>::all(world.client.clone()).create(&PostParams::default(), &role).await,
    )?;
    let mut binding = ClusterRoleBinding {
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: role.name_any(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
        ..ClusterRoleBinding::default()
    };
    binding.metadata.name = Some(format!("case-reader-{name}"));
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    ignore_existing(bindings.create(&PostParams::default(), &binding).await)?;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), namespace);
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request(name, &PostParams::default(), &request).await?;
    let token = token.status.and_then(|status| status.token).context("a token request without a token")?;
    let mut kubeconfig = Kubeconfig::read_from(world.testbed.simulator())?;
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()) {
        *user =
            kube::config::AuthInfo { token: Some(token.clone().into()), ..kube::config::AuthInfo::default() };
    }
    let path = world.testbed.directory.join("subject.kubeconfig");
    std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
    Ok(path)
}

fn ignore_existing<T>(answer: Result<T, kube::Error>) -> anyhow::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}
