//! The drain, line by line as it happens.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use drainplan::api::{DrainPlanStatus, NodePhase, NodeStatus, WaitingPod, condition};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::time::Instant;

use super::harness::{Installation, Record, Sight, is_ready, node_of, ready_pods, terminating};
use super::screen::{Colour, cut, paint, say};
use super::story::{PLAN, REPLICAS, Story};

/// How long the plan may take until it is given up.
const LIMIT: Duration = Duration::from_mins(3);
/// The width of what is said about one thing.
const WIDTH: usize = 88;

/// Applies the plan and shows what happens until it has ended.
pub async fn drain(installation: &Installation, story: &Story) -> Result<DrainPlanStatus> {
    let screen = RefCell::new(story.shop.with(Screen::new));
    Story::apply(installation).await?;
    let mut shown = false;
    loop {
        let moment = tokio::select! {
            moment = story.plan.until("ends", LIMIT, |status| screen.borrow_mut().plan(status, !shown)) => moment?,
            moment = story.shop.until("pods", LIMIT, |record| screen.borrow_mut().pods(record)) => moment?,
        };
        match moment {
            Moment::Waiting => {
                shown = true;
                print_table(installation).await?;
            }
            Moment::Ended(status) => return Ok(*status),
        }
    }
}

/// What the show stops for.
enum Moment {
    /// The first pod waits on a budget: time to look at the table.
    Waiting,
    Ended(Box<DrainPlanStatus>),
}

/// What was said already.
struct Screen {
    began: Instant,
    said: BTreeMap<String, String>,
    /// How many events of pods were looked at.
    seen: usize,
}

impl Screen {
    /// Of the pods that are there already nothing is said until they go.
    fn new(record: &Record<Pod>) -> Self {
        let said = record.now.keys().map(|pod| (format!("{pod} is ready"), String::new())).collect();
        Self { began: Instant::now(), said, seen: record.events.len() }
    }

    fn line(&self, subject: &str, colour: Colour, word: &str, text: &str) {
        let at = paint(Colour::Faint, &format!("{:5.1} s", self.began.elapsed().as_secs_f64()));
        let word = paint(colour, &format!("{word:<8}"));
        say!("{at}  {subject:<8}  {word}  {}", cut(text, WIDTH));
    }

    fn is_new(&mut self, subject: &str, what: String) -> bool {
        let before = self.said.insert(subject.to_owned(), what.clone());
        before != Some(what)
    }

    fn plan(&mut self, status: &DrainPlanStatus, stop_when_waiting: bool) -> Sight<Moment> {
        let mut waiting = false;
        let mut nodes: Vec<&NodeStatus> = status.nodes.iter().collect();
        // What has ended comes before what begins.
        nodes.sort_by_key(|node| Reverse(node.phase));
        for node in nodes {
            self.node(node);
            let draining = node.phase == NodePhase::Draining;
            if let Some(pod) = node.waiting.first().filter(|_| draining) {
                waiting = true;
                if self.is_new(&format!("{} waits", node.name), pod.reason.clone()) {
                    self.line(&node.name, Colour::Yellow, "waits", &waits(pod, node.waiting.len()));
                }
            }
        }
        let stalled = status.conditions.iter().find(|condition| condition.type_ == condition::STALLED);
        if let Some(stalled) = stalled.filter(|_| status.finished_at.is_none())
            && self.is_new("plan", stalled.reason.clone())
        {
            self.line("plan", Colour::Yellow, "Stalled", &stalled.message);
        }
        let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
        let progress = status.progress.as_deref().unwrap_or("-");
        if status.finished_at.is_some() {
            let colour = if phase == "Completed" { Colour::Green } else { Colour::Red };
            self.line("plan", colour, &phase, &format!("{progress} nodes drained"));
            return Sight::Found(Moment::Ended(Box::new(status.clone())));
        }
        if waiting && stop_when_waiting {
            return Sight::Found(Moment::Waiting);
        }
        Sight::NotYet(format!("{phase} {progress}"))
    }

    fn node(&mut self, node: &NodeStatus) {
        let reason = node.reason.clone().unwrap_or_default();
        if !self.is_new(&node.name, format!("{:?} {reason}", node.phase)) {
            return;
        }
        let name = &node.name;
        let message = node.message.clone().unwrap_or_default();
        match node.phase {
            NodePhase::Draining => {
                self.line(name, Colour::Bold, "Draining", &format!("{} pods to move", node.pods_left));
            }
            NodePhase::Done => {
                self.line(
                    name,
                    Colour::Green,
                    "Done",
                    &format!("{} pods moved, uncordoned", node.pods_evicted),
                );
            }
            phase => {
                let why = node.waiting.first().map_or(message, |pod| waits(pod, node.waiting.len()));
                match phase {
                    NodePhase::Pending => self.line(name, Colour::Yellow, &reason, &why),
                    _ => self.line(name, Colour::Red, &format!("{phase:?}"), &format!("{reason}, {why}")),
                }
            }
        }
    }

    fn pods(&mut self, record: &Record<Pod>) -> Sight<Moment> {
        for seen in record.events.iter().skip(self.seen) {
            let pod = &seen.object;
            let (name, node) = (format!("shop/{}", pod.name_any()), node_of(pod));
            if terminating(pod) {
                if self.is_new(&format!("{name} goes"), String::new()) {
                    self.line(node, Colour::Faint, "evicted", &name);
                }
            } else if is_ready(pod) && self.is_new(&format!("{name} is ready"), String::new()) {
                let ready = ready_pods(record.now.values().map(AsRef::as_ref), "web");
                self.line(node, Colour::Faint, "Ready", &format!("{name} ({ready} of {REPLICAS})"));
            }
        }
        self.seen = record.events.len();
        Sight::NotYet("pods".to_owned())
    }
}

/// Waiting pods in one line, by the first of them.
fn waits(pod: &WaitingPod, pods: usize) -> String {
    let who = if pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") };
    let budgets: Vec<String> = pod.budgets.iter().map(|name| format!("{}/{name}", pod.namespace)).collect();
    format!("{who} of {}: {}, {:?}", budgets.join(" and "), pod.reason, pod.outlook)
}

async fn print_table(installation: &Installation) -> Result<()> {
    let table = installation.testbed.kubectl(&["get", "drainplan"]).await?;
    say!("\n{}\n{}\n", paint(Colour::Faint, "$ kubectl get drainplan"), table.trim_end());
    Ok(())
}

/// The table and the events, at the end.
pub async fn print_report(installation: &Installation) -> Result<()> {
    print_table(installation).await?;
    let about = format!("involvedObject.kind=DrainPlan,involvedObject.name={PLAN}");
    let columns = "--output=custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message";
    let sorted = "--sort-by=.eventTime";
    let events = ["get", "events", sorted, columns, "--field-selector", &about];
    let events = installation.testbed.kubectl(&events).await?;
    say!("{}", paint(Colour::Faint, "$ kubectl get events   (those about the plan)"));
    events.lines().for_each(|line| say!("{}", cut(line, WIDTH + 22)));
    Ok(())
}
