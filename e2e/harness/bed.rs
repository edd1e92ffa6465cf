//! What one case has of the cluster: a namespace, nodes that only its pods can be on, plans under its name.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use serde_json::{Map, Value, json};

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
}

impl Bed {
    /// Makes the namespace.
    pub async fn new(installation: Arc<Installation>, name: &str) -> Result<Self> {
        let space = Space::create(installation.client(), name, labels(name)).await?;
        Ok(Self { name: name.to_owned(), installation, space })
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

    /// Creates nodes with room for so many pods each; returns their names when pods can be scheduled there.
    pub async fn nodes(&self, suffixes: &[&str], room: u32) -> Result<Vec<String>> {
        let names: Vec<String> = suffixes.iter().map(|suffix| self.named(suffix)).collect();
        nodes::create(self.client(), &names, &labels(&self.name), room).await?;
        Ok(names)
    }

    /// Records all nodes of the cluster.
    pub async fn record_nodes(&self) -> Result<Recorder<Node>> {
        Recorder::start(Api::all(self.client()), None).await
    }

    /// Awaits that a node is cordoned or not, and what of ours is on it.
    pub async fn node_rests(&self, name: &str, on: bool, ours: &[String]) -> Result<()> {
        let only = format!("metadata.name={name}");
        let recorder = Recorder::<Node>::start(Api::all(self.client()), Some(&only)).await?;
        let what =
            format!("node {name} is {} and carries {ours:?}", if on { "cordoned" } else { "schedulable" });
        recorder
            .until(&what, SETTLES, |record| match record.now.get(name) {
                Some(node) if cordoned(node) == on && marks(node) == ours => Sight::Found(()),
                Some(node) => Sight::NotYet(format!("cordoned {}, {:?}", cordoned(node), marks(node))),
                None => Sight::Never("it is gone".to_owned()),
            })
            .await
    }

    /// Creates a plan of this case.
    pub async fn plan(&self, suffix: &str, spec: Value) -> Result<PlanRun> {
        PlanRun::create(self.client(), &self.named(suffix), spec).await
    }

    /// The evictions that the controller asked for in this case's namespace. Nobody else may have asked for any.
    pub fn evictions(&self) -> Result<Vec<Request>> {
        let evictions = self.audit().evictions(&self.name)?;
        for eviction in &evictions {
            ensure!(
                eviction.user == Installation::user() && eviction.agent.starts_with("drainplan-controller/"),
                "an eviction that is not the controller's: {}",
                eviction.line()
            );
            ensure!(eviction.precondition().is_some(), "an eviction without a uid: {}", eviction.line());
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
