//! The random world: namespaces, who owns their pods, how the pods are, and budgets of every shape.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rng::{Deck, Rng};

/// Who owns the pods of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Bare,
    /// An owner reference that is not the controller's.
    BareOwned,
    ReplicationController,
    ReplicaSet,
    Deployment,
    /// A Deployment in the middle of a rollout that does not go on: two ReplicaSets.
    Rollout,
    StatefulSet,
    DaemonSet,
    Job,
    /// A custom resource with a scale.
    Shard,
    /// A custom resource without one.
    Ring,
    /// A Shard whose spec says no number.
    ShardWithoutReplicas,
    /// Two Shards whose scales together exceed 32 bits.
    HugeShards,
    /// A Shard that was deleted, its pods held.
    GoneShard,
    /// A kind that nobody defined.
    Ghost,
    /// A Shard by a version that is not served.
    UnservedShard,
    /// A ReplicaSet whose controller is a custom resource.
    RingsReplicaSet,
    /// A ReplicaSet whose controller is a custom resource of kind Deployment.
    ForeignDeployment,
    /// A ReplicaSet whose Deployment is gone, held by a finalizer.
    OrphanedReplicaSet,
    /// The same, and a Deployment of the same name is there.
    ReplacedDeployment,
    /// A ReplicaSet that was deleted, its pods held.
    GoneReplicaSet,
    /// The same, and a ReplicaSet of the same name is there.
    RebornReplicaSet,
    /// Pods that name a Deployment as their controller.
    PodsOfDeployment,
    /// Pods that name their ReplicaSet in lower case.
    LowerCase,
    /// Pods that name their StatefulSet by a version of old.
    OldStatefulSet,
    Node,
    ConfigMap,
}

impl Owner {
    /// Each with its share. The first ten are the ones that a census counts by itself.
    pub const SHARES: [(Self, usize); 27] = [
        (Self::Bare, 3),
        (Self::ReplicationController, 3),
        (Self::ReplicaSet, 3),
        (Self::Deployment, 3),
        (Self::Rollout, 3),
        (Self::StatefulSet, 3),
        (Self::DaemonSet, 3),
        (Self::Job, 3),
        (Self::Shard, 4),
        (Self::Ring, 3),
        (Self::BareOwned, 1),
        (Self::ShardWithoutReplicas, 1),
        (Self::HugeShards, 1),
        (Self::GoneShard, 1),
        (Self::Ghost, 1),
        (Self::UnservedShard, 1),
        (Self::RingsReplicaSet, 1),
        (Self::ForeignDeployment, 1),
        (Self::OrphanedReplicaSet, 1),
        (Self::ReplacedDeployment, 1),
        (Self::GoneReplicaSet, 1),
        (Self::RebornReplicaSet, 1),
        (Self::PodsOfDeployment, 1),
        (Self::LowerCase, 1),
        (Self::OldStatefulSet, 1),
        (Self::Node, 1),
        (Self::ConfigMap, 1),
    ];
    pub fn name(self) -> String {
        format!("{self:?}")
    }
    /// A controller creates its pods from a template.
    pub fn templated(self) -> bool {
        matches!(
            self,
            Self::ReplicationController
                | Self::ReplicaSet
                | Self::Deployment
                | Self::Rollout
                | Self::StatefulSet
                | Self::DaemonSet
                | Self::Job
                | Self::RingsReplicaSet
                | Self::GoneReplicaSet
                | Self::RebornReplicaSet
        )
    }
    /// The owner goes and its pods stay for their end is never confirmed.
    pub fn goes(self) -> bool {
        matches!(self, Self::GoneShard | Self::GoneReplicaSet | Self::RebornReplicaSet)
    }
}

/// How a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Ready,
    Unready,
    NotStarted,
    Unschedulable,
    Finished,
    /// Deleted, and its end is never confirmed.
    Terminating,
}

/// What happens to an app while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Churn {
    Nothing,
    UnreadyOne,
    FinishOne,
    DeleteOne,
    EvictOne,
    Rescale,
}

/// Pods of one kind of owner.
#[derive(Debug, Clone)]
pub struct App {
    pub id: String,
    pub owner: Owner,
    pub replicas: i32,
    pub labels: BTreeMap<String, String>,
    /// Of the template, where there is one.
    pub health: Health,
    /// Of each pod that is created directly.
    pub pods: Vec<Health>,
    pub churn: Churn,
    /// Which node the pods are bound to, and other choices.
    pub dice: i32,
}

/// The two numbers of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Neither,
    MinInt(i32),
    MinPercent(i32),
    MaxInt(i32),
    MaxPercent(i32),
}

/// A budget.
#[derive(Debug, Clone)]
pub struct Budget {
    pub name: String,
    pub amount: Amount,
    pub policy: Option<&'static str>,
    pub selector: Option<Value>,
    /// It is created, and synced, before any pod.
    pub early: bool,
    /// What it is changed to while running.
    pub later: Option<Amount>,
    /// One of its pods is charged to it and not evicted.
    pub charge: bool,
}

/// A namespace.
#[derive(Debug, Clone)]
pub struct Space {
    pub name: String,
    /// It is deleted, and its pods hold it.
    pub doomed: bool,
    pub apps: Vec<App>,
    pub budgets: Vec<Budget>,
}

/// How the budgets of a namespace select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One budget for each app.
    Each,
    /// One budget over two apps.
    Joint,
    /// An empty selector.
    Whole,
    /// Two budgets on the same pods.
    Overlap,
    /// One budget for each app, and one without a selector.
    Missing,
    NoBudget,
    /// A budget that is healthy in spite of unready pods.
    Sound,
    Doomed,
}

/// How a selector picks one app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    Labels,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Combined,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Neither,
    MinInt,
    MinPercent,
    MaxInt,
    MaxPercent,
}

struct Decks {
    modes: Deck<Mode>,
    owners: Deck<Owner>,
    healths: Deck<Health>,
    churns: Deck<Churn>,
    shapes: Deck<Shape>,
    picks: Deck<Pick>,
    policies: Deck<Option<&'static str>>,
}

/// A world of `count` namespaces.
pub fn world(count: usize, seed: u64) -> Vec<Space> {
    let mut rng = Rng::new(seed);
    let mut decks = Decks {
        modes: Deck::new(&[
            (Mode::Each, 12),
            (Mode::Joint, 2),
            (Mode::Whole, 3),
            (Mode::Overlap, 4),
            (Mode::Missing, 3),
            (Mode::NoBudget, 2),
            (Mode::Sound, 2),
            (Mode::Doomed, 2),
        ]),
        owners: Deck::new(&Owner::SHARES),
        healths: Deck::new(&[
            (Health::Ready, 10),
            (Health::Unready, 4),
            (Health::NotStarted, 2),
            (Health::Unschedulable, 1),
            (Health::Finished, 2),
            (Health::Terminating, 3),
        ]),
        churns: Deck::new(&[
            (Churn::Nothing, 5),
            (Churn::UnreadyOne, 5),
            (Churn::FinishOne, 2),
            (Churn::DeleteOne, 3),
            (Churn::EvictOne, 1),
            (Churn::Rescale, 2),
        ]),
        shapes: Deck::new(&[
            (Shape::Neither, 1),
            (Shape::MinInt, 3),
            (Shape::MinPercent, 2),
            (Shape::MaxInt, 2),
            (Shape::MaxPercent, 2),
        ]),
        picks: Deck::new(&[
            (Pick::Labels, 2),
            (Pick::In, 1),
            (Pick::NotIn, 1),
            (Pick::Exists, 1),
            (Pick::DoesNotExist, 1),
            (Pick::Combined, 1),
        ]),
        policies: Deck::new(&[(None, 2), (Some("IfHealthyBudget"), 1), (Some("AlwaysAllow"), 2)]),
    };
    (0..count).map(|number| decks.space(format!("parity-{number:04}"), &mut rng)).collect()
}

impl Decks {
    fn space(&mut self, name: String, rng: &mut Rng) -> Space {
        let mode = self.modes.draw(rng);
        if mode == Mode::Doomed {
            let mut app = self.app("a0".into(), Owner::Bare, rng);
            app.pods = vec![Health::Terminating; 2];
            let budgets = vec![self.budget("b0", Some(labels(&app.id)), 2, rng)];
            return Space { name, doomed: true, apps: vec![app], budgets };
        }
        if mode == Mode::Sound {
            let mut app = self.app("a0".into(), Owner::Bare, rng);
            app.pods = vec![Health::Ready, Health::Unready, Health::Ready, Health::Unready];
            app.churn = Churn::Nothing;
            let mut budget = self.budget("b0", Some(labels(&app.id)), 4, rng);
            (budget.amount, budget.later, budget.charge) = (Amount::MinInt(rng.between(1, 2)), None, false);
            budget.policy = budget.policy.filter(|policy| *policy != "AlwaysAllow");
            return Space { name, doomed: false, apps: vec![app], budgets: vec![budget] };
        }
        let most = if mode == Mode::Each { 4 } else { 2 };
        let least = if matches!(mode, Mode::Joint | Mode::Each) { 2 } else { 1 };
        let count = rng.between(least, most);
        let mut apps: Vec<App> = (0..count)
            .map(|number| {
                let owner = self.owners.draw(rng);
                self.app(format!("a{number}"), owner, rng)
            })
            .collect();
        let budgets = match mode {
            Mode::Each => self.one_each(&mut apps, rng),
            Mode::Missing => {
                let mut budgets = self.one_each(&mut apps, rng);
                budgets.push(self.budget("missing", None, 3, rng));
                budgets
            }
            Mode::Joint => {
                let selector =
                    json!({"matchExpressions": [{"key": "id", "operator": "In", "values": ["a0", "a1"]}]});
                vec![self.budget("joint", Some(selector), 5, rng)]
            }
            Mode::Whole => vec![self.budget("whole", Some(json!({})), 4, rng)],
            Mode::Overlap => {
                let ids: Vec<&str> = apps.iter().map(|app| &*app.id).collect();
                let all = json!({"matchExpressions": [{"key": "id", "operator": "In", "values": ids}]});
                vec![self.budget("one", Some(labels("a0")), 3, rng), self.budget("all", Some(all), 4, rng)]
            }
            Mode::NoBudget | Mode::Sound | Mode::Doomed => Vec::new(),
        };
        Space { name, doomed: false, apps, budgets }
    }

    fn app(&mut self, id: String, owner: Owner, rng: &mut Rng) -> App {
        let replicas = rng.between(1, 4);
        let health = match self.healths.draw(rng) {
            // Controllers replace what finishes at once, for ever.
            Health::Finished if owner != Owner::Job => Health::Ready,
            // DaemonSets tolerate everything, and a Job would not end.
            Health::Unschedulable if matches!(owner, Owner::DaemonSet | Owner::Job) => Health::Ready,
            health => health,
        };
        let health = if owner.goes() { Health::Terminating } else { health };
        let pods = if owner.templated() {
            Vec::new()
        } else {
            (0..replicas)
                .map(|_| if owner.goes() { Health::Terminating } else { self.healths.draw(rng) })
                .collect()
        };
        let labels = BTreeMap::from([
            ("id".to_owned(), id.clone()),
            ("app".to_owned(), id.clone()),
            ("owner".to_owned(), owner.name()),
        ]);
        App {
            id,
            owner,
            replicas,
            labels,
            health,
            pods,
            churn: self.churns.draw(rng),
            dice: rng.between(0, 999),
        }
    }

    fn one_each(&mut self, apps: &mut [App], rng: &mut Rng) -> Vec<Budget> {
        let ids: Vec<String> = apps.iter().map(|app| app.id.clone()).collect();
        let mut budgets = Vec::new();
        let mut not_in = false;
        for id in &ids {
            let pick = match self.picks.draw(rng) {
                // Two of them would match each other's pods.
                Pick::NotIn if not_in => Pick::Labels,
                pick => pick,
            };
            not_in |= pick == Pick::NotIn;
            let others: Vec<&String> = ids.iter().filter(|other| *other != id).collect();
            let selector = selector(pick, id, &others, apps, rng);
            budgets.push(self.budget(&format!("of-{id}"), Some(selector), 4, rng));
        }
        budgets
    }

    fn budget(&mut self, name: &str, selector: Option<Value>, pods: i32, rng: &mut Rng) -> Budget {
        let amount = self.amount(pods, rng);
        let later = rng.percent(25).then(|| self.amount(pods, rng));
        Budget {
            name: name.to_owned(),
            amount,
            policy: self.policies.draw(rng),
            selector,
            early: rng.percent(65),
            later,
            charge: rng.percent(50),
        }
    }

    fn amount(&mut self, pods: i32, rng: &mut Rng) -> Amount {
        const PERCENTS: [i32; 12] = [0, 1, 10, 25, 30, 33, 50, 66, 75, 90, 99, 100];
        let percent = rng.pick(&PERCENTS).copied().unwrap_or(50);
        match self.shapes.draw(rng) {
            Shape::Neither => Amount::Neither,
            Shape::MinInt => Amount::MinInt(rng.between(0, pods)),
            Shape::MinPercent => Amount::MinPercent(percent),
            Shape::MaxInt => Amount::MaxInt(rng.between(0, pods)),
            Shape::MaxPercent => Amount::MaxPercent(percent),
        }
    }
}

fn labels(id: &str) -> Value {
    json!({"matchLabels": {"id": id}})
}

/// A selector that picks one app, and the labels it needs.
fn selector(pick: Pick, id: &str, others: &[&String], apps: &mut [App], rng: &mut Rng) -> Value {
    let expression = |key: &str, operator: &str, values: Option<Value>| match values {
        Some(values) => json!({"key": key, "operator": operator, "values": values}),
        None => json!({"key": key, "operator": operator}),
    };
    let one = |expression: Value| json!({"matchExpressions": [expression]});
    let unlabelled = rng.percent(70);
    let (mine, theirs): (Vec<&mut App>, Vec<&mut App>) = apps.iter_mut().partition(|app| app.id == id);
    match pick {
        Pick::Labels => labels(id),
        Pick::In => one(expression("id", "In", Some(json!([id, "other"])))),
        Pick::NotIn => {
            if unlabelled {
                for app in mine {
                    app.labels.remove("app");
                }
            }
            one(expression(
                "app",
                "NotIn",
                Some(json!(others.iter().chain([&&"other".to_owned()]).collect::<Vec<_>>())),
            ))
        }
        Pick::Exists => {
            let key = format!("only-{id}");
            for app in mine {
                app.labels.insert(key.clone(), String::new());
            }
            one(expression(&key, "Exists", None))
        }
        Pick::DoesNotExist => {
            let key = format!("not-{id}");
            for app in theirs {
                app.labels.insert(key.clone(), "x".to_owned());
            }
            one(expression(&key, "DoesNotExist", None))
        }
        Pick::Combined => json!({
            "matchLabels": {"id": id},
            "matchExpressions": [
                expression("id", "Exists", None),
                expression("app", "NotIn", Some(json!(["other"]))),
                expression("nothing", "DoesNotExist", None),
            ],
        }),
    }
}
