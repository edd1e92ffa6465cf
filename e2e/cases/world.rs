//! What the world of a case does: creates, evicts, deletes, and waits until nothing moves any more.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersion;
use kube::discovery::{self, Scope};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::expect::Which;
use crate::plane::Plane;

/// How long anything may take to come to rest.
const LIMIT: Duration = Duration::from_secs(90);
/// How long nothing must have changed.
const STILL: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// A hint on an object.
pub const HINT: &str = "sim.drainplan.dev/";

/// A control plane and what a case has put there.
pub struct World<'p> {
    pub plane: &'p Plane,
    /// With all rights, and not in the audit log.
    pub client: Client,
    /// Waves that are not created yet.
    pub waves: BTreeMap<u32, Vec<DynamicObject>>,
    /// The controller manager runs: budgets get a status, owners get their pods.
    pub controlled: bool,
    /// What was created, in order.
    pub created: Vec<Created>,
    resources: HashMap<(String, String), (ApiResource, Scope)>,
}

/// An object that was created.
#[derive(Clone)]
pub struct Created {
    pub kind: String,
    pub name: String,
    pub api: Api<DynamicObject>,
}

impl<'p> World<'p> {
    pub fn new(plane: &'p Plane) -> Self {
        Self {
            plane,
            client: plane.simulator.clone(),
            waves: BTreeMap::new(),
            controlled: true,
            created: Vec::new(),
            resources: HashMap::new(),
        }
    }

    /// The API of an object's kind, in its namespace if it has one.
    pub async fn api(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> anyhow::Result<Api<DynamicObject>> {
        let key = (api_version.to_owned(), kind.to_owned());
        if !self.resources.contains_key(&key) {
            let version: GroupVersion = api_version.parse()?;
            let (resource, capabilities) =
                discovery::pinned_kind(&self.client, &version.with_kind(kind)).await?;
            self.resources.insert(key.clone(), (resource, capabilities.scope));
        }
        let (resource, scope) = self.resources.get(&key).context("just inserted")?;
        Ok(match (scope, namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(self.client.clone(), namespace, resource)
            }
            _ => Api::all_with(self.client.clone(), resource),
        })
    }

    /// Creates an object; a fresh namespace refuses pods until its service account is there.
    pub async fn create(&mut self, object: &DynamicObject) -> anyhow::Result<()> {
        let types = object.types.clone().context("an object without a kind")?;
        let namespace = object.namespace();
        let api = self.api(&types.api_version, &types.kind, namespace.as_deref()).await?;
        let name = object.name_any();
        let start = Instant::now();
        loop {
            match api.create(&PostParams::default(), object).await {
                Ok(_) => {
                    self.created.push(Created { kind: types.kind, name, api });
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 403 && start.elapsed() < LIMIT => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot create {} {name}", types.kind));
                }
            }
        }
    }

    /// Waits until a question about the world is answered with yes.
    pub async fn until<F>(&self, what: &str, mut holds: impl FnMut(Snapshot) -> F) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<bool>>,
    {
        let start = Instant::now();
        loop {
            let snapshot = self.snapshot().await?;
            let pods = snapshot.unrest(self.controlled).join(", ");
            if holds(snapshot).await? {
                return Ok(());
            }
            anyhow::ensure!(
                start.elapsed() < LIMIT,
                "waited {} s for {what} in vain; {pods}",
                LIMIT.as_secs()
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until everything is where its hints let it be and nothing has changed for a while.
    pub async fn settle(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        let (mut seen, mut since) = (String::new(), Instant::now());
        loop {
            let snapshot = self.snapshot().await?;
            let unrest = snapshot.unrest(self.controlled);
            let now = snapshot.versions();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if unrest.is_empty() && since.elapsed() >= STILL {
                return Ok(());
            }
            anyhow::ensure!(
                start.elapsed() < LIMIT,
                "no rest after {} s: {}",
                LIMIT.as_secs(),
                unrest.join(", ")
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    pub async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let all = ListParams::default();
        Ok(Snapshot {
            nodes: Api::<Node>::all(self.client.clone()).list(&all).await?.items,
            pods: Api::<Pod>::all(self.client.clone()).list(&all).await?.items,
            budgets: Api::<PodDisruptionBudget>::all(self.client.clone()).list(&all).await?.items,
        })
    }

    /// The pods that fit, by name.
    pub async fn pods(&self, which: &Which) -> anyhow::Result<Vec<Pod>> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &which.namespace)
            .list(&ListParams::default())
            .await?;
        let fits = |pod: &Pod| {
            pod.name_any().starts_with(&which.name)
                && which.node.as_ref().is_none_or(|node| node_of(pod) == Some(node))
                && which.terminating.is_none_or(|going| pod.metadata.deletion_timestamp.is_some() == going)
        };
        Ok(pods.items.into_iter().filter(fits).collect())
    }

    pub async fn cordon(&self, node: &str, cordoned: bool) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        Api::<Node>::all(self.client.clone()).patch(node, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

pub fn node_of(pod: &Pod) -> Option<&String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref())
}

/// Objects at one instant.
pub struct Snapshot {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    pub budgets: Vec<PodDisruptionBudget>,
}

impl Snapshot {
    fn versions(&self) -> String {
        let nodes = self.nodes.iter().map(|node| {
            let spec = node.spec.as_ref();
            format!(
                "{} {:?}",
                node.name_any(),
                spec.map(|spec| (&spec.unschedulable, spec.taints.as_ref().map(Vec::len)))
            )
        });
        let pods = self.pods.iter().map(|pod| (pod.uid().unwrap_or_default(), pod.resource_version()));
        let budgets =
            self.budgets.iter().map(|budget| (budget.uid().unwrap_or_default(), budget.resource_version()));
        let mut all: Vec<String> =
            pods.chain(budgets).map(|(uid, version)| format!("{uid} {version:?}")).collect();
        all.extend(nodes);
        all.sort();
        all.join("\n")
    }

    /// What still moves.
    fn unrest(&self, controlled: bool) -> Vec<String> {
        let pods = self.pods.iter().filter(|pod| !rests(pod)).map(|pod| format!("pod {}", pod.name_any()));
        let observed = |budget: &PodDisruptionBudget| {
            let status = budget.status.as_ref();
            let condition = status.and_then(|status| status.conditions.as_ref());
            condition
                .is_some_and(|conditions| conditions.iter().any(|found| found.type_ == "DisruptionAllowed"))
        };
        let budgets = self.budgets.iter().filter(|budget| controlled && !observed(budget));
        pods.chain(budgets.map(|budget| format!("budget {}", budget.name_any()))).collect()
    }
}

/// A pod is where its hints let it be.
fn rests(pod: &Pod) -> bool {
    let hint = |name: &str| pod.annotations().get(&format!("{HINT}{name}")).map(String::as_str);
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let condition = |kind: &str, value: &str| {
        let conditions = status.and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|found| found.type_ == kind && found.status == value))
    };
    if pod.metadata.deletion_timestamp.is_some() {
        let ended = pod.metadata.deletion_grace_period_seconds == Some(0);
        return ended || hint("terminate").is_some();
    }
    match (node_of(pod), phase) {
        (None, _) => condition("PodScheduled", "False"),
        (_, "Succeeded" | "Failed") => true,
        (_, "Pending") => hint("start").is_some(),
        (_, "Running") if hint("complete-after").is_some() => false,
        (_, "Running") => hint("ready").is_some() || condition("Ready", "True"),
        _ => false,
    }
}
