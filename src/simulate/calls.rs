//! The errands of a process as calls to the server: they take time, get lost, fail, and are answered late.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::Status;

use super::acts::{CallFault, CallKind};
use super::facts::Fact;
use super::server::{self, Refused};
use super::world::{Event, World};
use crate::api::DrainPlan;
use crate::cluster::{Object, Pod, Raw, Right, Scale};
use crate::plan::{Answer, Errand, Evict, Failure, Outcome, Seen};

/// How long a call may take; less when the lease ends before.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Evictions pass admission webhooks, which may take their time.
const EVICTION_LIMIT: Duration = Duration::from_secs(30);

/// A call under way.
#[derive(Debug)]
pub struct Call {
    process: usize,
    life: u32,
    errand: Errand,
    /// Counts the requests of the errand: an eviction looks at its pod first.
    stage: u32,
    fault: Option<CallFault>,
    /// When it was decided on.
    sent: Timestamp,
    /// The server has seen its request.
    arrived: bool,
    /// Nobody waits for the answer any more.
    abandoned: bool,
}

/// What a call is answered.
#[derive(Debug)]
pub enum Response {
    Plan(Option<Box<DrainPlan>>),
    Node(Option<Box<Raw>>),
    Pods(Vec<String>),
    Plans(Vec<Seen>),
    Scale(Scale),
    Right(Right),
    Pod(Option<(String, bool)>),
    Evicted,
    Refused(Refused),
}

impl Call {
    /// The process waits for its answer.
    pub(super) fn is_awaited_by(&self, process: usize, life: u32) -> bool {
        (self.process, self.life) == (process, life) && !self.abandoned
    }

    fn kind(&self) -> CallKind {
        match &self.errand {
            Errand::WriteStatus(_) => CallKind::Status,
            Errand::AddFinalizer(_) | Errand::RemoveFinalizer(_) => CallKind::Finalizer,
            Errand::PatchNode { .. } => CallKind::Node,
            Errand::ListPods { .. } => CallKind::List,
            Errand::ListPlans => CallKind::Plans,
            Errand::ReadScale { .. } => CallKind::Scale,
            Errand::AskRight { .. } => CallKind::Right,
            Errand::Evict { .. } if self.stage == 0 => CallKind::Look,
            Errand::Evict { .. } | Errand::HandOver => CallKind::Evict,
        }
    }
}

impl World {
    /// A process begins an errand.
    pub(super) fn begin(&mut self, process: usize, errand: Errand) {
        let Some(life) = self.processes.get(process).map(|process| process.life) else { return };
        if matches!(errand, Errand::HandOver) {
            self.resign(process);
            return self.hand_in(process, life, Outcome::HandedOver);
        }
        if let Errand::Evict { eviction, .. } = &errand {
            self.tell(Fact::EvictionSent { process, eviction: eviction.clone() });
        }
        let call = Call {
            process,
            life,
            stage: u32::from(matches!(errand, Errand::Evict { look: false, .. })),
            errand,
            fault: None,
            sent: self.now,
            arrived: false,
            abandoned: false,
        };
        let id = self.next_call;
        self.next_call += 1;
        self.calls.insert(id, call);
        self.send_request(id);
    }

    /// Sends the next request of a call; without time to act it is not sent.
    fn send_request(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else { return };
        let (kind, stage, process) = (call.kind(), call.stage, call.process);
        // Only whoever leads changes something; scales are read by all.
        let left = match kind {
            CallKind::Scale => Some(CALL_LIMIT),
            _ => self.may_act(process),
        };
        let Some(left) = left else {
            self.after(Duration::ZERO, Event::NotSent(id));
            return;
        };
        let limit = if kind == CallKind::Evict { EVICTION_LIMIT } else { CALL_LIMIT };
        self.after(left.min(limit), Event::GiveUp(id, stage));
        let fault = if self.cut_off(process) { Some(CallFault::Lost) } else { self.fault_for(kind) };
        let mut travels = self.takes("request", self.timing.request);
        if let Some(CallFault::Slow(wait)) = fault {
            travels += wait;
        }
        if let Some(call) = self.calls.get_mut(&id) {
            call.fault = fault;
            call.arrived = false;
        }
        if fault != Some(CallFault::Lost) {
            self.after(travels, Event::Arrive(id));
        }
    }

    fn fault_for(&mut self, kind: CallKind) -> Option<CallFault> {
        let at = self.call_faults.iter().position(|(of, _)| *of == kind)?;
        let (_, fault) = self.call_faults.remove(at);
        let what = match fault {
            CallFault::Lost => "lost",
            CallFault::AnswerLost => "answer lost",
            CallFault::Slow(_) => "slow",
            CallFault::Refused(_) => "refused",
            CallFault::Misreported(_) => "done and reported as failed",
        };
        self.count_fault(&format!("call {kind:?} {what}"));
        Some(fault)
    }

    /// A request arrives at the server.
    pub(super) fn arrive(&mut self, id: u64) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.arrived = true;
        let (fault, process, life) = (call.fault, call.process, call.life);
        self.count_step();
        let response = match fault {
            Some(CallFault::Refused(code)) => Response::Refused(made_up(code)),
            _ => self.carry_out(id),
        };
        let response = match fault {
            Some(CallFault::Misreported(code)) => Response::Refused(made_up(code)),
            _ => response,
        };
        self.crash_between(process);
        if !self.lives(process, life) || self.calls.get(&id).is_none_or(|call| call.abandoned) {
            self.calls.remove(&id);
        } else if fault != Some(CallFault::AnswerLost) && !self.cut_off(process) {
            let travels = self.takes("answer", self.timing.request);
            self.after(travels, Event::Return(id, Box::new(response)));
        }
    }

    /// The leader dies after a number of calls.
    fn crash_between(&mut self, process: usize) {
        let Some((left, back)) = self.crash_after else { return };
        if self.leader() != Some(process) {
            return;
        }
        if left > 1 {
            self.crash_after = Some((left - 1, back));
        } else {
            self.crash_after = None;
            self.crash(process, back);
        }
    }

    fn carry_out(&mut self, id: u64) -> Response {
        let Some(call) = self.calls.get(&id) else { return Response::Pods(Vec::new()) };
        let (process, stage, sent) = (call.process, call.stage, call.sent);
        let errand = call.errand.clone();
        match errand {
            Errand::WriteStatus(write) => {
                let name = write.plan.metadata.name.clone().unwrap_or_default();
                let before = self.store.plan(&name).and_then(|plan| plan.status.clone()).map(Box::new);
                let written = server::write_status(&mut self.store, &write.plan, &write.status);
                if written.is_ok()
                    && let Some(plan) = self.store.plan(&name).cloned()
                {
                    self.tell(Fact::StatusWritten { process, before, plan });
                }
                written.map_or_else(Response::Refused, |plan| Response::Plan(Some(Box::new(plan))))
            }
            Errand::AddFinalizer(plan) => finalizer(server::set_finalizer(&mut self.store, &plan, true)),
            Errand::RemoveFinalizer(plan) => finalizer(server::set_finalizer(&mut self.store, &plan, false)),
            Errand::PatchNode { node, change, patch } => {
                let before = self.store.cluster().node(&node).cloned();
                if let Err(status) = server::patch_node(&mut self.store, &node, &patch) {
                    return Response::Refused(status);
                }
                let after = self.store.cluster().node(&node).cloned();
                if let (Some(before), Some(after)) = (before, after.clone()) {
                    self.tell(Fact::NodePatched { process, change, before, after });
                }
                Response::Node(after.and_then(|node| Raw::kept(Object::Node((*node).clone()))).map(Box::new))
            }
            Errand::ListPods { node, .. } => {
                let pods = server::list_pods(&self.store, &node);
                self.tell(Fact::Listed { node });
                Response::Pods(pods)
            }
            Errand::ListPlans => {
                let seen = |plan: &Arc<DrainPlan>| Seen::Readable(Box::new((**plan).clone()));
                Response::Plans(self.store.plans().map(seen).collect())
            }
            Errand::ReadScale { owner, .. } => Response::Scale(server::read_scale(&self.store, &owner.uid)),
            Errand::AskRight { .. } => Response::Right(self.right.clone()),
            Errand::Evict { eviction, .. } if stage == 0 => {
                Response::Pod(server::look(&self.store, &eviction.pod))
            }
            Errand::Evict { eviction, look } => self.evict(process, eviction, look, sent),
            // It is no call: the elector does it.
            Errand::HandOver => Response::Pods(Vec::new()),
        }
    }

    fn evict(&mut self, process: usize, eviction: Evict, looked: bool, sent: Timestamp) -> Response {
        let cluster = self.store.cluster();
        let pod = cluster.pod(&eviction.pod).cloned();
        let let_go = |pod: &Pod| {
            cluster.budgets_of(pod).any(|budget| budget.status.disrupted_pods.contains_key(&pod.name))
        };
        let healthy = pod.as_ref().is_some_and(|pod| pod.ready && !pod.terminating() && !let_go(pod));
        let budget = pod.as_ref().and_then(|pod| cluster.budgets_of(pod).next().map(|budget| budget.key()));
        let grace = self.pods.get(&eviction.uid).map_or(30, |state| state.template.grace_seconds);
        let reborn = pod.as_ref().is_some_and(|pod| pod.uid != eviction.uid);
        let answer = if self.right == Right::Granted {
            server::evict(&mut self.store, &eviction, grace, self.now)
        } else {
            Err(made_up(403))
        };
        let code = answer.as_ref().map_or_else(|status| status.code, |_| 201);
        let charged = answer.as_ref().is_ok_and(|charged| *charged).then_some(budget).flatten();
        self.tell(Fact::Evicted { process, eviction, sent, code, charged, healthy, reborn, looked });
        answer.map_or_else(Response::Refused, |_| Response::Evicted)
    }

    /// An answer arrives at its process.
    pub(super) fn return_to(&mut self, id: u64, response: Response) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.abandoned {
            self.calls.remove(&id);
            return;
        }
        if let (Errand::Evict { eviction, .. }, Response::Pod(Some((uid, terminating))), 0) =
            (&call.errand, &response, call.stage)
            && eviction.is_about(Some(uid), *terminating)
        {
            call.stage = 1;
            self.send_request(id);
            return;
        }
        let Some(call) = self.calls.remove(&id) else { return };
        self.count_step();
        self.conclude(call, response);
    }

    /// A caller waits no longer; what it has sent may still arrive.
    pub(super) fn give_up(&mut self, id: u64, stage: u32) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.stage != stage || call.abandoned {
            return;
        }
        call.abandoned = true;
        let (process, life, errand) = (call.process, call.life, call.errand.clone());
        if call.arrived || call.fault == Some(CallFault::Lost) {
            self.calls.remove(&id);
        }
        let failure = Failure { code: None, message: "the API server did not answer in time".to_owned() };
        self.conclude_failed(process, life, errand, failure);
    }

    /// The lease leaves no time for a request.
    pub(super) fn not_sent(&mut self, id: u64) {
        let Some(Call { process, life, errand, .. }) = self.calls.remove(&id) else { return };
        if let Errand::Evict { eviction, .. } = errand {
            self.hand_in(process, life, Outcome::Eviction { eviction, answer: Answer::Withdrawn });
        } else {
            let failure = Failure { code: None, message: "this process may not act any more".to_owned() };
            self.conclude_failed(process, life, errand, failure);
        }
    }

    fn conclude(&mut self, call: Call, response: Response) {
        let Call { process, life, errand, .. } = call;
        let outcome = match (errand, response) {
            (Errand::Evict { eviction, .. }, response) => {
                let answer = match response {
                    Response::Evicted => Answer::Accepted,
                    Response::Refused(status) if status.code != 404 => Answer::Refused(status),
                    _ => Answer::Withdrawn,
                };
                Outcome::Eviction { eviction, answer }
            }
            (errand, Response::Refused(status)) => {
                let message = format!("{} ({})", status.message, status.code);
                self.conclude_failed(process, life, errand, Failure { code: Some(status.code), message });
                return;
            }
            (Errand::WriteStatus(write), Response::Plan(Some(plan))) => Outcome::Status {
                uid: write.plan.metadata.uid.clone().unwrap_or_default(),
                counted: write.counted,
                notices: write.notices,
                result: Ok(*plan),
            },
            (Errand::AddFinalizer(plan) | Errand::RemoveFinalizer(plan), Response::Plan(written)) => {
                let uid = plan.uid.clone().unwrap_or_default();
                Outcome::Finalizer { uid, result: Ok(written.map(|plan| *plan)) }
            }
            (Errand::PatchNode { node: name, change, .. }, Response::Node(Some(node))) => {
                Outcome::Node { name, change, result: Ok(*node) }
            }
            (Errand::ListPods { node, since }, Response::Pods(pods)) => {
                Outcome::Listed { node, since, pods: Ok(pods) }
            }
            (Errand::ListPlans, Response::Plans(plans)) => Outcome::Plans(Ok(plans)),
            (Errand::AskRight { namespace }, Response::Right(right)) => {
                Outcome::Right { namespace, answer: Ok(right) }
            }
            (Errand::ReadScale { owner, .. }, Response::Scale(scale)) => {
                Outcome::Scale { owner: owner.uid, scale }
            }
            (errand, _) => {
                let failure = Failure { code: None, message: "an answer to another question".to_owned() };
                self.conclude_failed(process, life, errand, failure);
                return;
            }
        };
        self.hand_in(process, life, outcome);
    }

    fn conclude_failed(&mut self, process: usize, life: u32, errand: Errand, failure: Failure) {
        let outcome = match errand {
            Errand::WriteStatus(write) => Outcome::Status {
                uid: write.plan.metadata.uid.clone().unwrap_or_default(),
                counted: write.counted,
                notices: write.notices,
                result: Err(failure),
            },
            Errand::AddFinalizer(plan) | Errand::RemoveFinalizer(plan) => {
                let uid = plan.uid.clone().unwrap_or_default();
                Outcome::Finalizer { uid, result: Err(failure) }
            }
            Errand::PatchNode { node: name, change, .. } => {
                Outcome::Node { name, change, result: Err(failure) }
            }
            Errand::ListPods { node, since } => Outcome::Listed { node, since, pods: Err(failure) },
            Errand::ListPlans => Outcome::Plans(Err(failure)),
            Errand::AskRight { namespace } => Outcome::Right { namespace, answer: Err(failure) },
            Errand::ReadScale { owner, .. } => {
                Outcome::Scale { owner: owner.uid, scale: Scale::Unreadable(failure.message.into()) }
            }
            Errand::Evict { eviction, .. } => {
                Outcome::Eviction { eviction, answer: Answer::Unanswered(failure) }
            }
            Errand::HandOver => Outcome::HandedOver,
        };
        self.hand_in(process, life, outcome);
    }

    fn hand_in(&mut self, process: usize, life: u32, outcome: Outcome) {
        if !self.lives(process, life) {
            return;
        }
        if let Outcome::Eviction { eviction, answer } = &outcome {
            let accepted = matches!(answer, Answer::Accepted);
            self.tell(Fact::EvictionConcluded { process, eviction: eviction.clone(), accepted });
        }
        let moment = self.moment(process);
        if let Some(concluding) = self.processes.get_mut(process) {
            concluding.agenda.conclude(outcome, moment);
        }
        self.attend(process);
        self.say_farewell(process);
    }
}

fn finalizer(written: Result<Option<DrainPlan>, Refused>) -> Response {
    written.map_or_else(Response::Refused, |plan| Response::Plan(plan.map(Box::new)))
}

/// A refusal that has nothing to do with the request.
fn made_up(code: u16) -> Refused {
    let (reason, message) = match code {
        403 => {
            ("Forbidden", "pods is forbidden: User \"drainplan\" cannot create resource \"pods/eviction\"")
        }
        409 => ("Conflict", "the object has been modified"),
        422 => ("Invalid", "ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: not now"),
        429 => ("TooManyRequests", "too many requests, please try again later"),
        500 => ("InternalError", "failed calling webhook \"keep.example.com\": connection refused"),
        _ => ("ServiceUnavailable", "the server is currently unable to handle the request"),
    };
    Box::new(Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::default() })
}
