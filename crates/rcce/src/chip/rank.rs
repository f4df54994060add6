//! A rank of C as a coroutine: it runs until the library makes a request to the model.
//!
//! ```text
//! resume(answer) -> the library's next request
//! ```
//!
//! Its frames are C frames, which cannot be unwound: a rank that has not ended is reset, and its resources are leaked.

use crate::image::{Image, ProgramArguments};
use crate::interface::{MachineDescription, PortOperation, PortRequest};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use isles_app::Failure;
use std::cell::Cell;
use std::ffi::c_void;
use std::rc::Rc;

/// Bytes of the stack of a rank; unused pages take no memory.
const STACK_BYTES: usize = 8 << 20;

/// The channel of the library's requests.
struct RankPort {
    yielder: Cell<*const Yielder<u64, PortRequest>>,
}

/// A rank.
pub struct ChipRank {
    coroutine: Coroutine<u64, PortRequest, ()>,
    _port: Rc<RankPort>,
}

extern "C" fn ask(context: *mut c_void, request: *const PortRequest) -> u64 {
    // NEED: the library passes the context back as a pointer.
    // SOUND: `context` is the port of this rank, which lives as long as its coroutine; the library runs only inside
    // the coroutine, where its yielder is alive; `request` is a variable of the caller.
    unsafe {
        let port = &*context.cast::<RankPort>();
        (*port.yielder.get()).suspend(*request)
    }
}

impl ChipRank {
    /// Creates a rank that runs `image` when it is first resumed.
    ///
    /// # Errors
    /// There is no memory for its stack, or the program was built for another version.
    pub fn new(
        image: Rc<Image>,
        mut machine: MachineDescription,
        arguments: Rc<ProgramArguments>,
    ) -> Result<ChipRank, Failure> {
        let stack = DefaultStack::new(STACK_BYTES)
            .map_err(|cause| Failure::Ended(format!("no stack for rank {}: {cause}", machine.rank)))?;
        let port = Rc::new(RankPort { yielder: Cell::new(std::ptr::null()) });
        machine.request = Some(ask);
        machine.context = Rc::as_ptr(&port).cast_mut().cast();
        image.attach(&machine)?;
        let inside = Rc::clone(&port);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<u64, PortRequest>, _: u64| {
            inside.yielder.set(yielder);
            image.run(&arguments);
        });
        Ok(ChipRank { coroutine, _port: port })
    }

    /// Resumes the rank with the answer to its last request, until the next one.
    pub fn resume(&mut self, answer: u64) -> PortRequest {
        match self.coroutine.resume(answer) {
            CoroutineResult::Yield(request) => request,
            CoroutineResult::Return(()) => {
                PortRequest { operation: PortOperation::End as u32, ..PortRequest::default() }
            }
        }
    }
}

impl Drop for ChipRank {
    fn drop(&mut self) {
        // NEED: dropping a suspended coroutine would unwind it, which C frames do not support.
        // SOUND: the only Rust values on its stack are `arguments` and `image`, whose reference counts are leaked.
        unsafe { self.coroutine.force_reset() }
    }
}
