//! The tasks of the process: when one of them ends although nobody asked it to, the process does.
//!
//! A part that is gone would not be missed otherwise: the others go on, on what they saw last.

use anyhow::anyhow;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Starts parts and hears of their ends.
pub struct Parts {
    tell: mpsc::UnboundedSender<anyhow::Result<&'static str>>,
    ends: mpsc::UnboundedReceiver<anyhow::Result<&'static str>>,
}

impl Parts {
    pub fn new() -> Self {
        let (tell, ends) = mpsc::unbounded_channel();
        Self { tell, ends }
    }

    /// Starts a part of this name.
    pub fn start(
        &self,
        what: &'static str,
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) -> JoinHandle<()> {
        let (tell, part) = (self.tell.clone(), tokio::spawn(part));
        tokio::spawn(async move {
            let end = match part.await {
                Ok(Ok(())) => Ok(what),
                Ok(Err(error)) => Err(error),
                Err(error) => Err(anyhow!("{what} ended abnormally: {error}")),
            };
            // Nobody listens any more only when everything is over.
            let _ = tell.send(end);
        })
    }

    /// Returns when a part has ended, with the reason.
    pub async fn broken(&mut self) -> anyhow::Error {
        match self.ends.recv().await {
            Some(Ok(what)) => anyhow!("{what} ended although nobody asked it to"),
            Some(Err(error)) => error,
            // `tell` lives as long as this.
            None => std::future::pending().await,
        }
    }

    /// The first failure among the ends that nobody has heard of yet.
    pub fn failure(&mut self) -> anyhow::Result<()> {
        while let Ok(end) = self.ends.try_recv() {
            end?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_ends_is_heard_of_with_its_reason() {
        let mut parts = Parts::new();
        parts.start("the watch of nodes", async { Ok(()) });
        assert_eq!(parts.broken().await.to_string(), "the watch of nodes ended although nobody asked it to");
        parts.start("the lease", async { Err(anyhow!("it is gone")) });
        assert_eq!(parts.broken().await.to_string(), "it is gone");
        parts.start("the loop", async { panic!("a bug") });
        let told = parts.broken().await.to_string();
        assert!(told.starts_with("the loop ended abnormally: ") && told.contains("panicked"), "{told}");
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_is_no_failure() {
        let mut parts = Parts::new();
        parts.start("the loop", async { Ok(()) }).await.unwrap();
        parts.failure().unwrap();
        parts.start("the loop", async { Err(anyhow!("it is broken")) }).await.unwrap();
        assert_eq!(parts.failure().unwrap_err().to_string(), "it is broken");
    }
}
