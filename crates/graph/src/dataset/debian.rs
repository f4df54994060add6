//! Extracts files from a Debian package with the standard tools of Debian, without root.
//!
//! It runs `apt-get download`, `dpkg-deb --fsys-tarfile` and `tar`, and verifies nothing beyond their own checks; the
//! caller must check the digest. Invariant: it writes only into the given folder.

use super::{Dataset, DatasetError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Downloads the package of `wanted` and unpacks the folder that holds its file, with the paths of the
/// package, into `folder`.
pub(super) fn unpack(wanted: &Dataset, folder: &Path) -> Result<(), DatasetError> {
    let archive = download(&wanted.package, folder)?;
    let failed = |reason| DatasetError::UnpackFailed { package: wanted.package.clone(), reason };
    let missing = |tool, error| DatasetError::MissingTool { tool, package: wanted.package.clone(), error };
    let inside = Path::new(&wanted.path).parent().unwrap_or(Path::new("/")).display();
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile")
        .arg(&archive)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut dpkg = dpkg.spawn().map_err(|error| missing("dpkg-deb", error))?;
    let stream = dpkg.stdout.take().expect("a pipe was asked for");
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--no-same-owner", "--file=-"]).arg(format!(".{inside}")).current_dir(folder);
    let unpacked = tar.stdin(stream).output();
    let packed = dpkg.wait().map_err(|error| failed(error.to_string()))?;
    let unpacked = unpacked.map_err(|error| missing("tar", error))?;
    match (packed.success(), unpacked.status.success()) {
        (true, true) => Ok(()),
        (false, _) => Err(failed(format!("dpkg-deb ended with {packed}"))),
        (true, false) => Err(failed(last_line(&unpacked))),
    }
}

/// Downloads `package` into `folder` and returns the archive.
fn download(package: &str, folder: &Path) -> Result<PathBuf, DatasetError> {
    let mut apt = Command::new("apt-get");
    apt.args(["download", "--quiet", package]).env("LC_ALL", "C").current_dir(folder).stdin(Stdio::null());
    let missing = |error| DatasetError::MissingTool { tool: "apt-get", package: package.to_string(), error };
    let output = apt.output().map_err(missing)?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        let unknown = ["Unable to locate package", "Can't find a source", "Can't select"];
        if unknown.iter().any(|sign| messages.contains(sign)) {
            return Err(DatasetError::UnknownPackage { package: package.to_string() });
        }
        return Err(DatasetError::DownloadFailed {
            package: package.to_string(),
            reason: last_line(&output),
        });
    }
    let reason = |error: io::Error| DatasetError::DownloadFailed {
        package: package.to_string(),
        reason: format!("apt-get left no archive: {error}"),
    };
    let files = std::fs::read_dir(folder).map_err(reason)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut archives = files.filter(|file| file.extension().is_some_and(|extension| extension == "deb"));
    archives.next().ok_or_else(|| reason(io::ErrorKind::NotFound.into()))
}

/// Returns the last line of a failed tool, or its exit status.
fn last_line(output: &Output) -> String {
    let messages = String::from_utf8_lossy(&output.stderr);
    messages
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .map_or_else(|| output.status.to_string(), str::to_string)
}
