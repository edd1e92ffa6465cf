//! Where the controller's processes run: in pods of the cluster itself, which are evicted like any others.

use std::sync::Arc;
use std::time::Duration;

use super::world::World;
use crate::cluster::{Pod, PodKey, PodPhase, Text};

/// Where a process is started.
pub enum Home {
    /// Beside the cluster.
    Host,
    /// In this pod, the one that it was in before or another one.
    Pod { pod: PodKey, same: bool },
    /// Nowhere yet.
    None,
}

impl World {
    /// From now on the processes run in pods of that workload, by namespace and name.
    pub fn house_processes(&mut self, workload: &str) {
        self.house = Some(workload.to_owned());
    }

    /// Finds a pod for a process: its own, as long as that lives, or one that has no process.
    pub(super) fn find_home(&mut self, process: usize) -> Home {
        let Some(house) = self.house.clone() else { return Home::Host };
        let lives = |pod: &Pod| pod.phase == PodPhase::Running && !pod.terminating();
        let own = self.processes.get(process).and_then(|process| process.pod.clone());
        if let Some((key, uid)) = own
            && self.pod(&key, &uid).is_some_and(|pod| lives(pod))
        {
            return Home::Pod { pod: key, same: true };
        }
        let taken = |uid: &Text| {
            self.processes.iter().any(|process| process.pod.as_ref().is_some_and(|(_, of)| of == uid))
        };
        let free = self.pods_of(&house).into_iter().find(|pod| lives(pod) && !taken(&pod.uid));
        let Some(process) = self.processes.get_mut(process) else { return Home::None };
        process.pod = free.as_ref().map(|pod| (pod.key(), pod.uid.clone()));
        process.homeless = free.is_none();
        free.map_or(Home::None, |pod| Home::Pod { pod: pod.key(), same: false })
    }

    /// A pod has changed, or is gone: so has the home of a process.
    pub(super) fn home_changed(&mut self, pod: &Pod, gone: bool) {
        if self.house.is_none() {
            return;
        }
        let lives_there =
            |process: &super::Process| process.pod.as_ref().is_some_and(|(_, uid)| *uid == pod.uid);
        if let Some(process) = self.processes.iter().position(lives_there) {
            // Nobody tells a process whose kubelet is silent.
            let silent = pod.node.as_ref().is_some_and(|node| self.is_silent(node));
            if gone && let Some(homeless) = self.processes.get_mut(process) {
                homeless.pod = None;
            }
            if gone && !silent {
                self.crash(process, Duration::ZERO);
            } else if pod.terminating() && !silent {
                self.end_process(process, Duration::ZERO);
            }
        }
        if !gone && pod.phase == PodPhase::Running {
            let homeless: Vec<usize> = self
                .processes
                .iter()
                .enumerate()
                .filter(|(_, process)| process.homeless)
                .map(|(process, _)| process)
                .collect();
            for process in homeless {
                self.start_process(process);
            }
        }
    }

    /// The pods that processes run in.
    pub fn homes(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let homes = self.processes.iter().filter_map(|process| process.pod.as_ref());
        homes.filter_map(|(key, uid)| self.store().pod_of(key, uid))
    }
}
