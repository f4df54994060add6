//! Generates the list of applications from the manifests in `apps/`: for each program its name, the folder of its
//! package, and a description.
//!
//! Invariant: Cargo runs it again only when a manifest changes, or the lock file, which names each package of the
//! workspace. It reads no sources, so a change of an application rebuilds nothing else.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folder of the applications.
const APPS: &str = "../../apps";

/// Prefix of the name of each program.
const PREFIX: &str = "isles-";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let mut rows = Vec::new();
    for entry in fs::read_dir(APPS)? {
        rows.extend(programs(&entry?.path())?);
    }
    rows.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("applications"), format!("&[{}]", rows.concat()))
}

/// Returns the rows of the programs of the package in `folder`, as Rust: those of the table in its manifest, or one
/// named after the folder, with the description of the package.
fn programs(folder: &Path) -> io::Result<Vec<String>> {
    let manifest = folder.join("Cargo.toml");
    let Ok(text) = fs::read_to_string(&manifest) else { return Ok(Vec::new()) };
    println!("cargo::rerun-if-changed={}", manifest.display());
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    let row = |name: &str, about: &str| {
        let binary = format!("name = \"{PREFIX}{name}\"");
        let lacks = || io::Error::other(format!("{}: no program {PREFIX}{name}", manifest.display()));
        let has_it = text.split("[[bin]]").skip(1).any(|section| section.contains(&binary));
        has_it.then(|| format!("({name:?}, {folder:?}, {about}),")).ok_or_else(lacks)
    };
    match text.split_once("[package.metadata.programs]\n") {
        Some((_, table)) => {
            let lines = table.lines().map_while(|line| line.split_once(" = "));
            lines.map(|(name, about)| row(name, about)).collect()
        }
        None => {
            let about = text.lines().find_map(|line| line.strip_prefix("description = ")).unwrap_or("\"\"");
            Ok(vec![row(&folder, about)?])
        }
    }
}
