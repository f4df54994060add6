//! `isles bare build`: an image of C programs over RCCE, or of a Rust crate over `bare_core`.
//!
//! Cargo builds the Rust part, gcc the library and the program, and ld links them by `link.x`. The sources are in the
//! folder `bare-metal` of a checkout of Isles.

use crate::Failure;
use crate::run::is_on_path;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-none";

/// Options of gcc for code on a bare core: no red zone, because interrupts use the stack.
const C_OPTIONS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-ffreestanding",
    "-mno-red-zone",
    "-fno-pic",
    "-fno-pie",
    "-fno-stack-protector",
    "-fstack-clash-protection", // A large frame touches the guard page, too.
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
    "-nostdinc",
    // gcc would assume that an undeclared function returns an integer, and the linker might find it elsewhere.
    "-Werror=implicit-function-declaration",
];

/// Options that let gcc inline across files. QEMU's translator looks up the code at each return, so calls took most of
/// the time of a short message.
const INLINING: &[&str] = &[
    "-flto=1",
    "-flto-partition=one",
    "-fno-fat-lto-objects",
    "-finline-functions",
    "--param=max-inline-insns-auto=24",
    "--param=early-inlining-insns=14",
    "--param=inline-min-speedup=15",
];

const LINKER_OPTIONS: &[&str] = &[
    "-nostdlib",
    "-static",
    "--nmagic",
    "--gc-sections",
    "--sort-section=alignment", // Less padding.
    "--strip-all",
    "-z",
    "noexecstack",
    "--no-warn-rwx-segments",
];

/// Prefixes of the names of functions for threads and devices, see `bare.h`.
const THREAD_NAMES: [&str; 4] = ["bare_thread_", "bare_device_", "bare_signal", "bare_wait_signal"];

/// Options of the image to build.
#[derive(Debug, Default)]
struct ImageOptions {
    sources: Vec<PathBuf>,
    image: Option<PathBuf>,
    program: Option<String>,
    options: Vec<String>,
}

/// Builds an image.
///
/// # Errors
/// The words are invalid, or a compiler fails, which has reported the reason.
pub fn execute(words: &[String]) -> Result<(), Failure> {
    let order = parse(words)?;
    let bare = sources()?;
    let [first, others @ ..] = &order.sources[..] else {
        return Err(usage("no program; use isles bare build PROGRAM.c, or the folder of a crate"));
    };
    let image = if first.join("Cargo.toml").is_file() && others.is_empty() {
        build_crate(first, &order, &bare)?
    } else {
        for source in &order.sources {
            let is_c = source.extension().is_some_and(|ending| ending == "c");
            if !is_c || !source.is_file() {
                let shown = source.display();
                return Err(usage(format!(
                    "{shown} is neither a file PROGRAM.c nor a folder with a Cargo.toml"
                )));
            }
        }
        build_c(&order, &bare)?
    };
    let bytes = std::fs::metadata(&image).map_or(0, |file| file.len());
    println!("{}: {:.1} KiB", image.display(), bytes as f64 / 1024.0);
    Ok(())
}

fn parse(words: &[String]) -> Result<ImageOptions, Failure> {
    let (mut order, mut words) = (ImageOptions::default(), words.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" => order.image = Some(words.next().ok_or_else(|| usage("-o needs a file"))?.into()),
            "--bin" => order.program = Some(words.next().ok_or_else(|| usage("--bin needs a name"))?.clone()),
            option if ["-D", "-I", "-O", "-U", "-g"].iter().any(|begin| option.starts_with(begin)) => {
                order.options.push(word.clone());
            }
            option if option.starts_with('-') => {
                return Err(usage(format!(
                    "unknown option {option}; allowed: -o, --bin, -D, -I, -O, -U, -g"
                )));
            }
            _ => order.sources.push(word.into()),
        }
    }
    Ok(order)
}

/// Returns the folder `bare-metal` of the checkout that contains the current directory or this program.
fn sources() -> Result<PathBuf, Failure> {
    let starts = [std::env::current_dir(), std::env::current_exe()];
    let mut folders = starts.iter().flatten().flat_map(|start| start.ancestors());
    let bare = folders
        .find_map(|folder| Some(folder.join("bare-metal")).filter(|bare| bare.join("link.x").is_file()));
    bare.ok_or_else(|| {
        usage("images are built inside the Isles sources, but there is no folder bare-metal here")
    })
}

fn build_crate(folder: &Path, order: &ImageOptions, bare: &Path) -> Result<PathBuf, Failure> {
    let program = match &order.program {
        Some(program) => program.clone(),
        None => package_name(folder)?,
    };
    let target = bare.join("target");
    let mut cargo = cargo(bare, &target)?;
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml")).args(["--bin", &program]);
    run_compiler(&mut cargo, "cargo")?;
    let image = image_file(order, &program)?;
    let built = target.join(TARGET).join("release").join(&program);
    std::fs::copy(&built, &image).map_err(|cause| usage(format!("{}: {cause}", built.display())))?;
    Ok(image)
}

/// Returns the package name in a manifest, the default name of the crate's program.
fn package_name(folder: &Path) -> Result<String, Failure> {
    let file = folder.join("Cargo.toml");
    let text =
        std::fs::read_to_string(&file).map_err(|cause| usage(format!("{}: {cause}", file.display())))?;
    let line = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    line.map(String::from).ok_or_else(|| usage(format!("{} names no package", file.display())))
}

/// Returns a `cargo build` command for bare cores.
fn cargo(bare: &Path, target: &Path) -> Result<Command, Failure> {
    if !is_on_path("cargo") {
        return Err(usage("cargo is not on PATH; install Rust (https://rustup.rs)"));
    }
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().map(|output| output.stdout);
    let sysroot = String::from_utf8_lossy(&sysroot.unwrap_or_default()).trim().to_string();
    if !Path::new(&sysroot).join("lib/rustlib").join(TARGET).is_dir() {
        return Err(usage(format!(
            "the Rust target {TARGET} is not installed; run: rustup target add \
             {TARGET}"
        )));
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--target", TARGET]);
    let script = bare.join("link.x");
    // Joined by unit separators, so that a path may contain spaces.
    let flags =
        format!("-Crelocation-model=static\u{1f}-Clink-arg=--nmagic\u{1f}-Clink-arg=-T{}", script.display());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags).env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS");
    Ok(cargo)
}

fn build_c(order: &ImageOptions, bare: &Path) -> Result<PathBuf, Failure> {
    if !is_on_path("gcc") {
        return Err(usage("gcc, needed to compile C, is not on PATH; on Debian: apt-get install gcc"));
    }
    let library = bare.with_file_name("c");
    if !library.join("src/run.c").is_file() {
        return Err(usage(format!("there is no RCCE library in {}", library.display())));
    }
    let target = bare.join("target");
    let mut files = c_files(&library.join("src"))?;
    files.extend(c_files(&bare.join("c/src"))?);
    files.extend(order.sources.iter().cloned());
    let objects = target.join("c").join(std::process::id().to_string());
    std::fs::create_dir_all(&objects).map_err(|cause| usage(format!("{}: {cause}", objects.display())))?;
    let built = compile_and_link(order, bare, &library, &files, &objects);
    let _ = std::fs::remove_dir_all(&objects); // what is left does no harm
    built
}

fn compile_and_link(
    order: &ImageOptions,
    bare: &Path,
    library: &Path,
    files: &[PathBuf],
    objects: &Path,
) -> Result<PathBuf, Failure> {
    let object = join(order, &compile(order, bare, library, files, objects)?, objects)?;
    let rust = rust_library(bare, &object)?;
    let first = order.sources[0].file_stem().unwrap_or_default().to_string_lossy();
    let image = image_file(order, &first)?;
    let mut ld = Command::new("ld");
    ld.args(LINKER_OPTIONS).arg("-T").arg(bare.join("link.x")).arg(object);
    ld.arg(rust).arg("-o").arg(&image);
    run_compiler(&mut ld, "ld")?;
    Ok(image)
}

/// Builds the Rust part of the C library, and returns its file: with threads and devices if the object calls them. An
/// image contains the scheduler if the library does, because the interrupts call it.
fn rust_library(bare: &Path, object: &Path) -> Result<PathBuf, Failure> {
    let bytes = std::fs::read(object).map_err(|cause| usage(format!("{}: {cause}", object.display())))?;
    let calls = |name: &[u8]| bytes.windows(name.len()).any(|text| text == name);
    let has_threads = THREAD_NAMES.iter().any(|name| calls(name.as_bytes()));
    let (target, features) =
        if has_threads { ("target/threads", "--features=threads") } else { ("target", "--features=") };
    let target = bare.join(target);
    let mut cargo = cargo(bare, &target)?;
    cargo.arg("--manifest-path").arg(bare.join("Cargo.toml")).args(["--package", "bare-c", features]);
    run_compiler(&mut cargo, "cargo")?;
    Ok(target.join(TARGET).join("release/libbare_c.a"))
}

/// Compiles files of C into a folder, and returns the objects.
fn compile(
    order: &ImageOptions,
    bare: &Path,
    library: &Path,
    files: &[PathBuf],
    objects: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let own = Command::new("gcc").arg("-print-file-name=include").output();
    let own = own.map_err(|cause| usage(format!("cannot start gcc: {cause}")))?.stdout;
    let own = String::from_utf8_lossy(&own).trim().to_string();
    let mut names = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let object = objects.join(format!("{number}.o"));
        let mut gcc = Command::new("gcc");
        gcc.args(C_OPTIONS)
            .args(INLINING)
            .arg("-isystem")
            .arg(&own)
            .arg("-isystem")
            .arg(bare.join("c/include"));
        gcc.arg("-I").arg(library.join("include")).arg("-I").arg(library.join("src")).args(&order.options);
        gcc.arg("-c").arg(file).arg("-o").arg(&object);
        run_compiler(&mut gcc, "gcc")?;
        names.push(object);
    }
    Ok(names)
}

/// Compiles the objects of a folder, which hold gcc's intermediate code for inlining, into one machine-code object.
fn join(order: &ImageOptions, objects: &[PathBuf], folder: &Path) -> Result<PathBuf, Failure> {
    let joined = folder.join("image.o");
    let mut gcc = Command::new("gcc");
    gcc.args(C_OPTIONS).args(INLINING).args(&order.options);
    gcc.args(["-nostdlib", "-r", "-flinker-output=nolto-rel"]).args(objects).arg("-o").arg(&joined);
    run_compiler(&mut gcc, "gcc")?;
    Ok(joined)
}

/// Returns the C files of a folder by name.
fn c_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries =
        std::fs::read_dir(folder).map_err(|cause| usage(format!("{}: {cause}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "c"));
    files.sort();
    Ok(files)
}

/// Returns the file for the image; creates its folder.
fn image_file(order: &ImageOptions, name: &str) -> Result<PathBuf, Failure> {
    let image = order.image.clone().unwrap_or_else(|| Path::new("out").join(format!("{name}.img")));
    if let Some(folder) = image.parent() {
        std::fs::create_dir_all(folder).map_err(|cause| usage(format!("{}: {cause}", folder.display())))?;
    }
    Ok(image)
}

/// Runs a compiler, which reports its errors itself.
fn run_compiler(command: &mut Command, name: &str) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(usage(format!("{name} failed; see its output above"))),
        Err(cause) => Err(usage(format!("cannot start {name}: {cause}"))),
    }
}

fn usage(line: impl Into<String>) -> Failure {
    Failure::Usage(line.into())
}
