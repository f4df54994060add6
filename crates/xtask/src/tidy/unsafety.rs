//! Unsafe code lies only where it is needed, and each site says why it is needed and why it is sound.
//!
//! Refused: the word `unsafe` outside the crates of [`UNSAFE_CRATES`]; a site without the lines `NEED:` and
//! `SOUND:` (an unsafe function or trait may have a `# Safety` section instead: the duties are the
//! caller's); a crate root elsewhere without `#![forbid(unsafe_code)]`. One pair of lines serves a run
//! of sites of one kind on the same line or on lines that follow each other.

use crate::finding::Finding;
use crate::lexer::{Token, TokenKind};
use crate::syntax::comments_at;
use crate::tree::{File, Tree, crate_of};

/// The crates that may contain unsafe code, and what for.
const UNSAFE_CRATES: &[(&str, &str)] = &[
    ("hypervisor", "ioctls of KVM, page tables, system calls of guests, code of ring 0"),
    ("macros", "emits the entry descriptors that the runtime checks"),
    ("rcce", "programs of C that are loaded, stacks of coroutines, mapped memory"),
    ("runtime", "entry descriptors in the program image, task cells, the type of the services"),
    ("services", "long copies of windows, slices of their parts, words of value rings"),
    ("svm", "mapped memory, ioctls of userfaultfd, slices of pages"),
    ("transport-mpi", "calls of the MPI library, memory of blocks"),
    ("transport-shm", "mapped memory"),
];

/// Folders of programs for bare cores that may, too: there is no operating system below them.
const UNSAFE_FOLDERS: &[&str] =
    &["bare-metal/boot/", "bare-metal/c/", "bare-metal/core/", "bare-metal/examples/"];

/// Listings that may, too: the part of a program of C, and a program that asks the MPI library for a number.
const UNSAFE_LISTINGS: &[&str] = &["docs/listings/section.rs", "docs/listings/rsmpi.rs"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files_ending("rs") {
        let allowed = crate_of(&file.path).is_some_and(may_be_unsafe)
            || UNSAFE_FOLDERS.iter().any(|folder| file.path.starts_with(folder))
            || UNSAFE_LISTINGS.contains(&file.path.as_str());
        findings.extend(if allowed { unargued(file) } else { outside(file) });
        if !allowed && is_root(&file.path) && !forbids(file) {
            findings.push(Finding::new(
                &file.path,
                1,
                "add `#![forbid(unsafe_code)]`: this crate needs no unsafe code",
            ));
        }
    }
    findings
}

fn may_be_unsafe(name: &str) -> bool {
    UNSAFE_CRATES.iter().any(|(allowed, _)| *allowed == name)
}

fn outside(file: &File) -> Vec<Finding> {
    let sites = file.source.code.iter().filter(|token| token.is("unsafe"));
    sites
        .map(|token| {
            let allowed: Vec<&str> = UNSAFE_CRATES.iter().map(|(name, _)| *name).collect();
            let message = format!("unsafe code belongs only to the crates {}", allowed.join(", "));
            Finding::new(&file.path, token.line, message)
        })
        .collect()
}

fn unargued(file: &File) -> Vec<Finding> {
    let code = &file.source.code;
    let mut findings = Vec::new();
    let mut argued: Option<(usize, &str)> = None;
    for at in (0..code.len()).filter(|at| code[*at].is("unsafe")) {
        let Some(site) = site_kind(code, at) else { continue };
        let line = code[at].line;
        let inherits = argued.is_some_and(|(before, kind)| site == kind && line - before <= 1);
        if inherits || is_argued(file, at, site) {
            argued = Some((line, site));
        } else {
            let message =
                format!("this unsafe {site} needs the comment lines `NEED: ...` and `SOUND: ...` above it");
            findings.push(Finding::new(&file.path, line, message));
        }
    }
    findings
}

/// Returns the kind of item that the `unsafe` at `at` makes unsafe; `None` if it only names a type of function or is an
/// attribute.
fn site_kind(code: &[Token], at: usize) -> Option<&'static str> {
    let mut rest = code[at + 1..].iter().filter(|token| !token.is("extern") && token.kind != TokenKind::Text);
    let first = rest.next()?;
    match first.text.as_str() {
        "{" => Some("block"),
        "impl" => Some("impl"),
        "trait" => Some("trait"),
        "fn" if rest.next()?.kind == TokenKind::Word => Some("function"),
        _ => None,
    }
}

fn is_argued(file: &File, at: usize, site: &str) -> bool {
    let comments = comments_at(&file.source, &file.text, at);
    let says = |mark: &str| {
        comments
            .iter()
            .any(|comment| comment.text.strip_prefix(mark).is_some_and(|why| !why.trim().is_empty()))
    };
    let duties =
        matches!(site, "function" | "trait") && comments.iter().any(|comment| comment.text == "# Safety");
    duties || (says("NEED:") && says("SOUND:"))
}

/// Returns `true` if `path` is the root file of a library or program.
fn is_root(path: &str) -> bool {
    let Some((_, inside)) = crate::tree::inside_crate(path) else {
        return false;
    };
    matches!(inside, "src/lib.rs" | "src/main.rs") || inside.starts_with("src/bin/")
}

fn forbids(file: &File) -> bool {
    let wanted = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    file.source
        .code
        .windows(wanted.len())
        .any(|window| window.iter().zip(wanted).all(|(token, word)| token.is(word)))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    const INSIDE: &str = "crates/runtime/src/a.rs";

    fn inside(text: &str) -> usize {
        found(check, &[(INSIDE, text)]).len()
    }

    #[test]
    fn an_argued_site_passes_wherever_its_comment_can_stand() {
        let argument = "// NEED: mapped.\n// SOUND: checked.\n";
        for text in [
            format!("fn a() {{\n{argument}unsafe {{ b() }}\n}}"),
            format!("fn a() {{\n{argument}let x =\n  unsafe {{ b() }};\n}}"),
            format!("fn a() {{\nunsafe {{\n{argument}b() }}\n}}"),
            format!("{argument}#[inline]\nunsafe impl Send for A {{}}\nunsafe impl Sync for A {{}}"),
            format!("{argument}b(unsafe {{ c() }}, unsafe {{ d() }});"),
            format!("{argument}let a = unsafe {{ b() }};\nlet c = unsafe {{ d(a) }};"),
            format!("match a {{ Some(b) =>\n{argument}unsafe {{ c(b) }}\n}}"),
        ] {
            assert_eq!(inside(&text), 0, "{text}");
        }
    }

    #[test]
    fn a_site_without_both_lines_is_refused() {
        for text in [
            "fn a() { unsafe { b() } }",
            "// NEED: mapped.\nunsafe impl Send for A {}",
            "// SOUND: checked.\nunsafe impl Send for A {}",
            "// NEED:\n// SOUND: checked.\nunsafe impl Send for A {}",
            "unsafe fn a() {}",
            "unsafe extern \"C\" fn a() {}",
            "// NEED: a.\n// SOUND: b.\nlet a = 1;\nlet b = unsafe { c() };",
            "// NEED: a.\n// SOUND: b.\nlet a = unsafe { b() };\n\nlet c = unsafe { d() };",
        ] {
            assert_eq!(inside(text), 1, "{text}");
        }
    }

    #[test]
    fn an_unsafe_function_may_state_the_duties_of_its_caller_instead() {
        assert_eq!(inside("/// Reads.\n///\n/// # Safety\n/// `a` is mapped.\npub unsafe fn a() {}"), 0);
    }

    #[test]
    fn types_attributes_strings_and_comments_are_no_sites() {
        assert_eq!(inside("type A = unsafe fn(u8);\n// unsafe { }\nconst B: &str = \"unsafe { }\";"), 0);
        assert_eq!(inside("#[unsafe(no_mangle)]\nextern \"C\" fn a() {}"), 0);
    }

    #[test]
    fn unsafe_code_in_another_crate_is_refused_even_with_an_argument() {
        let text = "// NEED: a.\n// SOUND: b.\nunsafe impl Send for A {}";
        assert_eq!(found(check, &[("crates/protocol/src/a.rs", text)]).len(), 1);
    }

    #[test]
    fn programs_for_bare_cores_may_be_unsafe_with_an_argument() {
        let path = "bare-metal/core/src/a.rs";
        assert_eq!(found(check, &[(path, "fn a() { unsafe { b() } }")]).len(), 1);
        let text = "fn a() {\n// NEED: a.\n// SOUND: b.\nunsafe { b() }\n}";
        assert!(found(check, &[(path, text)]).is_empty());
        assert_eq!(found(check, &[("bare-metal/mpb/src/a.rs", text)]).len(), 1);
    }

    #[test]
    fn a_safe_crate_must_forbid_unsafe_code_at_each_root() {
        let forbid = "//! A.\n#![forbid(unsafe_code)]";
        for root in ["lib.rs", "main.rs", "bin/a.rs"] {
            let path = format!("crates/protocol/src/{root}");
            assert_eq!(found(check, &[(&path, "//! A.")]).len(), 1);
            assert!(found(check, &[(&path, forbid)]).is_empty());
        }
        assert!(
            found(check, &[("crates/protocol/src/a.rs", "//! A."), ("crates/runtime/src/lib.rs", "//! A.")])
                .is_empty()
        );
    }
}
