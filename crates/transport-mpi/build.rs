//! Finds the MPI library and compiles the shim for it.
//!
//! `MPICC` names the compiler of the library, otherwise it is `mpicc`. Only with the feature `library`.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    if env::var_os("CARGO_FEATURE_LIBRARY").is_none() {
        return;
    }
    let compiler = env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    // Both libraries print the command that they would run; we want the arguments that they add to a C compiler's.
    let shown = match Command::new(&compiler).arg("-show").output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => panic!(
            "the feature `mpi` needs an MPI library with its compiler, but `{compiler} -show` does not \
             work; on Debian: apt-get install libopenmpi-dev openmpi-bin, or libmpich-dev mpich; MPICC \
             chooses one"
        ),
    };
    let mut build = cc::Build::new();
    build.file("src/shim.c").std("c11").warnings(true);
    for word in shown.split_whitespace() {
        if let Some(folder) = word.strip_prefix("-I") {
            build.include(folder);
        } else if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        }
    }
    build.compile("mpi_shim");
    for word in shown.split_whitespace() {
        if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
