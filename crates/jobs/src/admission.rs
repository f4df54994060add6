//! Admission of jobs: permitted commands and names, and the requests that a page may make.
//!
//! The token of a page is part of an address, which is copied, shown and forwarded more easily than a login. So pages
//! cannot create command jobs unless the user allowed that when starting the job server. The check is done on the
//! parsed request: a second parser before it could read the same bytes differently. Invariant: a refused request has
//! changed nothing.

use crate::job::{self, JobKind};
use crate::request::{JobOrder, JobRequest, Refusal, RefusalKind};
use crate::runner::{Caller, Runnable};
use crate::store::JobSpec;
use rustix::fs::{Access, access};
use std::env::{split_paths, var_os};
use std::path::{Path, PathBuf};

/// Maximum bytes of the name of a job.
const NAME_BYTES_MAX: usize = 1 << 10;

/// Maximum number of words of a job, and maximum bytes of all of them, because the whole table is shown repeatedly.
const WORDS_MAX: usize = 4096;
const WORDS_BYTES_MAX: usize = 64 << 10;

/// Maximum bytes of the environment of a command.
const ENVIRONMENT_BYTES_MAX: usize = 512 << 10;

/// Maximum number of characters of a word that a refusal repeats.
const SHOWN_CHARS: usize = 80;

/// Search path of a system without PATH.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

/// Checks a request that came from a page. `has_commands` is `true` if pages may create command jobs; `is_command`
/// returns `true` for a command job.
///
/// # Errors
/// A page may not make this request.
pub(crate) fn check_page(
    request: &JobRequest,
    has_commands: bool,
    is_command: impl Fn(u64) -> bool,
) -> Result<(), Refusal> {
    let makes_command = match request {
        JobRequest::End { .. } | JobRequest::Page { .. } => {
            let text = "a page cannot end the job server or forward requests; allowed: orders to jobs";
            return Err(Refusal::of(RefusalKind::NotFromPage, text));
        }
        JobRequest::Create(spec) | JobRequest::Begin { spec, .. } => {
            matches!(spec.runnable, Runnable::Command(_))
        }
        JobRequest::Order { job, order: JobOrder::Duplicate } => is_command(*job),
        _ => false,
    };
    if makes_command && !has_commands {
        let text = "pages of this job server cannot start commands; allowed: tasks, commands with isles \
             job start, or both after isles serve --ui --allow-commands";
        return Err(Refusal::of(RefusalKind::CommandsNotAllowed, text));
    }
    Ok(())
}

/// Checks a specification of a job, on the cores of a modelled chip or on a host.
///
/// # Errors
/// The specification cannot become a job.
pub(crate) fn check_spec(spec: &JobSpec, is_modelled: bool) -> Result<(), Refusal> {
    let too_long = |text: String| Err(Refusal::of(RefusalKind::TooLong, text));
    if spec.name.len() > NAME_BYTES_MAX {
        return too_long(format!(
            "the name has {} bytes; allowed: at most {NAME_BYTES_MAX}",
            spec.name.len()
        ));
    }
    if let Some(sign) = spec.name.chars().find(|sign| steers_text(*sign)) {
        let code = u32::from(sign);
        let text = format!(
            "the name contains U+{code:04X}, a control or formatting character; allowed: \
                 printable characters"
        );
        return Err(Refusal::of(RefusalKind::BadName, text));
    }
    let (Runnable::Task(_, words) | Runnable::Command(words)) = &spec.runnable;
    if words.len() > WORDS_MAX {
        return too_long(format!("there are {} words; allowed: at most {WORDS_MAX}", words.len()));
    }
    let bytes: usize = words.iter().map(String::len).sum();
    if bytes > WORDS_BYTES_MAX {
        return too_long(format!("the words have {bytes} bytes; allowed: at most {WORDS_BYTES_MAX}"));
    }
    match &spec.runnable {
        Runnable::Task(name, words) => {
            let opened = job::kind(name).and_then(|kind| (kind.open)(words, None));
            opened.map(drop).map_err(|fault| Refusal::of(RefusalKind::NoSuchTask, fault))
        }
        Runnable::Command(_) if is_modelled => {
            let names: Vec<&str> = job::offered().iter().map(JobKind::name).collect();
            let names = names.join(", ");
            let text = format!("a modelled core runs no command; allowed: --task with one of {names}");
            Err(Refusal::of(RefusalKind::CommandsNotAllowed, text))
        }
        Runnable::Command(words) => {
            spec.caller.as_ref().map_or(Ok(()), check_caller)?;
            check_command(words, spec.caller.as_ref())
        }
    }
}

/// Checks that a command can be started in its caller's folder.
fn check_caller(caller: &Caller) -> Result<(), Refusal> {
    let Caller { folder, environment } = caller;
    let refused = |kind, text: String| Err(Refusal::of(kind, text));
    if !folder.is_absolute() || !folder.is_dir() {
        let text = format!(
            "the folder of the command is {folder:?}; allowed: the absolute path of an existing folder"
        );
        return refused(RefusalKind::NoSuchCommand, text);
    }
    let bytes: usize = environment.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes > ENVIRONMENT_BYTES_MAX {
        let text = format!(
            "the environment has {bytes} bytes; allowed: at most \
             {ENVIRONMENT_BYTES_MAX}"
        );
        return refused(RefusalKind::TooLong, text);
    }
    let is_foreign = |(name, value): &&(String, String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    if let Some((name, _)) = environment.iter().find(is_foreign) {
        let shown: String = name.chars().take(SHOWN_CHARS).collect();
        let text = format!("{shown:?} is not a variable; allowed: a name without `=`, and no zero bytes");
        return refused(RefusalKind::NoSuchCommand, text);
    }
    Ok(())
}

/// Checks that the first word names a program of this host, and that the system accepts all words.
fn check_command(words: &[String], caller: Option<&Caller>) -> Result<(), Refusal> {
    let no_command = |text: &str| Err(Refusal::of(RefusalKind::NoCommand, text));
    let Some(program) = words.first() else {
        return no_command("there is no command; allowed: a program, and words for it");
    };
    if let Some(at) = words.iter().position(|word| word.contains('\0')) {
        let text = format!(
            "word {} of the command has a zero byte; allowed: text without zero bytes \
             zero bytes",
            at + 1
        );
        return Err(Refusal::of(RefusalKind::NoSuchCommand, text));
    }
    if program.is_empty() {
        return no_command("the command is empty; allowed: the name of a program, and words for it");
    }
    if is_program(program, caller) {
        return Ok(());
    }
    let shown: String = program.chars().take(SHOWN_CHARS).collect();
    let rest = if shown.len() < program.len() { " and more" } else { "" };
    let text = format!(
        "command not found: {shown:?}{rest}; allowed: a program on PATH, or the path of one; no shell is \
         involved"
    );
    Err(Refusal::of(RefusalKind::NoSuchCommand, text))
}

/// Returns `true` if a character is not visible itself but changes the display of others: terminal controls, line
/// separators, and marks of text direction.
pub fn steers_text(sign: char) -> bool {
    matches!(sign, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || sign.is_control()
}

/// Returns `true` if `execvp` would find a program of this name from the caller's folder.
fn is_program(name: &str, caller: Option<&Caller>) -> bool {
    let here = caller.map_or(Path::new("."), |caller| &caller.folder);
    let is_runnable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if name.contains('/') {
        return is_runnable(&here.join(name));
    }
    let own = match caller {
        Some(caller) => caller.variable("PATH").map(Into::into),
        None => var_os("PATH"),
    };
    let folders = own.unwrap_or_else(|| PATH_DEFAULT.into());
    // An empty entry of PATH means the current directory.
    split_paths(&folders).any(|folder: PathBuf| is_runnable(&here.join(folder).join(name)))
}
