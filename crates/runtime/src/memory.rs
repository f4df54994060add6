//! Memory of a host, and memory in large pages.

use rustix::mm::{Advice, madvise};

/// Size from which memory gets large pages.
const LARGE: usize = 4 << 20;

/// Size of a large page. If the system's are larger, the range keeps small ones.
const LARGE_PAGE: usize = 2 << 20;

/// Returns the memory the host can still provide without swapping other programs out, in bytes; `None` if the system
/// does not say.
pub fn free_bytes() -> Option<u64> {
    of_system("MemAvailable:")
}

/// Returns the memory of the host, in bytes; `None` if the system does not say.
pub fn host_bytes() -> Option<u64> {
    of_system("MemTotal:")
}

fn of_system(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns an empty vector with room for `capacity` elements, in large pages if the system gives some on request
/// (`madvise` or `always` in `/sys/kernel/mm/transparent_hugepage/enabled`).
///
/// Random reads of a table then miss the processor's TLB less often. Less than 4 MiB get pages of any size, and so does
/// a vector that grows beyond its capacity.
pub fn vec_in_large_pages<T>(capacity: usize) -> Vec<T> {
    let mut memory = Vec::with_capacity(capacity);
    let room = memory.spare_capacity_mut();
    let bytes = size_of_val(room);
    if bytes >= LARGE {
        let begin = room.as_mut_ptr().cast::<u8>();
        let skipped = begin.align_offset(LARGE_PAGE);
        let len = (bytes - skipped) / LARGE_PAGE * LARGE_PAGE;
        // A system without large pages refuses, and the range keeps its pages.
        // NEED: the advice names the memory by address.
        // SOUND: the range lies in the vector's memory, and the advice changes nothing of its content.
        let _ = unsafe { madvise(begin.add(skipped).cast(), len, Advice::LinuxHugepage) };
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_more_than_is_free() {
        assert!(free_bytes() <= host_bytes());
        assert!(host_bytes() > Some(1 << 20));
    }

    #[test]
    fn memory_in_large_pages_is_as_any() {
        for count in [0, 3, LARGE / 8, LARGE + 12_345] {
            let mut memory = vec_in_large_pages(count);
            assert!(memory.is_empty() && memory.capacity() >= count);
            memory.extend(0..count as u64);
            assert!(memory.iter().copied().eq(0..count as u64));
        }
        assert_eq!(vec_in_large_pages::<()>(5).len(), 0);
    }
}
