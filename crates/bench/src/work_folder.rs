//! The folder where the programs of peers are built and kept.
//!
//! Apart from the JSON, it is the only part that writes to the user's disk. Invariant: a file in the folder is
//! complete, because it is written under another name first. Its name has a hash of its sources and options, so that a
//! changed source is rebuilt.

use crate::program::available::Missing;
use isles_graph::{ReadOptions, Weights, open};
use std::ffi::OsStr;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder, which exists.
pub struct WorkFolder {
    folder: PathBuf,
}

impl WorkFolder {
    /// Opens `isles/bench` in the person's cache folder (`XDG_CACHE_HOME`, else `~/.cache`).
    ///
    /// # Errors
    /// One line that names the folder.
    pub fn open() -> Result<WorkFolder, String> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let folder = cache.or_else(home).unwrap_or_else(std::env::temp_dir).join("isles/bench");
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(WorkFolder { folder })
    }

    /// Returns the program built by `compiler options -o PROGRAM SOURCE libraries` from `text`, or the cached one.
    ///
    /// # Errors
    /// The first error message of the compiler.
    pub fn build(
        &self,
        compiler: &str,
        options: &[&str],
        libraries: &[&str],
        name: &str,
        text: &str,
    ) -> Result<PathBuf, Missing> {
        let program =
            self.folder.join(format!("{}-{:016x}", compiler, hash(&(compiler, options, libraries, text))));
        if program.exists() {
            return Ok(program);
        }
        let source = self.write_file(name, text)?;
        let fresh = self.folder.join(format!("{compiler}-{}.new", std::process::id()));
        let mut command = Command::new(compiler);
        command.args(options).arg("-o").arg(&fresh).arg(&source).args(libraries).stdin(Stdio::null());
        let failed =
            |why: String| Missing::new(format!("{compiler} {name}: {why}"), "put the compiler right");
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(failed(complaint.lines().next().unwrap_or("failed").to_owned()));
        }
        std::fs::rename(&fresh, &program).map_err(|error| failed(error.to_string()))?;
        Ok(program)
    }

    /// Returns the program of one of our packages, built with `feature` into its own folder `name`; `environment` is
    /// set for its build.
    ///
    /// # Errors
    /// The first error message of the build.
    pub fn build_own(
        &self,
        name: &str,
        package: &str,
        feature: &str,
        environment: &[(&str, &str)],
    ) -> Result<PathBuf, Missing> {
        let checkout = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let target = self.folder(name);
        let mut cargo = Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")));
        cargo.current_dir(checkout).envs(environment.iter().copied());
        cargo.arg("build").arg("--target-dir").arg(&target);
        cargo.args(["--quiet", "--release", "--locked", "-p", package, "--features", feature]);
        let failed = |why: String| Missing::new(format!("building {package} for {name}: {why}"), "see above");
        let output =
            cargo.stdin(Stdio::null()).output().map_err(|error| failed(format!("cargo: {error}")))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(failed(complaint.lines().next().unwrap_or("failed").to_owned()));
        }
        Ok(target.join("release").join(package))
    }

    /// Writes `text` into the folder and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_file(&self, name: &str, text: &str) -> Result<PathBuf, Missing> {
        let path = self.folder.join(format!("{:016x}-{name}", hash(&text)));
        write_whole(&path, text)
            .map_err(|error| Missing::new(format!("{}: {error}", path.display()), "free the disk"))?;
        Ok(path)
    }

    /// Returns the edge list of a graph of the collection, one line `from to` per edge; fetches the graph if needed.
    ///
    /// # Errors
    /// The reason why the graph is unavailable.
    pub fn edges(&self, name: &str) -> Result<PathBuf, Missing> {
        let unweighted = ReadOptions { weights: Weights::Ignored, directed: false };
        let graph = open(name, &unweighted).map_err(|error| {
            Missing::new(format!("graph {name}: {error}"), format!("isles data fetch {name}"))
        })?;
        let mut text = String::new();
        for from in 0..graph.vertices() as u32 {
            for to in graph.neighbours(from).iter().filter(|to| **to >= from) {
                let _ = writeln!(text, "{from} {to}"); // writing to a string cannot fail
            }
        }
        self.write_file(&format!("{name}.edges"), &text)
    }

    /// Returns the path of the folder with this name, which may not exist yet.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the folder of the Python modules installed by the bench.
    pub fn python_modules(&self) -> PathBuf {
        self.folder.join("python")
    }

    /// Creates an empty folder with this name, removing previous contents.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn fresh_folder(&self, name: &str) -> std::io::Result<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&fresh, text)?;
    std::fs::rename(&fresh, path)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
