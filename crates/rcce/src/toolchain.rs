//! `isles cc`: the machine's C compiler with the headers and libraries of RCCE.
//!
//! The sources of the library are part of this program, compiled on first use into a cache folder named by their hash.
//! A program becomes a shared object, because a modelled chip loads a copy of it for each rank. Invariant: the folder
//! is created atomically.

use isles_app::Failure;
use isles_app::console;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the library: its path below the folder, and its text.
macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../c/", $path)))),*]
    };
}

const SOURCES: &[(&str, &str)] = sources![
    "include/RCCE.h",
    "include/RCCE_gory.h",
    "include/RCCE_lib.h",
    "include/iRCCE.h",
    "include/isles.h",
    "src/port.h",
    "src/library.h",
    "src/port.c",
    "src/run.c",
    "src/buffer.c",
    "src/flag.c",
    "src/message.c",
    "src/communicator.c",
    "src/shared.c",
    "src/power.c",
    "src/irequest.h",
    "src/irequest.c",
    "src/iwait.c",
    "src/ipipeline.c",
];

/// The text of `isles cc --help`.
pub const HELP: &str = "\
Compiles and links an RCCE or iRCCE program with the C compiler of this machine: cc, or CC

Usage: isles cc [--bit-flags] ARGUMENTS OF THE C COMPILER

  --bit-flags   make each flag one bit of a line, as with -DSINGLEBITFLAGS

The options -DGORY and -DRC_POWER_MANAGEMENT have the same meaning as for the original library.
Run the result with isles rccerun.

Example: isles cc -O2 examples/c/pingpong.c -o out/pingpong
";

/// The folder of the built library.
struct BuiltLibrary {
    folder: PathBuf,
}

impl BuiltLibrary {
    fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    fn archives(&self, has_bit_flags: bool) -> PathBuf {
        self.folder.join(if has_bit_flags { "bit" } else { "line" })
    }
}

/// Returns the C compiler and its first arguments: the words of `CC`, as in make, or `cc`.
fn compiler_words() -> Vec<String> {
    let named = env::var_os("CC").unwrap_or_default().to_string_lossy().into_owned();
    let words: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { vec!["cc".to_owned()] } else { words }
}

fn compiler() -> Command {
    let words = compiler_words();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Returns the cache folder: `$ISLES_CACHE`, or `isles` in `$XDG_CACHE_HOME` or `~/.cache`.
fn cache() -> Result<PathBuf, Failure> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("ISLES_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("isles")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/isles")))
        .ok_or_else(|| {
            Failure::Usage("no place for the cache: set ISLES_CACHE, XDG_CACHE_HOME or HOME".into())
        })
}

/// Builds the library unless it exists.
fn library() -> Result<BuiltLibrary, Failure> {
    let mut hasher = DefaultHasher::new();
    (SOURCES, compiler_words()).hash(&mut hasher);
    let folder = cache()?.join(format!("rcce-{:016x}", hasher.finish()));
    if folder.is_dir() {
        return Ok(BuiltLibrary { folder });
    }
    let scratch = folder.with_extension(std::process::id().to_string());
    let unwritable =
        |cause| Failure::Usage(format!("cannot write the library to {}: {cause}", scratch.display()));
    for (path, text) in SOURCES {
        let file = scratch.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&scratch))
            .and_then(|()| fs::write(&file, text))
            .map_err(unwritable)?;
    }
    let built = archive(&scratch, "line", &[]).and_then(|()| archive(&scratch, "bit", &["-DSINGLEBITFLAGS"]));
    if let Err(failure) = built {
        let _ = fs::remove_dir_all(&scratch);
        return Err(failure);
    }
    // If another process was faster, use its folder.
    if fs::rename(&scratch, &folder).is_err() {
        let _ = fs::remove_dir_all(&scratch);
    }
    Ok(BuiltLibrary { folder })
}

/// Builds `librcce.a` and `libircce.a` in the folder `kind` of `root`.
fn archive(root: &Path, kind: &str, options: &[&str]) -> Result<(), Failure> {
    let folder = root.join(kind);
    fs::create_dir_all(&folder)
        .map_err(|cause| Failure::Usage(format!("cannot make {}: {cause}", folder.display())))?;
    let mut objects = [Vec::new(), Vec::new()];
    for (path, _) in SOURCES.iter().filter(|(path, _)| path.ends_with(".c")) {
        let name = Path::new(path).file_stem().unwrap_or_default();
        let object = folder.join(name).with_extension("o");
        let mut command = compiler();
        command.args(["-std=gnu11", "-O2", "-fPIC", "-c"]).args(options).arg("-I").arg(root.join("include"));
        command.arg(root.join(path)).arg("-o").arg(&object);
        run_compiler(&mut command, "cannot compile the RCCE library")?;
        objects[usize::from(name.to_string_lossy().starts_with('i'))].push(object);
    }
    for (name, objects) in ["librcce.a", "libircce.a"].iter().zip(objects) {
        let mut command = Command::new("ar");
        command.arg("rcs").arg(folder.join(name)).args(objects);
        run_compiler(&mut command, "cannot archive the RCCE library")?;
    }
    Ok(())
}

fn run_compiler(command: &mut Command, refusal: &str) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::Usage(format!(
            "{refusal}; see the output of {} above",
            Path::new(command.get_program()).display()
        ))),
        Err(cause) => Err(unstartable(command.get_program(), &cause)),
    }
}

fn unstartable(program: &OsStr, cause: &std::io::Error) -> Failure {
    let program = Path::new(program).display();
    Failure::Usage(match cause.kind() {
        ErrorKind::NotFound => {
            format!("no C compiler {program}: install gcc or clang with binutils, or set CC to one")
        }
        _ => format!("cannot start {program}: {cause}"),
    })
}

/// Options that are not passed to the compiler.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    has_bit_flags: bool,
    links: bool,
    has_optimisation: bool,
    output: Option<PathBuf>,
}

fn wanted(words: &[OsString]) -> Wanted {
    let mut wanted = Wanted { links: true, ..Wanted::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str().unwrap_or_default() {
            "--bit-flags" | "-DSINGLEBITFLAGS" | "-DSINGLEBITFLAGS=1" => wanted.has_bit_flags = true,
            "-c" | "-S" | "-E" | "-M" | "-MM" => wanted.links = false,
            "-o" => wanted.output = words.next().map(PathBuf::from),
            flag if flag.starts_with("-o") => wanted.output = Some(PathBuf::from(&flag[2..])),
            flag => wanted.has_optimisation |= flag.starts_with("-O"),
        }
    }
    wanted
}

/// Compiles and links according to `words`.
///
/// # Errors
/// There is no compiler, or it fails.
pub fn compile(words: &[OsString]) -> Result<(), Failure> {
    if words.is_empty() {
        return Err(Failure::Usage(
            "isles cc needs the arguments of the C compiler; see isles cc --help".into(),
        ));
    }
    if words.iter().any(|word| word == "--help") {
        return console::print(HELP).map_err(Failure::stdout);
    }
    let library = library()?;
    let wanted = wanted(words);
    if let Some(folder) =
        wanted.output.as_deref().and_then(Path::parent).filter(|folder| *folder != Path::new(""))
    {
        fs::create_dir_all(folder).map_err(|cause| {
            Failure::Usage(format!("cannot make the folder {}: {cause}", folder.display()))
        })?;
    }
    let mut command = compiler();
    command.arg("-fPIC").arg("-I").arg(library.include());
    if !wanted.has_optimisation {
        command.arg("-O2");
    }
    if wanted.has_bit_flags {
        command.arg("-DSINGLEBITFLAGS");
    }
    command.args(words.iter().filter(|word| *word != "--bit-flags" && *word != "-DSINGLEBITFLAGS"));
    if wanted.links {
        command.args(["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs"]);
        command.args(["-Wl,-u,isles_rcce_attach", "-Wl,-u,isles_rcce_run"]);
        command.arg("-L").arg(library.archives(wanted.has_bit_flags)).args(["-lircce", "-lrcce", "-lm"]);
    }
    run_compiler(&mut command, "cannot compile the program")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Wanted {
        wanted(&line.split(' ').map(Into::into).collect::<Vec<_>>())
    }

    #[test]
    fn the_arguments_say_mode_and_output() {
        let plain = Wanted { links: true, ..Wanted::default() };
        assert_eq!(of("a.c"), plain);
        let linked = of("-O3 --bit-flags a.c -o out/a");
        assert_eq!(
            linked,
            Wanted { has_bit_flags: true, links: true, has_optimisation: true, output: Some("out/a".into()) }
        );
        assert!(!of("-c a.c -oa.o").links);
        assert_eq!(of("-c a.c -oa.o").output, Some("a.o".into()));
    }

    #[test]
    fn every_source_of_the_library_is_part_of_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../c");
        let mut files: Vec<String> = Vec::new();
        for folder in ["include", "src"] {
            for entry in fs::read_dir(root.join(folder)).unwrap() {
                files.push(format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()));
            }
        }
        files.sort();
        let mut own: Vec<_> = SOURCES.iter().map(|(path, _)| path.to_string()).collect();
        own.sort();
        assert_eq!(files, own);
    }
}
