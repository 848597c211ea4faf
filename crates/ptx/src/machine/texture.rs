//! Textures and surfaces: point samples, loads and stores of memory that an [`Image`] describes.

use super::access::{Access, Stored};
use super::block::{Block, BlockMemory};
use super::execute::line_at;
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::program::{Code, Slot, Step, SurfaceAccess, Texture};
use super::undefined::Shadow;
use super::warp::{Base, Group, Warp as Lanes32};
use crate::descriptor::{Addressing, IMAGE_BYTES, Image};
use crate::finding::{Access as Meant, Act, Fault, Kind, Space as Memory};
use crate::ir::{Class, FloatMode, Order, Outside, Scope, Space, Type};
use crate::memory::Bytes;
use crate::place::{LANES, Place, Warp};
use crate::value::{convert, int};

/// The largest texel, and the most that one access of a surface moves.
const MOST: usize = 16;

/// What the lanes of an access read or write.
type Raw = [[u8; MOST]; LANES];

/// Where an access takes place.
#[derive(Clone, Copy)]
struct Site {
    line: crate::ir::Line,
    step: u32,
    w: usize,
    base: Base,
}

impl Site {
    fn access(self, size: u32, act: Act) -> Access<'static> {
        Access {
            space: Space::Global,
            size,
            act,
            order: Order::Weak,
            scope: Scope::Cta,
            engine: None,
            line: self.line,
            step: self.step,
            w: self.w as u32,
            extent: None,
            flag: false,
            load: 0,
            values: None,
        }
    }
}

/// The values of some slots, each of all lanes.
fn registers<const N: usize>(warp: &Lanes32, base: Base, slots: [Slot; N]) -> [Register; N] {
    slots.map(|slot| warp.registers[base.slot(slot)])
}

impl Machine<'_> {
    /// Steps that have to do with textures and surfaces.
    pub(crate) fn image(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        step: &Step,
    ) {
        let (line, base) = (line_at(code, group.pc), group.base);
        let site = Site { line, step: code.first + group.pc, w, base };
        match step {
            Step::Texture(texture) => self.texture(block, site, active, texture),
            Step::SurfaceLoad(access) => self.load_surface(block, site, active, access),
            Step::SurfaceStore(access) => self.store_surface(block, site, active, access),
            Step::ImageExtent { dst, image, direction } => {
                let Block { memory, warps, .. } = block;
                let [handles] = registers(&warps[w], base, [*image]);
                let images = self.images(memory, site, active, &handles);
                for (image, lanes) in &images {
                    let dst = &mut warps[w].registers[base.slot(*dst)];
                    indices(*lanes).for_each(|lane| dst[lane] = image.extent[*direction].into());
                }
            }
            _ => {}
        }
    }

    /// The images that the lanes mean, each with its lanes. Handles of no image are reported.
    fn images(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        active: u32,
        handles: &Register,
    ) -> Vec<(Image, u32)> {
        let mut found = Vec::new();
        let mut left = active;
        while left != 0 {
            let handle = handles[left.trailing_zeros() as usize];
            let same = indices(left).filter(|&l| handles[l] == handle).fold(0, |m, l| m | 1 << l);
            left &= !same;
            let mut bytes = [0; IMAGE_BYTES];
            let image = match self.global.read(handle, &mut bytes) {
                Ok(()) => Image::decode(&bytes).map_err(|error| format!("which is {error}")),
                Err(_) => Err("where no texture or surface is".into()),
            };
            match image {
                Ok(image) => found.push((image, same)),
                Err(detail) => {
                    let size = IMAGE_BYTES as u32;
                    let meant =
                        Meant { space: Memory::Global, act: Act::Read, address: handle, size };
                    self.outside(memory, site, same.trailing_zeros(), meant, detail);
                }
            }
        }
        found
    }

    fn outside(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: u32,
        meant: Meant,
        detail: String,
    ) {
        let warp = Warp { block: memory.index, warp: site.w as u32 };
        self.report(Fault {
            kind: Kind::OutOfBounds,
            line: site.line,
            place: Place::of_lane(warp, lane),
            access: Some(meant),
            other: None,
            missing: None,
            detail: detail.into(),
        });
    }

    /// Reads what lies at the lanes' addresses. What cannot be read is all ones.
    fn read_image(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lanes: u32,
        addresses: &Register,
        size: u32,
        raw: &mut Raw,
    ) {
        let access = site.access(size, Act::Read);
        self.visit(memory, lanes, addresses, access, |from: &Bytes, start, lanes| {
            for lane in indices(lanes) {
                let at = addresses[lane].wrapping_sub(start) as usize;
                from.read(at, &mut raw[lane][..size as usize]);
            }
        });
    }

    /// Writes destinations, and what of them is undefined: all of a lane that has read what nobody wrote.
    fn write_back(
        &mut self,
        warp: &mut Lanes32,
        base: Base,
        active: u32,
        dsts: &[Slot],
        values: &[Register],
    ) {
        let mut shadow = Shadow::CLEAR;
        for (lane, origin) in self.undefined_rows().into_iter().enumerate() {
            if let Some(origin) = origin {
                shadow.bits[lane] = u64::MAX;
                shadow.origins[lane] = origin;
            }
        }
        for (&dst, values) in dsts.iter().zip(values) {
            warp.set_shadow(base, dst, active, &shadow);
            let dst = &mut warp.registers[base.slot(dst)];
            indices(active).for_each(|lane| dst[lane] = values[lane]);
        }
    }

    fn texture(&mut self, block: &mut Block, site: Site, active: u32, texture: &Texture) {
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[site.w];
        let [handles] = registers(warp, site.base, [texture.image]);
        let at = registers(warp, site.base, texture.at);
        let mut values = vec![[u32::MAX.into(); LANES]; texture.dsts.len()];
        for (image, lanes) in self.images(memory, site, active, &handles) {
            let mut addresses = [image.address; LANES];
            let mut inside = 0;
            for lane in indices(lanes) {
                if let Some(place) = sampled(&image, texture, at.map(|of| of[lane])) {
                    addresses[lane] = address_of(&image, place);
                    inside |= 1 << lane;
                }
            }
            let size = image.texel.bytes();
            let mut raw = [[0; MOST]; LANES];
            indices(inside).for_each(|lane| raw[lane] = [u8::MAX; MOST]);
            self.read_image(memory, site, inside, &addresses, size, &mut raw);
            for lane in indices(lanes) {
                for (part, values) in values.iter_mut().enumerate() {
                    values[lane] = part_of(&image, &raw[lane], part, texture.ty);
                }
            }
        }
        self.write_back(warp, site.base, active, &texture.dsts, &values);
    }

    /// Where the lanes' accesses of a surface are, and what an access outside means.
    fn surface(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        image: &Image,
        lanes: u32,
        access: &SurfaceAccess,
        (at, act): ([Register; 3], Act),
    ) -> (Register, u32) {
        let size = access.size();
        let mut addresses = [image.address; LANES];
        let mut inside = 0;
        for lane in indices(lanes) {
            let wanted = at.map(|of| i64::from(of[lane] as u32 as i32));
            // Along x bytes are counted.
            let row = i64::from(image.texel.bytes()) * i64::from(image.extent[0]);
            let last = [
                row - i64::from(size),
                i64::from(image.extent[1]) - 1,
                i64::from(image.extent[2]) - 1,
            ];
            let clamped: [i64; 3] =
                core::array::from_fn(|d| if last[d] < 0 { 0 } else { wanted[d].clamp(0, last[d]) });
            let [x, y, z] = clamped.map(|n| n as u64);
            addresses[lane] = image.address + x + y * image.pitch[0] + z * image.pitch[1];
            if wanted == clamped && last[0] >= 0 || access.outside == Outside::Clamp {
                inside |= 1 << lane;
            } else if access.outside == Outside::Trap {
                let [width, height, depth] = image.extent;
                let [x, y, z] = wanted;
                let detail = format!(
                    "at byte {x}, row {y}, plane {z} of a surface of {width} x {height} x {depth} texels"
                );
                let address = addresses[lane];
                let meant = Meant { space: Memory::Global, act, address, size };
                self.outside(memory, site, lane as u32, meant, detail);
            }
        }
        (addresses, inside)
    }

    fn load_surface(&mut self, block: &mut Block, site: Site, active: u32, access: &SurfaceAccess) {
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[site.w];
        let [handles] = registers(warp, site.base, [access.image]);
        let at = registers(warp, site.base, access.at);
        let mut raw = [[u8::MAX; MOST]; LANES];
        for (image, lanes) in self.images(memory, site, active, &handles) {
            let (addresses, inside) =
                self.surface(memory, site, &image, lanes, access, (at, Act::Read));
            if access.outside == Outside::Zero {
                indices(lanes & !inside).for_each(|lane| raw[lane] = [0; MOST]);
            }
            self.read_image(memory, site, inside, &addresses, access.size(), &mut raw);
        }
        let values = (0..access.slots.len()).map(|i| raw.map(|raw| access.element(&raw, i)));
        let values: Vec<Register> = values.collect();
        self.write_back(warp, site.base, active, &access.slots, &values);
    }

    fn store_surface(
        &mut self,
        block: &mut Block,
        site: Site,
        active: u32,
        access: &SurfaceAccess,
    ) {
        let Block { memory, warps, .. } = block;
        let warp = &warps[site.w];
        let [handles] = registers(warp, site.base, [access.image]);
        let at = registers(warp, site.base, access.at);
        let size = access.size();
        let bytes = access.bytes as usize;
        let stored = |lane: usize| -> Stored {
            let mut all = [0; 32];
            for (to, &slot) in all.chunks_mut(bytes).zip(&access.slots) {
                let value = warp.registers[site.base.slot(slot)][lane].to_le_bytes();
                to.copy_from_slice(&value[..bytes]);
            }
            all
        };
        for (image, lanes) in self.images(memory, site, active, &handles) {
            let (addresses, inside) =
                self.surface(memory, site, &image, lanes, access, (at, Act::Write));
            let how = Access { values: Some(&stored), ..site.access(size, Act::Write) };
            let mut done = 0;
            self.visit(memory, inside, &addresses, how, |to: &Bytes, start, lanes| {
                done |= lanes;
                for lane in indices(lanes) {
                    let at = addresses[lane].wrapping_sub(start) as usize;
                    for (i, &slot) in access.slots.iter().enumerate() {
                        let value = warp.registers[site.base.slot(slot)][lane];
                        to.store(at + i * bytes, access.bytes, value);
                    }
                }
            });
            let doubt = warp.in_either(site.base, &access.slots, done);
            for lane in indices(doubt.lanes) {
                let thread = (site.w * LANES + lane) as u32;
                let at = (&*memory, Space::Global, thread, addresses[lane]);
                self.leave_undefined(at, size, u32::MAX >> (32 - size), doubt.origin, site.line);
            }
        }
    }
}

impl SurfaceAccess {
    /// Bytes of each lane.
    fn size(&self) -> u32 {
        self.bytes * self.slots.len() as u32
    }

    /// An element of what a lane has read.
    fn element(&self, raw: &[u8; MOST], at: usize) -> u64 {
        let bytes = self.bytes as usize;
        let mut element = [0; 8];
        element[..bytes].copy_from_slice(&raw[at * bytes..][..bytes]);
        u64::from_le_bytes(element)
    }
}

/// Where a texel lies.
fn address_of(image: &Image, [x, y, z]: [u64; 3]) -> u64 {
    let texel = u64::from(image.texel.bytes());
    image.address + x * texel + y * image.pitch[0] + z * image.pitch[1]
}

/// The texel that coordinates mean; `None` where there is none, which is zeros.
fn sampled(image: &Image, texture: &Texture, at: [u64; 3]) -> Option<[u64; 3]> {
    let mut place = [0; 3];
    for direction in 0..3 {
        let n = i64::from(image.extent[direction]);
        let is_layer = texture.layered && direction == 2;
        let wanted = if is_layer || texture.by_texels {
            i64::from(at[direction] as u32 as i32)
        } else {
            let x = f32::from_bits(at[direction] as u32);
            let x = if image.normalized { x * n as f32 } else { x };
            // NaN is 0.
            x.floor() as i64
        };
        // Layers are never repeated, and texels that are counted along one direction end where the memory ends.
        let how = match image.addressing[direction] {
            _ if is_layer => Addressing::Clamp,
            _ if texture.by_texels && texture.directions == 1 => Addressing::Border,
            how => how,
        };
        let found = match how {
            Addressing::Clamp => wanted.clamp(0, n - 1),
            Addressing::Wrap => wanted.rem_euclid(n),
            Addressing::Mirror => match wanted.rem_euclid(2 * n) {
                there if there < n => there,
                back => 2 * n - 1 - back,
            },
            Addressing::Border if (0..n).contains(&wanted) => wanted,
            Addressing::Border => return None,
        };
        place[direction] = found as u64;
    }
    Some(place)
}

/// A part of a texel as a register has it. What a texel does not have is 0, and the fourth part 1.
fn part_of(image: &Image, raw: &[u8; MOST], part: usize, ty: Type) -> u64 {
    let texel = image.texel;
    let is_float = texel.part.is_float() || image.unit;
    if part >= texel.parts as usize {
        let one = if is_float { 1f32.to_bits().into() } else { 1 };
        return if part == 3 { one } else { 0 };
    }
    let bytes = texel.part.bytes() as usize;
    let mut own = [0; 8];
    own[..bytes].copy_from_slice(&raw[part * bytes..][..bytes]);
    let bits = u64::from_le_bytes(own);
    let signed = texel.part.class() == Class::Signed;
    let number = if signed { int::sign_extend(bits, texel.part.bits()) } else { bits as i64 };
    if image.unit {
        let most = texel.part.mask() >> u32::from(signed);
        return (number as f32 / most as f32).max(-1.0).to_bits().into();
    }
    match texel.part {
        Type::F16 if ty == Type::F32 => {
            convert::convert(Type::F32, Type::F16, 32, FloatMode::default(), false, bits)
        }
        _ => number as u32 as u64,
    }
}
