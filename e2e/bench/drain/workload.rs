//! What is on the nodes that are drained, and how soon budgets let it go.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use serde_json::{Map, Value, json};

use super::harness::{Recorder, Sight, Space, Template, allowed, is_ready, node_of, nodes};

/// The namespace of the services, and the pool labels of the nodes.
pub const SPACE: &str = "load";
pub const TARGETS: &str = "targets";
const SPARES: &str = "spares";
/// The pods that a node has room for, as kubelets have it. A pod that leaves one target may go to another.
const ROOM: u32 = 110;
/// How long a whole workload may take to be Ready.
const SETTLES: Duration = Duration::from_mins(3);

/// Services on nodes that are drained, and nodes to go to.
pub struct Workload {
    pub name: &'static str,
    pub targets: u32,
    pub spares: u32,
    pub services: Vec<Service>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Deployment,
    StatefulSet,
}

/// A service and its budget, if it has one.
#[derive(Clone)]
pub struct Service {
    pub name: String,
    pub kind: Kind,
    pub replicas: u32,
    /// The field and what is written there, and how many pods that lets go at once.
    pub budget: Option<(&'static str, Value, u32)>,
    /// Seconds from a pod's start until it is Ready, and from its deletion until it is gone.
    pub ready_after: u32,
    pub terminate_after: u32,
}

impl Service {
    fn template(&self) -> Template {
        let seconds = |seconds: u32| format!("{seconds}s");
        let template = Template::new().sim("ready-after", &seconds(self.ready_after));
        if self.terminate_after == 0 {
            return template;
        }
        template.sim("terminate-after", &seconds(self.terminate_after))
    }

    /// Creates it and its budget.
    pub async fn create(&self, space: &Space) -> Result<()> {
        if let Some((field, amount, _)) = &self.budget {
            space.budget(&self.name, &[&self.name], json!({*field: amount})).await?;
        }
        match self.kind {
            Kind::Deployment => space.deployment(&self.name, self.replicas, &self.template()).await.map(drop),
            Kind::StatefulSet => {
                space.stateful_set(&self.name, self.replicas, &self.template()).await.map(drop)
            }
        }
    }

    /// In how many turns its budget lets all pods go; 0 without one.
    pub fn turns(&self) -> u32 {
        self.budget.as_ref().map_or(0, |(_, _, at_once)| self.replicas.div_ceil(*at_once))
    }

    /// How long its turns take at least, in seconds.
    fn at_least(&self) -> u32 {
        // A StatefulSet creates a pod anew when the old one is gone.
        let away = if self.kind == Kind::StatefulSet { self.terminate_after } else { 0 };
        self.turns() * (self.ready_after + away)
    }
}

impl Workload {
    /// Twenty services of six.
    pub fn a() -> Self {
        let service = |number| Service {
            name: format!("web-{number}"),
            kind: Kind::Deployment,
            replicas: 6,
            budget: Some(("maxUnavailable", json!(1), 1)),
            ready_after: 3,
            terminate_after: 0,
        };
        Self { name: "A", targets: 5, spares: 3, services: (1..=20).map(service).collect() }
    }

    /// Larger and mixed.
    pub fn b() -> Self {
        let mut services = Vec::new();
        let mut add = |count: u32, service: &Service| {
            services.extend(
                (1..=count)
                    .map(|number| Service { name: format!("{}-{number}", service.name), ..service.clone() }),
            );
        };
        let plain = Service {
            name: "percent".to_owned(),
            kind: Kind::Deployment,
            replicas: 8,
            budget: Some(("maxUnavailable", json!("25%"), 2)),
            ready_after: 2,
            terminate_after: 0,
        };
        add(12, &plain);
        let name = "minimum".to_owned();
        let budget = Some(("minAvailable", json!(3), 2));
        add(8, &Service { name, replicas: 5, budget, ready_after: 3, ..plain.clone() });
        let (name, kind) = ("ordinal".to_owned(), Kind::StatefulSet);
        let budget = Some(("maxUnavailable", json!(1), 1));
        add(4, &Service { name, kind, replicas: 4, budget, terminate_after: 2, ..plain.clone() });
        let name = "slow".to_owned();
        let budget = Some(("minAvailable", json!("50%"), 1));
        add(4, &Service { name, replicas: 3, budget, terminate_after: 4, ..plain.clone() });
        let name = "free".to_owned();
        add(6, &Service { name, replicas: 6, budget: None, ..plain });
        Self { name: "B", targets: 8, spares: 4, services }
    }

    pub fn pods(&self) -> u32 {
        self.services.iter().map(|service| service.replicas).sum()
    }

    /// The targets' names, in the order in which they are drained.
    pub fn target_names(&self) -> Vec<String> {
        (1..=self.targets).map(|number| format!("target-{number}")).collect()
    }

    /// The service whose budget takes longest.
    pub fn slowest(&self) -> Option<&Service> {
        self.services
            .iter()
            .filter(|service| service.budget.is_some())
            .max_by_key(|service| service.at_least())
    }

    /// In one line.
    pub fn told(&self) -> String {
        let budgeted = self.services.iter().filter(|service| service.budget.is_some()).count();
        format!(
            "workload {}: {} pods of {} services, {budgeted} with a budget, on {} nodes; {} spare nodes",
            self.name,
            self.pods(),
            self.services.len(),
            self.targets,
            self.spares
        )
    }

    /// Creates the targets and the services; returns when all is Ready and counted.
    pub async fn load(&self, client: &Client) -> Result<Space> {
        nodes::create(client.clone(), &self.target_names(), &pool(TARGETS), ROOM).await?;
        let space = Space::create(client.clone(), SPACE, Map::new()).await?;
        for service in &self.services {
            service.create(&space).await?;
        }
        let pods = Recorder::start(space.pods(), None).await?;
        let all = usize::try_from(self.pods())?;
        pods.until("all pods are Ready", SETTLES, |record| {
            let ready = record.now.values().filter(|pod| is_ready(pod)).count();
            if ready == all && record.now.len() == all {
                Sight::Found(())
            } else {
                Sight::NotYet(format!("{ready} of {all}"))
            }
        })
        .await?;
        let budgets = Recorder::start(space.budgets(), None).await?;
        budgets
            .until("the budgets are counted", SETTLES, |record| {
                let counted = |service: &&Service| {
                    let budget = record.now.get(&format!("{SPACE}/{}", service.name));
                    let room = service.budget.as_ref().and_then(|(.., room)| i32::try_from(*room).ok());
                    room.is_none() || budget.and_then(|budget| allowed(budget)) == room
                };
                let left: Vec<&str> = self
                    .services
                    .iter()
                    .filter(|service| !counted(service))
                    .map(|service| service.name.as_str())
                    .collect();
                if left.is_empty() { Sight::Found(()) } else { Sight::NotYet(left.join(", ")) }
            })
            .await?;
        let elsewhere = pods.with(|record| {
            let targets = self.target_names();
            record.now.values().filter(|pod| !targets.iter().any(|target| target == node_of(pod))).count()
        });
        ensure!(elsewhere == 0, "{elsewhere} pods are not on the targets");
        Ok(space)
    }

    /// Creates the spare nodes.
    pub async fn open_spares(&self, client: &Client) -> Result<()> {
        let names: Vec<String> = (1..=self.spares).map(|number| format!("spare-{number}")).collect();
        nodes::create(client.clone(), &names, &pool(SPARES), ROOM).await
    }
}

/// The label of a pool of nodes.
pub fn pool(name: &str) -> Map<String, Value> {
    Map::from_iter([("pool".to_owned(), json!(name))])
}
