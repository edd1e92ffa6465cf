//! docs/windows.md shows what the program says about its schedules.

use std::error::Error;
use std::fmt::Write as _;
use std::process::Command;

const PAGE: &str = include_str!("../docs/windows.md");

#[test]
fn the_schedules_open_and_close_as_the_page_says() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("drainplan-windows-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let mut shown = 0;
    // What stands between fences is every other part.
    for block in PAGE.split("```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').ok_or("a block has a first line")?;
        if language == "yaml" {
            let name =
                text.split("name: ").nth(1).and_then(|rest| rest.split('}').next()).ok_or("no name")?;
            std::fs::write(directory.join(format!("{name}.yaml")), text)?;
            continue;
        }
        let mut said = String::new();
        for command in text.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let output = Command::new(env!("CARGO_BIN_EXE_kubectl-drainplan"))
                .args(command.split(' ').skip(2))
                .current_dir(&directory)
                .output()?;
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            write!(said, "$ {command}\n{}", String::from_utf8_lossy(&output.stdout))?;
            shown += 1;
        }
        assert_eq!(text, said, "docs/windows.md says\n{text}\nand the program\n{said}");
    }
    std::fs::remove_dir_all(directory)?;
    assert_eq!(shown, 4);
    Ok(())
}
