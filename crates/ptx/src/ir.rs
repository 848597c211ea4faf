//! What a loaded module is: every name resolved, every instruction decoded.
//!
//! Names are gone from the instructions: registers are slots of their function, variables and functions are indices into the
//! module, branch targets are indices of instructions. Names stay beside them for messages.

mod op;
mod special;
mod types;

pub use op::*;
pub use special::{Axis, Special};
pub use types::{Class, Type};

use core::fmt;
use rustc_hash::FxHashMap;

/// Where an instruction stands: in the PTX and, through `.loc`, in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Line {
    /// The line of the PTX text, from 1.
    pub ptx: u32,
    /// The file, an index of [`Module::files`], and its line, from 1. Of what a compiler inlined from a library, the line that calls it.
    pub source: Option<(u32, u32)>,
}

/// A register of a function: an index of [`Function::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u32);

impl Reg {
    /// The slot as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of a module: an index of [`Module::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

impl FunctionId {
    /// The place in [`Module::functions`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A variable of a module: an index of [`Module::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableId(pub u32);

impl VariableId {
    /// The place in [`Module::variables`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A state space: where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// No space named: the address's window tells.
    Generic,
    /// Memory of the device, seen by all.
    Global,
    /// Memory of the device that kernels only read.
    Const,
    /// Memory of a thread.
    Local,
    /// Parameters: of the kernel, or of the frame of a device function.
    Param,
    /// Memory of the executing block.
    Shared,
    /// Memory of any block of the cluster; holds the window of [`Space::Shared`].
    SharedCluster,
}

impl Space {
    /// The name in PTX, without the dot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Const => "const",
            Space::Local => "local",
            Space::Param => "param",
            Space::Shared => "shared",
            Space::SharedCluster => "shared::cluster",
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A loaded module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// `.version`, as major and minor.
    pub version: (u32, u32),
    /// `.target`: `sm_75`, and what else it names.
    pub target: Vec<String>,
    /// Bits of an address: always 64.
    pub address_size: u32,
    /// Source files, in the order of [`Line::source`]; `.file` may leave gaps, which are empty names.
    pub files: Vec<String>,
    /// Kernels, device functions and functions of the device's runtime.
    pub functions: Vec<Function>,
    /// Variables of the module and of its functions.
    pub variables: Vec<Variable>,
    /// Inlined functions that [`Instruction::inlined`] names.
    pub inlined: Vec<Inlined>,
    /// Of PTX lines that stand in libraries, where: [`Instruction::line`] is the line of the user's that calls them. See [`Module::in_libraries`].
    pub(crate) in_libraries: FxHashMap<u32, ((u32, u32), u32)>,
    /// The opcodes used, with their suffixes: `ld.global.v2.f32`. [`Instruction::spelling`] names them.
    pub spellings: Vec<String>,
    /// Instructions that the interpreter does not have, in the order of the text: [`Op::Unsupported`] names them. A kernel stops where it
    /// reaches one.
    pub unsupported: Vec<Unsupported>,
}

/// An instruction, or a form of one, that is not interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The PTX line, from 1.
    pub line: u32,
    /// The line of the source, where `.loc` gives one: file and line.
    pub source: Option<(u32, u32)>,
    /// The instruction with its suffixes, cut short if it is absurdly long.
    pub instruction: String,
    /// What about it is not supported; `None`: all of it.
    pub what: Option<String>,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not supported", self.instruction)?;
        match &self.what {
            Some(what) => write!(f, ": {what}"),
            None => Ok(()),
        }
    }
}

impl Module {
    /// The kernel or device function with this name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        self.functions.iter().position(|f| f.name == name).map(|i| FunctionId(i as u32))
    }

    /// The kernel with this name: as the module has it, or as the source does, of which the parameters and the arguments of a template may be
    /// left out where that is not ambiguous.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<FunctionId> {
        let names = self.kernels().map(|kernel| kernel.name.as_str());
        crate::name::find(names, name).and_then(|name| self.function(name))
    }

    /// The kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> + Clone {
        self.functions.iter().filter(|f| f.kind == FunctionKind::Kernel)
    }

    /// The functions that the compiler inlined around the line of an instruction, the innermost first; none where it stands in its
    /// function itself, or nothing is known.
    #[must_use]
    pub fn inlined_around(&self, line: Line) -> Vec<&Inlined> {
        let mut all = self.functions.iter().flat_map(|f| &f.code);
        self.chain(all.find(|i| i.line.ptx == line.ptx).and_then(|i| i.inlined))
    }

    /// The functions of libraries that the line of an instruction calls and the compiler inlined there, the one that it calls first, each with the
    /// place in it: what the instruction itself is in is the last.
    #[must_use]
    pub fn in_libraries(&self, line: Line) -> Vec<(Option<&str>, (u32, u32))> {
        let Some(&(place, inlined)) = self.in_libraries.get(&line.ptx) else { return Vec::new() };
        let mut at = place;
        let mut found = Vec::new();
        for inlined in self.chain(Some(inlined)) {
            found.push((inlined.function.as_deref(), at));
            at = inlined.at;
            if Some(at) == line.source {
                break;
            }
        }
        found.reverse();
        found
    }

    /// An inlined function and those around it.
    pub(crate) fn chain(&self, mut next: Option<u32>) -> Vec<&Inlined> {
        let mut chain = Vec::new();
        while let Some(inlined) = next.and_then(|at| self.inlined.get(at as usize)) {
            chain.push(inlined);
            // Each one names one that was made before it, so this ends.
            next = inlined.within.filter(|&within| Some(within) < next);
        }
        chain
    }

    /// The name of a source file.
    #[must_use]
    pub fn file(&self, index: u32) -> Option<&str> {
        self.files.get(index as usize).map(String::as_str).filter(|name| !name.is_empty())
    }
}

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`: launched from the host.
    Kernel,
    /// `.func`: called from kernels.
    Device,
    /// A function of the device's runtime, which the interpreter supplies.
    Builtin(Builtin),
}

/// The functions of the device's runtime that modules call without defining them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `vprintf(format, arguments) -> i32`: prints.
    Vprintf,
    /// `__assertfail(message, file, line, function, size)`: a failed `assert`.
    AssertFail,
    /// `malloc(size) -> pointer`: from the device's heap.
    Malloc,
    /// `free(pointer)`: back to the device's heap.
    Free,
    /// `cudaGetParameterBufferV2(kernel, grid, block, shared) -> buffer`: begins a launch from the device.
    GetParameterBuffer,
    /// `cudaLaunchDeviceV2(buffer, stream) -> error`: launches from the device.
    LaunchDevice,
    /// `cudaGetLastError() -> error`.
    GetLastError,
    /// `cudaPeekAtLastError() -> error`.
    PeekAtLastError,
}

impl Builtin {
    /// The function with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Builtin> {
        Some(match name {
            "vprintf" => Builtin::Vprintf,
            "__assertfail" => Builtin::AssertFail,
            "malloc" => Builtin::Malloc,
            "free" => Builtin::Free,
            "cudaGetParameterBufferV2" | "__cudaCDP2GetParameterBufferV2" => {
                Builtin::GetParameterBuffer
            }
            "cudaLaunchDeviceV2" | "__cudaCDP2LaunchDeviceV2" => Builtin::LaunchDevice,
            "cudaGetLastError" | "__cudaCDP2GetLastError" => Builtin::GetLastError,
            "cudaPeekAtLastError" | "__cudaCDP2PeekAtLastError" => Builtin::PeekAtLastError,
            _ => return None,
        })
    }
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name in the module, mangled as the compiler left it.
    pub name: String,
    /// What it is for.
    pub kind: FunctionKind,
    /// Where its head stands.
    pub line: Line,
    /// What it takes, in order.
    pub parameters: Vec<Parameter>,
    /// What it gives back, in order; kernels give nothing.
    pub results: Vec<Parameter>,
    /// Bytes of the frame's parameter memory. Variables in [`Space::Param`] have their offsets in it. A kernel's
    /// own parameters come first, laid out as the driver expects them.
    pub param_bytes: u64,
    /// Bytes of the frame's local memory. Variables in [`Space::Local`] have their offsets in it.
    pub local_bytes: u64,
    /// Registers, by slot. `_` in the text has a slot without a name.
    pub registers: Vec<Register>,
    /// The variables that the function declares or mentions, each once, in the order of [`Module::variables`].
    pub variables: Vec<VariableId>,
    /// The functions whose address the code takes, each once.
    pub addressed: Vec<FunctionId>,
    /// The instructions. Control that runs past the last one returns.
    pub code: Vec<Instruction>,
    /// What the text demands of a launch.
    pub bounds: LaunchBounds,
}

impl Function {
    /// Bytes of the parameters that a launch passes: where the last one of them ends.
    #[must_use]
    pub fn argument_bytes(&self) -> u64 {
        self.parameters.iter().map(|p| p.offset + p.bytes()).max().unwrap_or(0)
    }
}

/// Demands on a launch by a kernel's directives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// `.reqntid`: the block must have this shape.
    pub required_block: Option<[u32; 3]>,
    /// `.maxntid`: a block may have at most as many threads as this shape.
    pub largest_block: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub blocks_per_multiprocessor: Option<u32>,
    /// `.maxnreg`.
    pub registers: Option<u32>,
    /// `.reqnctapercluster`: the cluster must have this shape.
    pub required_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`: a cluster may have at most as many blocks.
    pub largest_cluster: Option<u32>,
    /// `.explicitcluster`: the launch must name a cluster, or the kernel does.
    pub explicit_cluster: bool,
}

/// Something that a function takes or gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name in the text.
    pub name: String,
    /// The type of an element.
    pub ty: Type,
    /// Elements of an array; `None` for a scalar.
    pub length: Option<u64>,
    /// Alignment in bytes.
    pub align: u64,
    /// The first byte in the frame's parameter memory; 0 for a register.
    pub offset: u64,
    /// What holds it inside the function.
    pub place: ParameterPlace,
    /// `.ptr`: it is a pointer to this space, aligned so.
    pub pointer: Option<(Space, u64)>,
}

impl Parameter {
    /// The size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.ty.bytes()).saturating_mul(self.length.unwrap_or(1))
    }
}

/// What holds a parameter inside its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    /// A variable in [`Space::Param`].
    Memory(VariableId),
    /// A register.
    Register(Reg),
}

/// A register that a function declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The name in the text, `%r7`; empty for `_`.
    pub name: String,
    /// The declared type.
    pub ty: Type,
}

/// A variable, of the module or of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name in the text.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// The type of an element.
    pub ty: Type,
    /// The size in bytes; 0 for the extern array at the end of shared memory. Nothing is allocated by loading.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// The first byte in the frame for [`Space::Local`] and [`Space::Param`]; 0 elsewhere.
    pub offset: u64,
    /// The function that declares it; `None` for the module.
    pub owner: Option<FunctionId>,
    /// `.extern .shared x[]`: begins where the block's static shared memory ends.
    pub dynamic: bool,
    /// The values it begins with.
    pub init: Initialiser,
    /// Where it is declared.
    pub line: Line,
}

/// The values that a variable begins with. Module variables without one begin with zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialiser {
    /// The first bytes; the rest of the variable is zero.
    pub bytes: Vec<u8>,
    /// Addresses to write over the bytes once variables have theirs.
    pub addresses: Vec<InitialAddress>,
    /// Whether the text gave values at all.
    pub given: bool,
}

/// An address in an initialiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialAddress {
    /// The first byte to write.
    pub offset: u64,
    /// Bytes to write, from the low end of the address after the shift.
    pub bytes: u32,
    /// Bits to shift the address right by: `0xFF00(x)` takes its second byte.
    pub shift: u32,
    /// Whose address.
    pub of: Addressed,
    /// Added to the address.
    pub addend: i64,
    /// `generic(x)`: a generic address, else one in the variable's own space.
    pub generic: bool,
}

/// Something with an address that is known when a module is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// A variable.
    Variable(VariableId),
    /// A function.
    Function(FunctionId),
}

/// A function that the compiler inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlined {
    /// Its name, as the source or the linker knows it, where the text gives one.
    pub function: Option<String>,
    /// Where it was called: file and line.
    pub at: (u32, u32),
    /// The function that was inlined around the call, an index of [`Module::inlined`].
    pub within: Option<u32>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Lanes where this does not hold skip the instruction.
    pub guard: Option<Predicate>,
    /// What it does.
    pub op: Op,
    /// Where it stands.
    pub line: Line,
    /// The inlined function it came from, an index of [`Module::inlined`].
    pub inlined: Option<u32>,
    /// What the text calls it, with its suffixes; an index of [`Module::spellings`].
    pub spelling: u32,
}
