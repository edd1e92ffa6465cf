//! The controller, as a process beside the cluster.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

/// How often a process is asked whether it is ready, or gone.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long it may take to be ready, and to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to answer a request for its health.
const ANSWERS: Duration = Duration::from_secs(2);

/// The name that it signs the lease with.
pub const NAME: &str = "e2e";

/// The controller; it is killed when this is dropped.
pub struct Controller {
    program: PathBuf,
    arguments: Vec<String>,
    address: SocketAddr,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Controller {
    /// Describes a controller that talks to the server through `kubeconfig`, and holds the lease in `namespace`.
    pub fn new(program: PathBuf, kubeconfig: &Path, namespace: &str, log: PathBuf) -> Result<Self> {
        let arguments = [
            ("--kubeconfig", kubeconfig.display().to_string()),
            ("--lease-namespace", namespace.to_owned()),
            ("--lease-name", "drainplan-controller".to_owned()),
            // As in a pod: started again only after its end, so that it need not wait until its lease is over.
            ("--pod-name", NAME.to_owned()),
        ];
        let arguments = arguments.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
        Ok(Self { program, arguments, address: free()?, log, child: Mutex::new(None) })
    }

    /// Another process, told the same; with an address and a log of its own.
    pub fn another(&self) -> Result<Self> {
        let (program, arguments) = (self.program.clone(), self.arguments.clone());
        let log = self.log.with_extension("another.log");
        Ok(Self { program, arguments, address: free()?, log, child: Mutex::new(None) })
    }

    /// Another process, told that it runs in this pod; with an address and a log of its own.
    pub fn in_pod(&self, namespace: &str, name: &str) -> Result<Self> {
        let mut told = self.another()?;
        let flag = told.arguments.iter().position(|argument| argument == "--pod-name");
        let value = flag.and_then(|flag| told.arguments.get_mut(flag + 1)).context("it is told no pod")?;
        name.clone_into(value);
        told.arguments.extend(["--pod-namespace", namespace].map(str::to_owned));
        told.log = self.log.with_extension(format!("{name}.log"));
        Ok(told)
    }

    /// Another process with more arguments; with an address and a log of its own.
    pub fn with(&self, more: &[&str]) -> Result<Self> {
        let mut told = self.another()?;
        told.arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        Ok(told)
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn start(&self) -> Result<()> {
        self.spawn()?;
        self.ready().await
    }

    /// Starts it.
    pub fn spawn(&self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["--listen", &self.address.to_string()]);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?;
        if self.held().replace(child).is_some() {
            bail!("the controller was started twice");
        }
        Ok(())
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended()? {
                bail!("the controller ended with {status}; the end of its log:\n{}", self.log_tail(20));
            }
            match self.get("/readyz").await {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => return Ok(()),
                _ if Instant::now() < deadline => tokio::time::sleep(ASK_EVERY).await,
                last => bail!(
                    "the controller is not ready after {} s, /readyz says {last:?}; the end of its log:\n{}",
                    PATIENCE.as_secs(),
                    self.log_tail(20)
                ),
            }
        }
    }

    /// Waits until what it answers to a GET contains this.
    pub async fn says(&self, path: &str, part: &str, within: Duration) -> Result<()> {
        self.answers(path, &format!("\"{part}\""), within, |answer| answer.contains(part)).await?;
        Ok(())
    }

    /// Waits until what it answers to a GET is like this; the answer.
    pub async fn answers(
        &self,
        path: &str,
        what: &str,
        within: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            match self.get(path).await {
                Ok(answer) if wanted(&answer) => return Ok(answer),
                _ if Instant::now() < deadline => tokio::time::sleep(ASK_EVERY).await,
                last => bail!("{path} has not said {what} for {} s: {last:?}", within.as_secs()),
            }
        }
    }

    /// SIGKILL: it has no time for anything.
    pub fn kill(&self) -> Result<()> {
        let mut child = self.held().take().context("the controller does not run")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// SIGTERM, as a kubelet asks for the end.
    pub fn terminate(&self) -> Result<()> {
        let pid = self.held().as_ref().context("the controller does not run")?.id();
        let asked = Command::new("kill").args(["-TERM", &pid.to_string()]).status()?;
        if !asked.success() {
            bail!("the controller, process {pid}, cannot be asked to end: {asked}");
        }
        Ok(())
    }

    /// Awaits its end; how it ended.
    pub async fn ends(&self, within: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match self.ended()? {
                Some(status) => return Ok(status),
                None if Instant::now() < deadline => tokio::time::sleep(ASK_EVERY).await,
                None => bail!("the controller still runs after {} s", within.as_secs()),
            }
        }
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.held().is_some() && matches!(self.ended(), Ok(None))
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
    }

    fn ended(&self) -> Result<Option<ExitStatus>> {
        match self.held().as_mut() {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it answers to a GET.
    pub async fn get(&self, path: &str) -> Result<String> {
        let address = self.address;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect_timeout(&address, ANSWERS)?;
            stream.set_read_timeout(Some(ANSWERS))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        })
        .await?
    }
}

/// A port that was free a moment ago; the controller says so when it no longer is.
fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Some(mut child) = self.held().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
