//! What can be written on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

/// Drains nodes for maintenance, and says what keeps pods from being evicted.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-drainplan",
    bin_name = "kubectl drainplan",
    version,
    subcommand_precedence_over_arg = true,
    after_help = "Exit status: 0 fine, 1 failed, 2 wrong usage, 3 blocked: a pod waits for more than time."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Where from and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// How the answer is written.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// The kubeconfig file; without it $KUBECONFIG, ~/.kube/config, or the pod's own service account.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Only this namespace.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long, global = true, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Read objects from files instead of a cluster: YAML, JSON, or lists of either; - is the standard input.
    #[arg(long, global = true, value_name = "FILE", num_args = 1.., conflicts_with_all = ["kubeconfig", "context"])]
    pub from: Vec<PathBuf>,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
    Yaml,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Prints the CustomResourceDefinition, for kubectl apply -f -.
    Crd,
    /// Lists PodDisruptionBudgets: what they report, what they should, and what is wrong with them.
    Budgets,
    /// Says for each pod whether it could be evicted now, and if not, why, whether waiting helps, and what to change.
    Explain(Explain),
    /// Says how far a plan is, and what it waits for.
    Status(Status),
    /// Says when a plan's windows open and close, from its file alone.
    Windows(Windows),
}

/// Of which plan.
#[derive(Debug, Args)]
pub struct Status {
    /// The plan's name.
    #[arg(value_name = "PLAN")]
    pub plan: String,
    /// Show every change, until the plan has ended.
    #[arg(short, long)]
    pub watch: bool,
}

/// Of which plan, and when.
#[derive(Debug, Args)]
pub struct Windows {
    /// The plan's file; - is the standard input.
    #[arg(short = 'f', long = "file", value_name = "PLAN")]
    pub file: PathBuf,
    /// The instant that is asked about, as 2026-12-05T22:00:00Z or with an offset; without it, now.
    #[arg(long, value_name = "TIME")]
    pub at: Option<jiff::Timestamp>,
    /// How many times to come are listed.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub next: usize,
}

/// Which pods.
#[derive(Debug, Args)]
pub struct Explain {
    #[command(subcommand)]
    pub which: Option<Which>,
    /// All pods.
    #[arg(long)]
    pub all: bool,
    /// Ask the server, too, with dry-run evictions: only it knows what admission and access rights say.
    #[arg(long, global = true, conflicts_with = "from")]
    pub verify: bool,
}

#[derive(Debug, Subcommand)]
pub enum Which {
    /// The pods of a node; with -n those of that namespace.
    Node {
        /// The node's name.
        name: String,
    },
    /// One pod.
    Pod {
        /// Namespace and name as NAMESPACE/NAME, or the name in the namespace of -n or of the context.
        name: String,
    },
}

/// Reads the command line, and what clap cannot tell.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let cli = Cli::try_parse_from(words)?;
    if let Command::Explain(what) = &cli.command
        && what.all == what.which.is_some()
    {
        let problem = "write one of: explain node NAME, explain pod NAMESPACE/NAME, explain --all";
        return Err(Cli::command().error(ErrorKind::MissingRequiredArgument, problem));
    }
    if let Command::Explain(Explain { which: Some(Which::Pod { name }), .. }) = &cli.command {
        check_pod(name, &cli.global)?;
    }
    let needless = match &cli.command {
        Command::Status(_) => "status reads the plan from a cluster: leave out --from",
        Command::Windows(_) => "windows reads the plan's file: name it with -f, and leave out --from",
        Command::Crd => "crd reads nothing: leave out --from",
        Command::Budgets | Command::Explain(_) => return Ok(cli),
    };
    if !cli.global.from.is_empty() {
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, needless));
    }
    Ok(cli)
}

/// Whether it is clear which pod is meant.
fn check_pod(name: &str, global: &Global) -> Result<(), clap::Error> {
    let parts: Vec<&str> = name.split('/').collect();
    let (kind, problem) = match (parts.as_slice(), global.namespace.as_deref()) {
        ([namespace, pod], asked) if !namespace.is_empty() && !pod.is_empty() => match asked {
            Some(asked) if asked != *namespace => (
                ErrorKind::ArgumentConflict,
                format!(
                    "pod {name} is not in namespace {asked}: leave out -n, or write the pod's name alone"
                ),
            ),
            _ => return Ok(()),
        },
        ([pod], asked) if !pod.is_empty() => {
            // Files have no namespace of their own, and with -A none is meant.
            if asked.is_some() || (global.from.is_empty() && !global.all_namespaces) {
                return Ok(());
            }
            let problem =
                format!("in which namespace is pod {pod}? Write NAMESPACE/{pod}, or name it with -n");
            (ErrorKind::MissingRequiredArgument, problem)
        }
        _ => (
            ErrorKind::ValueValidation,
            format!("{name} is no pod: write NAMESPACE/NAME, or the name alone and its namespace with -n"),
        ),
    };
    Err(Cli::command().error(kind, problem))
}
