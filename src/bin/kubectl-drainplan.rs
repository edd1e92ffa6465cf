//! `kubectl drainplan …`.

fn main() -> std::process::ExitCode {
    drainplan::cli::main()
}
