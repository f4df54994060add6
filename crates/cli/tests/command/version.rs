//! The output of `isles --version`: the version, and the commit if the sources are a checkout.

#[allow(dead_code, reason = "its main is Cargo's")]
#[path = "../../build.rs"]
mod build;
use crate::scene::Scene;
use build::{Checkout, version};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns `true` if git is installed; the sources can be built and tested without it.
fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok()
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isles-version-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("crates/cli")).unwrap();
        Folder(path)
    }

    /// Runs git in `at` with these settings only, and returns its output.
    fn git(&self, at: &str, arguments: &str) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.0.join(at)).envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("HOME", "/nowhere")]);
        git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(arguments.split(' '));
        let ended = git.output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap().trim().to_owned()
    }

    fn package(&self, at: &str) -> Option<Checkout> {
        Checkout::around(&self.0.join(at).join("crates/cli"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_command_says_of_which_commit_it_is() {
    let ended = Scene::new("version").run(&["--version"]);
    let checkout = Checkout::around(Path::new(env!("CARGO_MANIFEST_DIR")));
    let expected = version(env!("CARGO_PKG_VERSION"), checkout.as_ref());
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("isles {expected}\n")), "{}", ended.stderr);
}

#[test]
fn a_commit_is_named_by_its_first_digits_and_noticed_when_another_one_is_checked_out() {
    let folder = Folder::new("commit");
    if !has_git() {
        return;
    }
    folder.git(".", "init -q");
    assert!(folder.package(".").is_none(), "there is no commit yet");
    folder.git(".", "commit -q --allow-empty -m first");
    folder.git(".", "worktree add -q other");
    std::fs::create_dir_all(folder.0.join("other/crates/cli")).unwrap();
    for at in [".", "other"] {
        let Checkout { commit, journal } = folder.package(at).unwrap();
        let whole = folder.git(at, "rev-parse HEAD");
        assert!(commit.len() >= 7 && whole.starts_with(&commit), "{commit} {whole}");
        assert_eq!(version("1.2.3", folder.package(at).as_ref()), format!("1.2.3 ({commit})"));
        let journal = journal.unwrap();
        let before = std::fs::read(&journal).unwrap();
        folder.git(at, "commit -q --allow-empty -m next");
        assert_ne!(std::fs::read(&journal).unwrap(), before, "{journal:?}");
        assert_ne!(folder.package(at).unwrap().commit, commit);
    }
}

#[test]
fn sources_in_no_checkout_of_their_own_have_no_commit() {
    let folder = Folder::new("none");
    // A repository around the folder of temporary files is ignored.
    assert_eq!(version("1.2.3", folder.package(".").as_ref()), "1.2.3");
    if !has_git() {
        return;
    }
    folder.git(".", "init -q");
    folder.git(".", "commit -q --allow-empty -m first");
    std::fs::create_dir_all(folder.0.join("vendor/isles/crates/cli")).unwrap();
    assert!(folder.package("vendor/isles").is_none(), "the commit would be another project's");
    assert!(folder.package("no/such/folder").is_none());
}
