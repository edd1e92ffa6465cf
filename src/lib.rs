//! drainplan empties Kubernetes nodes for maintenance and can always say why it is not done yet.
//!
//! The rooms, from the inside out: [`api`] (what users write and read), [`cluster`] (what is observed),
//! [`budget`] (what the Eviction API will say), [`explain`] (why a pod waits), [`plan`] (what to do now),
//! [`simulate`] (the same on a virtual cluster), [`engine`] (does it) and [`cli`] (the commands). `docs/architecture.md` has the drawing and the rules.

pub mod api;
pub mod budget;
pub mod cli;
pub mod cluster;
pub mod engine;
pub mod explain;
pub mod plan;
pub mod simulate;
