//! Memory of an interpreter. Scripts create and drop hundreds of small objects in each call; an arena with a list of
//! free blocks for each size serves those in a few instructions. Large blocks, and blocks for which the arena has no
//! space, come from the process' allocator.

use std::{
    alloc::{self, Layout},
    ffi::c_void,
    ptr::{self, null_mut},
};

use mlua::ffi::{self, lua_State};

use crate::script::watchdog::Time;

/// Greatest memory of scripts, in bytes: a runaway one ends with an error, not with the process.
pub(super) const MEMORY_MAX: usize = 512 * 1024 * 1024;

/// Sizes are rounded up to multiples of this, which is also the alignment of blocks.
const STEP: usize = 16;

/// Greatest size of a block in the arena: closures, strings and tables of scripts are smaller.
const SMALL_MAX: usize = 512;

/// Size of the arena in bytes: ten times the need of Meshwork's scripts and their garbage. The system provides only
/// the used part.
const ARENA: usize = 16 * 1024 * 1024;

/// Size from which filling a block takes noticeable time.
const LARGE: usize = 64 * 1024;

/// Bytes of large blocks between two checks of the clock: filling them takes some ten milliseconds.
const FILLED: usize = 64 * 1024 * 1024;

/// The memory of an interpreter.
pub(super) struct Memory {
    used: usize,
    /// Time limit of the script. No hook interrupts Lua's own functions, which fill what they allocate. After the
    /// limit, they get no large block.
    time: Time,
    /// Bytes of large blocks since the last check of the clock.
    filled: usize,
    late: bool,
    limited: bool,
    arena: *mut u8,
    /// Bytes of the arena that were ever used.
    given: usize,
    /// Free blocks of each size; each begins with the address of the next.
    free: [*mut u8; SMALL_MAX / STEP],
}

impl Memory {
    /// Returns the memory of an interpreter whose scripts have this time limit.
    pub(super) fn new(time: Time) -> Self {
        // SAFETY: the size is not zero. Without an arena, all blocks come from the process' allocator.
        let arena = unsafe { alloc::alloc(arena_layout()) };
        Self {
            used: 0,
            time,
            filled: 0,
            late: false,
            limited: false,
            arena,
            given: if arena.is_null() { ARENA } else { 0 },
            free: [null_mut(); SMALL_MAX / STEP],
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.arena.is_null() {
            // SAFETY: allocated with the same layout; the interpreter has ended.
            unsafe { alloc::dealloc(self.arena, arena_layout()) };
        }
    }
}

const fn arena_layout() -> Layout {
    match Layout::from_size_align(ARENA, STEP) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    }
}

impl Memory {
    /// Serves this interpreter from now on; it must end first. Earlier blocks came from the process' allocator, and
    /// go back there.
    pub(super) unsafe fn serve(&mut self, state: *mut lua_State) {
        unsafe { ffi::lua_setallocf(state, allocate, (&raw mut *self).cast()) };
    }

    /// Sets whether requests beyond [`MEMORY_MAX`] fail, which raises an error of Lua.
    pub(super) fn limit(&mut self, limited: bool) {
        self.limited = limited;
    }

    /// Called at the start of a script.
    pub(super) fn begin(&mut self) {
        self.late = false;
    }

    /// Returns whether the script was refused a block after its time limit.
    pub(super) fn is_late(&self) -> bool {
        self.late
    }

    /// Returns whether the time limit permits a block of this size.
    fn is_in_time(&mut self, size: usize) -> bool {
        self.filled = self.filled.saturating_add(size);
        if self.filled >= FILLED {
            self.filled = 0;
            self.late = self.late || self.time.is_over();
        }
        !self.late
    }

    fn is_ours(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.arena as usize) < ARENA
    }

    unsafe fn get(&mut self, size: usize) -> *mut u8 {
        if size <= SMALL_MAX {
            let class = (size - 1) / STEP;
            let block = self.free[class];
            if !block.is_null() {
                // SAFETY: a free block has the address of the next.
                self.free[class] = unsafe { block.cast::<*mut u8>().read() };
                return block;
            }
            let rounded = (class + 1) * STEP;
            if self.given + rounded <= ARENA {
                // SAFETY: within the arena.
                let block = unsafe { self.arena.add(self.given) };
                self.given += rounded;
                return block;
            }
        }
        // SAFETY: the size is not zero.
        unsafe { alloc::alloc(layout(size)) }
    }

    unsafe fn free_block(&mut self, block: *mut u8, size: usize) {
        if self.is_ours(block) {
            let class = (size - 1) / STEP;
            // SAFETY: every block of the arena has room for an address.
            unsafe { block.cast::<*mut u8>().write(self.free[class]) };
            self.free[class] = block;
        } else {
            // SAFETY: allocated with this size and alignment, here or by the library before [`Self::serve`].
            unsafe { alloc::dealloc(block, layout(size)) };
        }
    }

    unsafe fn resize(&mut self, block: *mut u8, from: usize, to: usize) -> *mut u8 {
        let ours = self.is_ours(block);
        if ours && (from - 1) / STEP == (to - 1) / STEP {
            return block;
        }
        // SAFETY: the blocks have the given sizes, and are different ones.
        unsafe {
            if !ours && to > SMALL_MAX {
                return alloc::realloc(block, layout(from), to);
            }
            let moved = self.get(to);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, from.min(to));
                self.free_block(block, from);
            }
            moved
        }
    }
}

/// Returns the layout that the library uses.
fn layout(size: usize) -> Layout {
    // SAFETY: Lua requests no more than the address space, and the alignment is a power of two.
    unsafe { Layout::from_size_align_unchecked(size, ffi::SYS_MIN_ALIGN) }
}

/// Lua's allocation function: allocates if `block` is null, frees if `to` is 0.
unsafe extern "C" fn allocate(
    memory: *mut c_void,
    block: *mut c_void,
    from: usize,
    to: usize,
) -> *mut c_void {
    // SAFETY: set with this pointer in [`Memory::serve`].
    let memory = unsafe { &mut *memory.cast::<Memory>() };
    let block = block.cast::<u8>();
    // SAFETY: Lua passes the true size of its blocks.
    unsafe {
        if to == 0 {
            if !block.is_null() {
                memory.free_block(block, from);
                memory.used = memory.used.saturating_sub(from);
            }
            return null_mut();
        }
        let from = if block.is_null() { 0 } else { from };
        let used = memory.used.saturating_sub(from).saturating_add(to);
        let grows = memory.limited && to > from;
        // A refused request takes time too, and may be repeated.
        let late = grows && to >= LARGE && !memory.is_in_time(to);
        let refused = (grows && used > MEMORY_MAX) || late || to > isize::MAX as usize;
        let got = match refused {
            true => null_mut(),
            false if block.is_null() => memory.get(to),
            false => memory.resize(block, from, to),
        };
        if got.is_null() {
            if !refused {
                // Not reported to scripts: the process cannot work without memory.
                alloc::handle_alloc_error(layout(to));
            }
        } else {
            memory.used = used;
        }
        got.cast()
    }
}
