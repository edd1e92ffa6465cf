//! What one case has of the cluster: a namespace, nodes that only its pods can be on, plans under its name.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use drainplan::api::names;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::said::Compared;
use super::{Audit, Installation, PlanRun, Recorder, Request, Sight, Space, cordoned, marks, nodes};

/// How long a node may take to be as it should be.
const SETTLES: Duration = Duration::from_mins(1);
/// The label of a case's nodes.
const OF_CASE: &str = "e2e.drainplan.dev/case";

/// One case's part of the cluster.
#[derive(Clone)]
pub struct Bed {
    /// The case's name; also its namespace and the beginning of its nodes' and plans' names.
    pub name: String,
    pub installation: Arc<Installation>,
    /// The namespace.
    pub space: Space,
    /// The rows of `reasons.yaml` that this case has met so far.
    pub(super) compared: Arc<Compared>,
}

impl Bed {
    /// Makes the namespace.
    pub async fn new(installation: Arc<Installation>, name: &str) -> Result<Self> {
        let space = Space::create(installation.client(), name, labels(name)).await?;
        Ok(Self { name: name.to_owned(), installation, space, compared: Arc::default() })
    }

    pub fn client(&self) -> Client {
        self.installation.client()
    }

    pub fn audit(&self) -> Audit {
        self.installation.audit()
    }

    /// The name of a node or a plan of this case.
    pub fn named(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// One more namespace of this case; its pods go to this case's nodes, too.
    pub async fn another_space(&self, suffix: &str) -> Result<Space> {
        Space::create(self.client(), &self.named(suffix), labels(&self.name)).await
    }

    /// Creates nodes with room for so many pods each; returns their names when pods can be scheduled there.
    pub async fn nodes<const N: usize>(&self, suffixes: [&str; N], room: u32) -> Result<[String; N]> {
        let names = suffixes.map(|suffix| self.named(suffix));
        nodes::create(self.client(), &names, &labels(&self.name), room).await?;
        Ok(names)
    }

    /// Cordons or uncordons a node, as an administrator would.
    pub async fn set_cordon(&self, name: &str, on: bool) -> Result<()> {
        let patch = json!({"spec": {"unschedulable": on.then_some(true)}});
        let nodes: Api<Node> = Api::all(self.client());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Deletes a node.
    pub async fn delete_node(&self, name: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client());
        nodes.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Records all nodes of the cluster.
    pub async fn record_nodes(&self) -> Result<Recorder<Node>> {
        Recorder::start(Api::all(self.client()), None).await
    }

    /// Awaits that a node is cordoned or not, and that this of ours is on it.
    pub async fn node_rests(&self, name: &str, on: bool, ours: &[String]) -> Result<()> {
        let what =
            format!("node {name} is {} and carries {ours:?}", if on { "cordoned" } else { "schedulable" });
        self.node_until(name, &what, |node| cordoned(node) == on && marks(node) == ours).await
    }

    /// Annotates a node, as an administrator would.
    pub async fn annotate_node(&self, name: &str, annotation: &str, value: Option<&str>) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        let nodes: Api<Node> = Api::all(self.client());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Awaits that a node carries the label of a hand-off.
    pub async fn node_is_announced(&self, name: &str) -> Result<()> {
        let label = format!("{}={}", names::STATE, names::DRAINED);
        let what = format!("node {name} carries the label {label}");
        self.node_until(name, &what, |node| cordoned(node) && marks(node).contains(&label)).await
    }

    /// Awaits that a node is cordoned, by whomever.
    pub async fn node_is_cordoned(&self, name: &str) -> Result<()> {
        self.node_until(name, &format!("node {name} is cordoned"), cordoned).await
    }

    async fn node_until(&self, name: &str, what: &str, mut look: impl FnMut(&Node) -> bool) -> Result<()> {
        let only = format!("metadata.name={name}");
        let recorder = Recorder::<Node>::start(Api::all(self.client()), Some(&only)).await?;
        recorder
            .until(what, SETTLES, |record| match record.now.get(name) {
                Some(node) if look(node) => Sight::Found(()),
                Some(node) => Sight::NotYet(format!("cordoned {}, {:?}", cordoned(node), marks(node))),
                None => Sight::Never("it is gone".to_owned()),
            })
            .await
    }

    /// At no event of the record was the node cordoned; the controller wrote nothing to it and evicted nothing here.
    pub fn ensure_untouched(&self, watched: &Recorder<Node>, node: &str) -> Result<()> {
        let was_cordoned = watched.with(|record| {
            record.events.iter().any(|seen| seen.object.name_any() == node && cordoned(&seen.object))
        });
        ensure!(!was_cordoned, "node {node} was cordoned");
        let written = self.audit().node_writes(node)?;
        let ours = written.iter().filter(|request| request.is_ours()).map(Request::line);
        let ours: Vec<String> = ours.collect();
        ensure!(ours.is_empty(), "the controller wrote to node {node}: {ours:#?}");
        let evictions = self.evictions()?;
        ensure!(evictions.is_empty(), "evictions were sent: {evictions:#?}");
        Ok(())
    }

    /// Creates a plan of this case.
    pub async fn plan(&self, suffix: &str, spec: Value) -> Result<PlanRun> {
        PlanRun::create(self.client(), &self.named(suffix), spec).await
    }

    /// The evictions that the controller asked for in this case's namespace. Nobody else may have asked for any.
    pub fn evictions(&self) -> Result<Vec<Request>> {
        let evictions = self.audit().evictions(&self.name)?;
        for eviction in &evictions {
            ensure!(eviction.is_ours(), "an eviction that is not the controller's: {}", eviction.line());
            // Of a request without the right to it the server does not read the body.
            let read = !eviction.body.is_null();
            ensure!(
                !read || eviction.precondition().is_some(),
                "an eviction without a uid: {}",
                eviction.line()
            );
        }
        Ok(evictions)
    }

    /// The uids whose eviction was accepted; fails when one of them was accepted twice.
    pub fn accepted(&self) -> Result<Vec<String>> {
        let mut accepted: Vec<String> = Vec::new();
        for eviction in self.evictions()?.iter().filter(|eviction| eviction.code == 201) {
            let uid = eviction.precondition().unwrap_or_default().to_owned();
            ensure!(!accepted.contains(&uid), "accepted a second time: {}", eviction.line());
            accepted.push(uid);
        }
        Ok(accepted)
    }
}

fn labels(case: &str) -> Map<String, Value> {
    Map::from_iter([(OF_CASE.to_owned(), json!(case))])
}
