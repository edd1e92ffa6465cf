//! `kubectl drainplan …`.

fn main() -> anyhow::Result<()> {
    print!("{}", serde_saphyr::to_string(&drainplan::api::crd())?);
    Ok(())
}
