//! A virtual cluster and a virtual clock, with the controller in it.
//!
//! The API server with its Eviction API, the disruption controller, the controllers that create pods again, the
//! scheduler, kubelets, the node lifecycle and the pod garbage collector do here what they do on a real control plane,
//! as far as a drain can tell; the disruption controller and the Eviction API ask the room `budget`, so there is one
//! model. The controller's processes run the same [`crate::plan::decide`] and the same [`crate::plan::Agenda`] as the
//! engine does. Everything comes from a seed and a list of [`Act`]s, so each course of events can be repeated.
//!
//! [`World`] is the cluster: it is fed with setups and acts and steps from event to event. What is worth judging it
//! tells as [`Fact`]s.

mod act;
mod actor;
mod acts;
mod calls;
mod disruption;
mod facts;
mod house;
mod kubelet;
mod process;
mod scheduler;
mod server;
mod setup;
mod store;
#[cfg(test)]
mod tests;
mod watches;
mod workloads;
mod world;

pub use actor::{ActorSetup, Work};
pub use acts::{Act, CallFault, CallKind, PlanEdit, Stream};
pub use facts::Fact;
pub use process::Process;
pub use setup::{After, BudgetSetup, NodeSetup, OwnerKind, Span, Template, Timing, WorkloadSetup};
pub use store::Store;
pub use world::World;
