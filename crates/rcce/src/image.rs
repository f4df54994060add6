//! A program built by `isles cc`, loaded into this process: once, or as a copy for each rank.
//!
//! Each copy is a separate memory file, so that the loader treats it as a different library with its own globals.
//! Invariant: its descriptor stays open while it is loaded; otherwise another copy would get its name and its globals.

use crate::interface::{Attach, MachineDescription, Run};
use isles_app::Failure;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{CStr, CString, c_char, c_void};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// A loaded program.
pub struct Image {
    attach: Attach,
    run: Run,
    path: PathBuf,
    _copy: Option<OwnedFd>,
}

impl Image {
    /// Loads the program itself.
    ///
    /// # Errors
    /// The file is missing, or was not built by `isles cc`.
    pub fn load(path: &Path) -> Result<Image, Failure> {
        let absolute = path.canonicalize().map_err(|cause| {
            Failure::Usage(format!("cannot read the program {}: {cause}", path.display()))
        })?;
        Image::open(absolute.as_os_str().as_bytes(), path, None)
    }

    /// Loads a copy of the program, whose file contains these `bytes`.
    ///
    /// # Errors
    /// The system refuses, or the file was not built by `isles cc`.
    pub fn load_copy(path: &Path, bytes: &[u8]) -> Result<Image, Failure> {
        let refused =
            |cause: std::io::Error| Failure::Ended(format!("cannot copy {}: {cause}", path.display()));
        let memory =
            memfd_create("isles-rank", MemfdFlags::CLOEXEC).map_err(|cause| refused(cause.into()))?;
        let mut file = File::from(memory);
        file.write_all(bytes).map_err(refused)?;
        let memory = OwnedFd::from(file);
        let name = format!("/proc/self/fd/{}", memory.as_raw_fd());
        Image::open(name.as_bytes(), path, Some(memory))
    }

    fn open(name: &[u8], path: &Path, copy: Option<OwnedFd>) -> Result<Image, Failure> {
        let name = CString::new(name).map_err(|_| invalid_image(path, "its name has a zero byte"))?;
        // NEED: only the system loader can load a C program.
        // SOUND: the name ends in zero. What its initialisers do is the program's own affair, as if it were started.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(invalid_image(path, &loader_error(&name, path)));
        }
        let attach = symbol(handle, c"isles_rcce_attach");
        let run = symbol(handle, c"isles_rcce_run");
        if attach.is_null() || run.is_null() {
            return Err(invalid_image(path, "it does not contain the RCCE library"));
        }
        // NEED: symbols are untyped addresses.
        // SOUND: both are functions of `c/src`, with these types; the handle is never closed.
        let (attach, run) = unsafe {
            (std::mem::transmute::<*mut c_void, Attach>(attach), std::mem::transmute::<*mut c_void, Run>(run))
        };
        Ok(Image { attach, run, path: path.to_owned(), _copy: copy })
    }

    /// Makes the program a rank of a machine.
    ///
    /// # Errors
    /// It was built for another version of Isles.
    pub fn attach(&self, machine: &MachineDescription) -> Result<(), Failure> {
        // NEED: it is a C function.
        // SOUND: the description has the layout of `struct machine` and points to the mapped segment.
        match unsafe { (self.attach)(machine) } {
            0 => Ok(()),
            _ => Err(invalid_image(&self.path, "another version of Isles built it")),
        }
    }

    /// Runs the program; it ends the rank and does not return.
    pub fn run(&self, arguments: &ProgramArguments) {
        let (count, words) = (arguments.words.len() as i32, arguments.pointers.as_ptr());
        // NEED: it is a C function.
        // SOUND: `words` are that many zero-terminated strings, then a null; they outlive the process's ranks.
        unsafe { (self.run)(count, words) }
    }
}

/// The words of a program, its name first, as C strings.
pub struct ProgramArguments {
    words: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl ProgramArguments {
    /// Creates the words of the program at `path`.
    ///
    /// # Errors
    /// A word contains a zero byte.
    pub fn new(path: &Path, words: &[std::ffi::OsString]) -> Result<ProgramArguments, Failure> {
        let all = std::iter::once(path.as_os_str()).chain(words.iter().map(|word| word.as_os_str()));
        let words: Result<Vec<_>, _> = all.map(|word| CString::new(word.as_bytes())).collect();
        let words = words.map_err(|_| Failure::Usage("an argument of the program has a zero byte".into()))?;
        let pointers = words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect();
        Ok(ProgramArguments { words, pointers })
    }
}

fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // NEED: as above.
    // SOUND: the handle comes from `dlopen`; the name is zero-terminated.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// Returns the message of the loader, without the name at its beginning.
fn loader_error(name: &CStr, path: &Path) -> String {
    // NEED: as above.
    // SOUND: it returns null, or a string that lives until this thread's next call of the loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { c"the loader refuses" } else { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    };
    let text = text.replace(&*name.to_string_lossy(), &path.display().to_string());
    let own = format!("{}: ", path.display());
    text.strip_prefix(&own).map(str::to_owned).unwrap_or(text)
}

fn invalid_image(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("isles rccerun cannot run {}: {why}; build it with isles cc", path.display()))
}
