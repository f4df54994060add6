//! The MPI library, as the shim binds it.
//!
//! The only file of this crate with unsafe code. Errors of the library are not passed to the program: MPI does not say
//! what still works after one, so the run ends with a line, everywhere. Invariant: an open request owns its bytes, so
//! no safe function gives the library memory that only its caller keeps alive.

use crate::block::BlockBytes;
use crate::frame::FrameBytes;
use isles_transport::notice;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

// NEED: the library is C, and so is the shim that binds it.
// SOUND: these are the signatures of `shim.c`.
unsafe extern "C" {
    fn shim_begin(rank: *mut c_int, size: *mut c_int) -> c_int;
    fn shim_size(communicator: c_int, size: *mut c_int) -> c_int;
    fn shim_use(communicator: c_int, rank: *mut c_int, size: *mut c_int) -> c_int;
    fn shim_give_back() -> c_int;
    fn shim_send_frame(bytes: *const c_void, len: c_int, to: c_int, tag: c_int, slot: *mut c_int) -> c_int;
    fn shim_send_block(bytes: *const c_void, len: c_int, to: c_int, tag: c_int, slot: *mut c_int) -> c_int;
    fn shim_receive_block(bytes: *mut c_void, len: c_int, from: c_int, tag: c_int, slot: *mut c_int)
    -> c_int;
    fn shim_test(slot: c_int, done: *mut c_int) -> c_int;
    fn shim_post_frame(bytes: *mut c_void, room: c_int, slot: *mut c_int) -> c_int;
    fn shim_test_frame(
        slot: c_int,
        done: *mut c_int,
        from: *mut c_int,
        tag: *mut c_int,
        len: *mut c_int,
    ) -> c_int;
    fn shim_cancel(slot: c_int) -> c_int;
    fn shim_gather_all(own: *const c_void, len: c_int, all: *mut c_void) -> c_int;
    fn shim_begin_barrier(slot: *mut c_int) -> c_int;
    fn shim_at_exit(call: extern "C" fn(c_int)) -> c_int;
    fn shim_end() -> c_int;
    fn shim_sign_off(code: c_int);
    fn shim_leave(code: c_int) -> !;
    fn shim_abort(code: c_int) -> c_int;
    fn shim_version(text: *mut c_char, room: c_int);
    fn shim_error(code: c_int, text: *mut c_char, room: c_int);
}

/// The tag of messages before or after a run.
const APART: u32 = 0;

/// Reason why the library could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiError(String);

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MpiError {}

/// A request of the library, and the bytes that it sends or receives, on the heap.
///
/// It owns the bytes until it is done, so nothing else reads or frees them meanwhile. Dropped earlier, it leaks them to
/// the library.
#[derive(Debug)]
pub(crate) struct OpenRequest<B> {
    /// Index in the shim's table while the request is open.
    slot: Option<c_int>,
    /// Bytes of the request, until they are taken.
    bytes: Option<B>,
}

impl<B> OpenRequest<B> {
    fn new(slot: c_int, bytes: B) -> Self {
        OpenRequest { slot: Some(slot), bytes: Some(bytes) }
    }

    /// Returns a request that is done: nothing had to be moved.
    pub(crate) fn done(bytes: B) -> Self {
        OpenRequest { slot: None, bytes: Some(bytes) }
    }

    /// Returns the bytes, if the request is done.
    pub(crate) fn into_bytes(mut self) -> Option<B> {
        if self.slot.is_none() { self.bytes.take() } else { None }
    }
}

impl<B> Drop for OpenRequest<B> {
    fn drop(&mut self) {
        if self.slot.is_some() {
            std::mem::forget(self.bytes.take());
        }
    }
}

/// A received frame: its source, its tag, and its length in bytes.
pub(crate) struct ReceivedFrame {
    pub(crate) from: u32,
    pub(crate) tag: u32,
    pub(crate) len: usize,
}

/// The library, initialised; it belongs to one thread.
#[derive(Debug)]
pub struct Library {
    rank: u32,
    size: u32,
    /// True if the communicator belongs to the program, which then also finalises the library.
    is_lent: bool,
    is_over: Cell<bool>,
    thread: PhantomData<*const ()>,
}

impl Library {
    /// Initialises the library, or joins if the program has initialised it; once in a process. Removes the launcher's
    /// variables from the environment, because a program that this process starts is no rank.
    ///
    /// # Errors
    /// The library refuses, or cannot be used by one thread of several.
    pub fn begin() -> Result<Library, MpiError> {
        let (mut rank, mut size) = (0, 0);
        // NEED: the library is C.
        // SOUND: both pointers are to live integers; the shim does the rest with memory of its own.
        let code = unsafe { shim_begin(&mut rank, &mut size) };
        Library::of(code, rank, size, false)
    }

    /// Uses a communicator of the program, as the integer of `MPI_Comm_c2f`, until [`Library::end`]. All of its
    /// processes call this, one use after the other.
    ///
    /// # Errors
    /// As [`Library::size_of`] says.
    pub fn using(communicator: i32) -> Result<Library, MpiError> {
        Library::size_of(communicator)?;
        let (mut rank, mut size) = (0, 0);
        // NEED: the library is C.
        // SOUND: both pointers are to live integers, and the communicator was checked.
        let code = unsafe { shim_use(communicator, &mut rank, &mut size) };
        Library::of(code, rank, size, true)
    }

    /// Returns the number of processes in a communicator of the program.
    ///
    /// # Errors
    /// The library is not initialised, is finalised, or cannot be used by one thread of several; or this is not an
    /// intracommunicator.
    pub fn size_of(communicator: i32) -> Result<u32, MpiError> {
        let mut size = 0;
        // NEED: the library is C.
        // SOUND: the pointer is to a live integer; what the communicator is, the library says.
        match unsafe { shim_size(communicator, &mut size) } {
            0 => Ok(size as u32),
            code => Err(MpiError(refusal(code))),
        }
    }

    fn of(code: c_int, rank: c_int, size: c_int, is_lent: bool) -> Result<Library, MpiError> {
        match (code, u32::try_from(rank), u32::try_from(size)) {
            (0, Ok(rank), Ok(size)) if rank < size => {
                Ok(Library { rank, size, is_lent, is_over: Cell::new(false), thread: PhantomData })
            }
            _ => Err(MpiError(refusal(code))),
        }
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the name and version of the library in one line.
    pub fn version() -> String {
        // NEED: the library is C.
        // SOUND: the shim writes at most that many bytes, the last of them zero.
        let text = text_of(|text, room| unsafe { shim_version(text, room) });
        text.lines().next().unwrap_or_default().trim().to_owned()
    }

    /// All-gathers `own`, of equal length on all ranks; element *i* is from rank *i*.
    pub fn gather_all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let mut all = vec![0_u8; own.len() * self.size as usize];
        // NEED: the library is C.
        // SOUND: `all` has room for as many bytes of each rank.
        let code =
            unsafe { shim_gather_all(own.as_ptr().cast(), own.len() as c_int, all.as_mut_ptr().cast()) };
        self.check(code, "what the ranks say of themselves");
        all.chunks(own.len().max(1)).map(<[u8]>::to_vec).collect()
    }

    /// Sends bytes to another rank, which receives the same number, and waits until they have left; only before or
    /// after a run, when nothing else is in flight.
    pub fn send(&self, bytes: &[u8], to: u32) {
        // NEED: the library is C.
        // SOUND: the bytes are borrowed until the request is done.
        let slot = unsafe { self.begin_to_send_block(bytes, to, APART) };
        self.complete(slot);
    }

    /// Waits for bytes that another rank sends by [`Library::send`], of the length of `bytes`.
    pub fn receive(&self, bytes: &mut [u8], from: u32) {
        // NEED: the library is C.
        // SOUND: the bytes are borrowed until the request is done.
        let slot = unsafe { self.begin_to_receive_block(bytes, from, APART) };
        self.complete(slot);
    }

    fn complete(&self, slot: c_int) {
        let mut request = OpenRequest::new(slot, ());
        while !self.is_done(&mut request) {
            std::thread::yield_now();
        }
    }

    /// Starts the send of a frame.
    pub(crate) fn send_frame(&self, frame: FrameBytes, to: u32, tag: u32) -> OpenRequest<FrameBytes> {
        let (bytes, mut slot) = (frame.bytes(), 0);
        // NEED: the library is C.
        // SOUND: the bytes are on the heap, where the request keeps them until it is done.
        let code = unsafe {
            shim_send_frame(bytes.as_ptr().cast(), bytes.len() as c_int, to as c_int, tag as c_int, &mut slot)
        };
        self.check(code, "a message");
        OpenRequest::new(slot, frame)
    }

    /// Starts the send of a block.
    pub(crate) fn send_block(&self, bytes: BlockBytes, to: u32, tag: u32) -> OpenRequest<BlockBytes> {
        // NEED: the library is C.
        // SOUND: the bytes are on the heap, where the request keeps them until it is done.
        let slot = unsafe { self.begin_to_send_block(bytes.bytes(), to, tag) };
        OpenRequest::new(slot, bytes)
    }

    /// Starts the receive of a block of the length of `bytes` into them.
    pub(crate) fn receive_block(
        &self,
        mut bytes: BlockBytes,
        from: u32,
        tag: u32,
    ) -> OpenRequest<BlockBytes> {
        // NEED: the library is C.
        // SOUND: the bytes are on the heap, where the request keeps them until it is done.
        let slot = unsafe { self.begin_to_receive_block(bytes.bytes_mut(), from, tag) };
        OpenRequest::new(slot, bytes)
    }

    /// Returns the slot of a request that sends a block.
    ///
    /// # Safety
    /// The bytes stay where and what they are until the request is done.
    unsafe fn begin_to_send_block(&self, bytes: &[u8], to: u32, tag: u32) -> c_int {
        let mut slot = 0;
        // NEED: the library is C.
        // SOUND: by the contract.
        let code = unsafe {
            shim_send_block(bytes.as_ptr().cast(), bytes.len() as c_int, to as c_int, tag as c_int, &mut slot)
        };
        self.check(code, "a large message");
        slot
    }

    /// Returns the slot of a request that receives a block.
    ///
    /// # Safety
    /// The bytes stay where they are, and nobody else reads or writes them, until the request is done.
    unsafe fn begin_to_receive_block(&self, bytes: &mut [u8], from: u32, tag: u32) -> c_int {
        let mut slot = 0;
        // NEED: the library is C.
        // SOUND: by the contract.
        let code = unsafe {
            shim_receive_block(
                bytes.as_mut_ptr().cast(),
                bytes.len() as c_int,
                from as c_int,
                tag as c_int,
                &mut slot,
            )
        };
        self.check(code, "a large message");
        slot
    }

    /// Returns `true` if a request is done; the library then no longer knows it.
    pub(crate) fn is_done<B>(&self, request: &mut OpenRequest<B>) -> bool {
        let Some(slot) = request.slot else { return true };
        let mut done = 0;
        // NEED: the library is C.
        // SOUND: the slot is open, because only this function closes it, and takes it away then.
        let code = unsafe { shim_test(slot, &mut done) };
        self.check(code, "a message under way");
        if done != 0 {
            request.slot = None;
        }
        done != 0
    }

    /// Posts a receive of the next frame that no earlier one takes, into `bytes` from `start` on.
    pub(crate) fn post_frame(&self, mut bytes: BlockBytes, start: usize) -> OpenRequest<BlockBytes> {
        let mut slot = 0;
        let room = &mut bytes.bytes_mut()[start..];
        // NEED: the library is C.
        // SOUND: the bytes are on the heap, where the request keeps them until it is done or cancelled.
        let code = unsafe { shim_post_frame(room.as_mut_ptr().cast(), room.len() as c_int, &mut slot) };
        self.check(code, "a message");
        OpenRequest::new(slot, bytes)
    }

    /// Returns the frame that has arrived for a receive posted by [`Library::post_frame`], which is then done; `None`
    /// if none has.
    pub(crate) fn take_frame(&self, request: &mut OpenRequest<BlockBytes>) -> Option<ReceivedFrame> {
        let slot = request.slot?;
        let (mut done, mut from, mut tag, mut len) = (0, 0, 0, 0);
        // NEED: the library is C.
        // SOUND: the slot is open, and it is that of a frame; the pointers are to live integers.
        let code = unsafe { shim_test_frame(slot, &mut done, &mut from, &mut tag, &mut len) };
        self.check(code, "what arrives");
        if done == 0 {
            return None;
        }
        request.slot = None;
        Some(ReceivedFrame { from: from as u32, tag: tag as u32, len: len as usize })
    }

    /// Cancels a receive for which nothing comes any more.
    pub(crate) fn cancel<B>(&self, mut request: OpenRequest<B>) {
        if let Some(slot) = request.slot.take() {
            // NEED: the library is C.
            // SOUND: the slot was open; the library knows of it and of its bytes no more after this call.
            let code = unsafe { shim_cancel(slot) };
            self.check(code, "the end of the run");
        }
    }

    /// Starts to wait until all ranks have called this.
    pub(crate) fn begin_barrier(&self) -> OpenRequest<()> {
        let mut slot = 0;
        // NEED: the library is C.
        // SOUND: the pointer is to a live integer.
        let code = unsafe { shim_begin_barrier(&mut slot) };
        self.check(code, "the end of the run");
        OpenRequest::new(slot, ())
    }

    /// Registers `call` to be called with the exit code by the thread that exits this process normally; once.
    pub fn at_exit(&self, call: extern "C" fn(c_int)) {
        // NEED: only the C library tells the exit code.
        // SOUND: the function stays as long as the program does.
        let refused = unsafe { shim_at_exit(call) };
        assert_eq!(refused, 0, "the C library takes no function for the exit");
    }

    /// Finalises the library, or gives the program's communicator back; nothing more is sent or received.
    pub fn end(&self) {
        if !self.is_over.replace(true) {
            // NEED: the library is C.
            // SOUND: no request is open, because the endpoint was closed.
            let _ = unsafe { if self.is_lent { shim_give_back() } else { shim_end() } };
        }
    }

    /// Finalises the library as [`Library::end`]; if that takes longer than `limit`, ends this process with `code`.
    /// With MPICH it ends the process at once, as far as its launcher allows, because MPICH's finalisation sometimes
    /// hangs.
    pub fn end_within(&self, limit: Duration, code: i32) {
        // Its end is that of the process, which does not wait for it.
        let _ = std::thread::Builder::new().name("isles-end".into()).spawn(move || {
            std::thread::sleep(limit);
            leave(code)
        });
        // NEED: the library is C.
        // SOUND: it takes a number, and what it writes goes to the launcher.
        unsafe { shim_sign_off(code) };
        self.end();
    }

    /// Prints the reason on standard error, and ends all ranks with an exit code other than 0.
    pub fn abort(&self, why: &dyn fmt::Display) -> ! {
        notice(format_args!("isles: place {}: {why}", self.rank));
        // The launcher may be slow, and `MPI_Abort` wait for it.
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            std::process::abort();
        });
        // NEED: the library is C.
        // SOUND: it takes a number.
        unsafe { shim_abort(1) };
        std::process::exit(1)
    }

    fn check(&self, code: c_int, what: &str) {
        if code != 0 {
            self.abort(&format_args!("MPI fails at {what}: {}", meaning(code)));
        }
    }
}

/// Ends this process with `code` at once, without exit handlers.
pub(crate) fn leave(code: i32) -> ! {
    // NEED: nothing safe ends a process without running what it runs at its end, which may wait for who is lost.
    // SOUND: it takes a number.
    unsafe { shim_leave(code) }
}

/// Returns the reason why the library cannot be used: a code of the shim, or an error code of the library.
fn refusal(code: c_int) -> String {
    let text = match code {
        -1 => "it does not offer MPI_THREAD_FUNNELED; allowed: MPI_Init_thread with that, or more",
        -2 => "the library has not begun, or has ended; allowed: between MPI_Init_thread and MPI_Finalize",
        -3 => "the communicator is MPI_COMM_NULL; allowed: one that this process is in",
        -4 => "the communicator is an intercommunicator; allowed: an intracommunicator",
        _ => return meaning(code),
    };
    text.to_owned()
}

/// Returns the meaning of an error code of the library.
fn meaning(code: c_int) -> String {
    // NEED: the library is C.
    // SOUND: the shim writes at most that many bytes, the last of them zero.
    let text = text_of(|text, room| unsafe { shim_error(code, text, room) });
    if text.is_empty() { format!("error {code}") } else { text }
}

/// Returns the text that `write` stores in its buffer.
fn text_of(write: impl FnOnce(*mut c_char, c_int)) -> String {
    let mut text = [0_u8; 1024];
    write(text.as_mut_ptr().cast(), text.len() as c_int);
    let len = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&text[..len]).into_owned()
}
