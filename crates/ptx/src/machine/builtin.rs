//! Functions of the device's runtime: printing, assertions, the heap, launches from the device.

use super::block::{Block, BlockMemory};
use super::execute::{line_at, place_of, read_param, write_param};
use super::grid::{Allocated, DeviceLaunch, Machine, PendingLaunch};
use super::lanes::{Register, indices};
use super::launch::{Halt, Shape};
use super::print;
use super::program::{Argument, Call, Code};
use super::space::{FUNCTION, RANK_SHIFT, Window, window};
use super::warp::{Base, Group, Warp};
use crate::device::HEAP;
use crate::finding::{Access, Act, Fault, Kind, Party, Space};
use crate::ir::{Builtin, FunctionKind, Line};
use crate::memory::{Request, Trouble};
use crate::place::{LANES, Place};

/// Longest string that is read from the device.
const LONGEST_TEXT: u64 = 1 << 16;

/// Most bytes that a launch may print.
const MOST_OUTPUT: usize = 64 << 20;

/// Launches from the device that a grid may leave, as the hardware's default.
const MOST_LAUNCHES: usize = 2048;

/// `cudaErrorLaunchPendingCountExceeded` and `cudaErrorInvalidValue`.
const ERROR_PENDING: u64 = 69;
const ERROR_VALUE: u64 = 1;

impl Machine<'_> {
    /// Calls a function of the runtime for each lane of the group.
    pub(crate) fn builtin(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        call: &Call,
        code: &Code,
        builtin: Builtin,
    ) -> Result<(), Halt> {
        let base = group.base;
        let arguments: Vec<Register> =
            (0..call.arguments.len()).map(|i| part(&block.warps[w], base, call, i, 0, 8)).collect();
        let argument = |i: usize, lane: usize| arguments.get(i).map_or(0, |a| a[lane]);
        let mut results = [0; LANES];
        for lane in indices(group.mask) {
            let thread = (w * LANES + lane) as u32;
            results[lane] = match builtin {
                Builtin::Vprintf => {
                    self.print(&block.memory, thread, argument(0, lane), argument(1, lane))
                }
                Builtin::AssertFail => {
                    let text = |at: u64| {
                        String::from_utf8_lossy(&self.text(&block.memory, thread, at)).into_owned()
                    };
                    let (message, file) = (text(argument(0, lane)), text(argument(1, lane)));
                    let function = text(argument(3, lane));
                    let line = argument(2, lane) as u32;
                    let message = format!("{file}:{line}: {function}: `{message}`");
                    let place = place_of(block, w, 1 << lane);
                    return Err(Halt::Assertion { line: line_at(code, group.pc), place, message });
                }
                Builtin::Malloc => self.take_from_heap(argument(0, lane)),
                Builtin::Free => {
                    let place = place_of(block, w, 1 << lane);
                    self.free(argument(0, lane), place, line_at(code, group.pc));
                    0
                }
                Builtin::GetParameterBuffer => {
                    self.parameter_buffer(&block.warps[w], base, call, lane)
                }
                Builtin::LaunchDevice => self.launch_from_device(argument(0, lane)),
                Builtin::GetLastError | Builtin::PeekAtLastError => 0,
            };
        }
        if let Some(result) = call.results.first() {
            let warp = &mut block.warps[w];
            match *result {
                Argument::Memory { offset, bytes } => {
                    write_param(warp, base.params + offset, bytes.min(8), &results, group.mask);
                }
                Argument::Value { slot } => {
                    let dst = &mut warp.registers[base.slot(slot)];
                    indices(group.mask).for_each(|lane| dst[lane] = results[lane]);
                }
            }
        }
        Ok(())
    }

    fn print(&mut self, memory: &BlockMemory, thread: u32, format: u64, arguments: u64) -> u64 {
        let format = self.text(memory, thread, format);
        let mut at = arguments;
        let next = |bytes: u64| {
            at = at.next_multiple_of(bytes);
            let value = (0..bytes).fold(0, |v, i| {
                v | u64::from(self.peek(memory, thread, at + i).unwrap_or(0)) << (8 * i)
            });
            at += bytes;
            value
        };
        let text = print::format(&format, next, |address| self.text(memory, thread, address));
        if self.output.len() + text.len() <= MOST_OUTPUT {
            self.output.extend_from_slice(&text);
        }
        1
    }

    /// The string at a generic address.
    fn text(&self, memory: &BlockMemory, thread: u32, address: u64) -> Vec<u8> {
        (0..LONGEST_TEXT)
            .map_while(|i| self.peek(memory, thread, address + i).filter(|&b| b != 0))
            .collect()
    }

    /// One byte at a generic address, unchecked by the checkers.
    fn peek(&self, memory: &BlockMemory, thread: u32, address: u64) -> Option<u8> {
        let (which, within) = window(address);
        let byte = |region: &crate::memory::Region, start: usize| {
            let within = within.checked_sub(region.base())?;
            (within < region.len() as u64)
                .then(|| region.bytes().load(start + within as usize, 1) as u8)
        };
        match which {
            Window::Global => self
                .global
                .view(address)
                .map(|v| v.bytes.load((address - v.base) as usize, 1) as u8),
            Window::Shared => {
                (within >> RANK_SHIFT == 0).then(|| byte(&memory.shared.region, 0)).flatten()
            }
            Window::Local => byte(&memory.local, memory.local.start(thread)),
            Window::Const => byte(self.constant, 0),
            Window::Param => byte(self.arguments, 0),
            Window::Nowhere => None,
        }
    }

    /// Bytes of the heap; 0 if it is exhausted.
    fn take_from_heap(&mut self, bytes: u64) -> u64 {
        let Some(heap) = &mut self.heap else { return 0 };
        let size = bytes.max(1).checked_next_multiple_of(16);
        match size.filter(|&s| s <= heap.top - heap.next) {
            Some(size) => {
                heap.next += size;
                let at = heap.next - size;
                self.allocated.insert(at, Allocated { bytes: bytes.max(1), freed: None });
                at
            }
            None => 0,
        }
    }

    /// Gives memory of the heap back. It is not handed out again, so that who still uses it is found.
    fn free(&mut self, address: u64, place: Place, line: Line) {
        if address == 0 {
            return;
        }
        let fault = |kind, detail: String| Fault {
            access: Some(Access { space: Space::Global, act: Act::Write, address, size: 1 }),
            ..Fault::of_control(kind, line, place, detail)
        };
        // An earlier launch may have allocated it.
        let older = self.allocated.range(..=address).next_back().is_none()
            && self.heap.is_some_and(|h| (h.end - HEAP..h.next).contains(&address));
        match self.allocated.get_mut(&address) {
            Some(Allocated { freed: freed @ None, .. }) => *freed = Some((place, line)),
            Some(Allocated { freed: Some((first, its)), .. }) => {
                let other = Party { place: *first, line: *its, act: None };
                let fault = fault(Kind::Freed, "by a second free()".into());
                self.report(Fault { other: Some(other), ..fault });
            }
            None if older => {}
            None => {
                let detail = "by free(), which is not the beginning of an allocation of malloc()";
                self.report(fault(Kind::OutOfBounds, detail.into()));
            }
        }
    }

    /// Reports the lanes that access memory of the heap that has been freed; the others.
    pub(crate) fn check_heap(&mut self, request: &Request<'_>) -> u32 {
        let mut sound = request.active;
        for lane in indices(request.active) {
            let address = request.addresses[lane];
            let below = self.allocated.range(..=address).next_back();
            if let Some((&base, &Allocated { bytes, freed: Some((place, line)) })) = below
                && address - base < bytes
            {
                sound &= !(1 << lane);
                let detail = format!("{} bytes into {bytes} that have been freed", address - base);
                let trouble = Trouble { kind: Kind::Freed, detail };
                let fault = request.fault(Space::Global, lane as u32, trouble);
                let other = Party { place, line, act: None };
                self.report(Fault { other: Some(other), ..fault });
            }
        }
        sound
    }

    /// The same for arguments, which are given back when the host launches again.
    fn take_for_arguments(&mut self, bytes: u64) -> u64 {
        let Some(heap) = &mut self.heap else { return 0 };
        let size = bytes.max(1).checked_next_multiple_of(16);
        match size.filter(|&s| s <= heap.top - heap.next) {
            Some(size) => {
                heap.top -= size;
                heap.top
            }
            None => 0,
        }
    }

    /// `cudaGetParameterBufferV2`: memory for the arguments of a launch.
    fn parameter_buffer(&mut self, warp: &Warp, base: Base, call: &Call, lane: usize) -> u64 {
        let word =
            |argument: usize, at: u64| part(warp, base, call, argument, 4 * at, 4)[lane] as u32;
        let kernel = part(warp, base, call, 0, 0, 8)[lane];
        let shape = Shape {
            grid: [word(1, 0), word(1, 1), word(1, 2)],
            block: [word(2, 0), word(2, 1), word(2, 2)],
            cluster: None,
            shared: word(3, 0),
            cooperative: false,
        };
        let id = (kernel.wrapping_sub(FUNCTION) / 16) as usize;
        let Some(function) =
            self.module.functions.get(id).filter(|f| f.kind == FunctionKind::Kernel)
        else {
            return 0;
        };
        let bytes = function.argument_bytes();
        let buffer = self.take_for_arguments(bytes);
        if buffer != 0 {
            self.pending.insert(buffer, PendingLaunch { kernel: id as u32, shape, bytes });
        }
        buffer
    }

    /// `cudaLaunchDeviceV2`: the launch begins when this grid has ended, whatever its stream.
    fn launch_from_device(&mut self, buffer: u64) -> u64 {
        if self.launches.len() >= MOST_LAUNCHES {
            return ERROR_PENDING;
        }
        let Some(pending) = self.pending.remove(&buffer) else { return ERROR_VALUE };
        let Some(view) = self.global.view(buffer) else { return ERROR_VALUE };
        let mut arguments = vec![0; pending.bytes as usize];
        view.bytes.read((buffer - view.base) as usize, &mut arguments);
        self.launches.push(DeviceLaunch {
            kernel: pending.kernel,
            shape: pending.shape,
            arguments,
        });
        0
    }
}

/// Up to eight bytes of an argument.
fn part(warp: &Warp, base: Base, call: &Call, argument: usize, at: u64, bytes: u64) -> Register {
    match call.arguments.get(argument) {
        Some(Argument::Value { slot }) => warp.registers[base.slot(*slot)],
        Some(Argument::Memory { offset, bytes: size }) => {
            read_param(warp, base.params + offset + at, bytes.min(size.saturating_sub(at)))
        }
        None => [0; LANES],
    }
}
