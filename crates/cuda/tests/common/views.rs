//! Arrays of any layout, in host memory and on a device, and what their
//! reductions must be, element by element.

use super::Random;
use super::arrays::state_of;
use super::data::make;
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind};
use warpfold_core::{DType, Element, with_element};
use warpfold_cuda::engine::DeviceView;
use warpfold_cuda::{Buffer, Device, Stream};

/// A shape of up to `axes` axes, of these lengths, and `most` elements.
pub(crate) fn shape(random: &mut Random, lens: &[usize], axes: usize, most: usize) -> Vec<usize> {
    let ndim = 1 + random.place(axes);
    let mut shape: Vec<usize> = (0..ndim)
        .map(|_| {
            // Zeros, which come first, are rare: they leave nothing to do.
            let from = usize::from(random.below(12) != 0);
            lens[from + random.place(lens.len() - from)]
        })
        .collect();
    while shape.iter().product::<usize>() > most {
        let longest = (0..ndim).max_by_key(|&i| shape[i]).unwrap();
        shape[longest] = shape[longest].div_ceil(2);
    }
    shape
}

/// A shape and where its elements are in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    /// Where the element of index 0 is.
    pub(crate) offset: usize,
    /// The buffer's bytes: it ends where the last element does.
    pub(crate) bytes: usize,
}

impl Layout {
    /// C order from the buffer's beginning.
    pub(crate) fn contiguous(shape: &[usize], size: usize) -> Layout {
        Layout::of(shape, size, 0, &mut |_| Axis::default())
    }

    /// Axes from the last to the first, each as `axis` says.
    fn of(
        shape: &[usize],
        size: usize,
        before: usize,
        axis: &mut dyn FnMut(usize) -> Axis,
    ) -> Layout {
        let mut strides = vec![0isize; shape.len()];
        let (mut offset, mut last, mut next) = (before, before, size);
        let axes: Vec<Axis> = (0..shape.len()).map(axis).collect();
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        order.sort_by_key(|&i| axes[i].place);
        for i in order {
            let reach = shape[i].saturating_sub(1) * next;
            if axes[i].broadcast {
                continue;
            }
            strides[i] = if axes[i].backward { -(next as isize) } else { next as isize };
            offset += if axes[i].backward { reach } else { 0 };
            last += reach;
            next = next * shape[i].max(1) + axes[i].gap;
        }
        let bytes = if shape.contains(&0) { before } else { last + size };
        Layout { shape: shape.to_vec(), strides, offset: offset.min(bytes), bytes }
    }

    /// Rows of a table, `gap` elements apart, from the `before`-th element of
    /// the buffer on.
    pub(crate) fn table(shape: [usize; 2], size: usize, before: usize, gap: usize) -> Layout {
        let mut gaps = [0, gap * size].into_iter();
        let mut axis = |_| Axis { gap: gaps.next_back().unwrap_or(0), ..Axis::default() };
        Layout::of(&shape, size, before * size, &mut axis)
    }

    /// C order, with a gap of so many elements behind each row of the last axis,
    /// from the `before`-th element of the buffer on.
    pub(crate) fn columns(shape: &[usize], size: usize, before: usize, gap: usize) -> Layout {
        let gap = |i| if i + 1 == shape.len() { gap * size } else { 0 };
        Layout::of(shape, size, before * size, &mut |i| Axis { gap: gap(i), ..Axis::default() })
    }

    /// Permuted, with gaps, backward axes and broadcast ones; rarely with
    /// elements that are not aligned.
    pub(crate) fn random(shape: &[usize], size: usize, random: &mut Random) -> Layout {
        let plain = random.below(3) == 0;
        let unaligned = random.below(10) == 0;
        let before = random.below(6) as usize * size + usize::from(unaligned);
        let mut axis = |_| {
            if plain {
                return Axis::default();
            }
            let gap = if random.below(3) == 0 { random.below(5) as usize * size } else { 0 };
            Axis {
                place: random.below(3) as usize,
                gap: gap + usize::from(unaligned && random.below(2) == 0),
                backward: random.below(4) == 0,
                broadcast: random.below(8) == 0,
            }
        };
        Layout::of(shape, size, before, &mut axis)
    }

    /// For each output in C order, where its elements are, in C order.
    pub(crate) fn elements(&self, reduced: &[bool]) -> Vec<Vec<usize>> {
        let places = |marked: bool| {
            let mut places = vec![0isize];
            for (i, &n) in self.shape.iter().enumerate().filter(|&(i, _)| reduced[i] == marked) {
                let steps = |p: isize| (0..n as isize).map(move |k| p + k * self.strides[i]);
                places = places.into_iter().flat_map(steps).collect();
            }
            places
        };
        let (outputs, elements) = (places(false), places(true));
        let place = |o: isize, e: isize| (self.offset as isize + o + e) as usize;
        outputs.iter().map(|&o| elements.iter().map(|&e| place(o, e)).collect()).collect()
    }

    /// The same with the elements as they lie in memory: the order of fixed
    /// trees. Axes that lie backwards are gone through forwards, and those of
    /// larger steps are outside.
    pub(crate) fn elements_in_memory(&self, reduced: &[bool]) -> Vec<Vec<usize>> {
        let mut axes: Vec<usize> = (0..self.shape.len()).filter(|&i| reduced[i]).collect();
        axes.sort_by_key(|&i| core::cmp::Reverse(self.strides[i].unsigned_abs()));
        let kept: Vec<usize> = (0..self.shape.len()).filter(|&i| !reduced[i]).collect();
        let mut other = self.clone();
        let order: Vec<usize> = kept.iter().chain(&axes).copied().collect();
        other.shape = order.iter().map(|&i| self.shape[i]).collect();
        other.strides = order.iter().map(|&i| self.strides[i]).collect();
        for i in kept.len()..order.len() {
            if other.strides[i] < 0 && !other.shape.contains(&0) {
                let reach = (other.shape[i] - 1) as isize * other.strides[i];
                other.offset = (other.offset as isize + reach) as usize;
                other.strides[i] = -other.strides[i];
            }
        }
        let marks: Vec<bool> = (0..order.len()).map(|i| i >= kept.len()).collect();
        other.elements(&marks)
    }
}

/// How an axis lies.
#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    /// Axes of smaller places have smaller steps.
    place: usize,
    /// Bytes between its end and the next larger step.
    gap: usize,
    backward: bool,
    broadcast: bool,
}

/// An array's bytes.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    /// A multiple of 8 bytes, so that elements of any type can be read.
    words: Vec<u64>,
}

impl Sample {
    /// An array of these elements, which fill its layout.
    pub(crate) fn of<T: Element>(layout: Layout, items: &[T]) -> Sample {
        assert_eq!(layout.bytes, size_of_val(items));
        let word = |w: &[u8]| {
            let mut word = [0; 8];
            word[..w.len()].copy_from_slice(w);
            u64::from_ne_bytes(word)
        };
        let bytes: &[u8] = bytemuck::cast_slice(items);
        Sample { dtype: T::DTYPE, layout, words: bytes.chunks(8).map(word).collect() }
    }

    pub(crate) fn new(dtype: DType, layout: Layout, pattern: &str, random: &mut Random) -> Sample {
        let mut layout = layout;
        let bytes = layout.bytes;
        with_element!(dtype, T => {
            // Whole elements, of which the last may be cut off.
            layout.bytes = bytes.next_multiple_of(size_of::<T>());
            let items: Vec<T> = make(pattern, layout.bytes / size_of::<T>(), random);
            let mut sample = Sample::of(layout, &items);
            sample.layout.bytes = bytes;
            sample
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.layout.bytes]
    }

    pub(crate) fn view(&self) -> View<'_> {
        let Layout { shape, strides, offset, .. } = &self.layout;
        View::strided(self.dtype, self.bytes(), *offset, shape, strides).expect("a view")
    }

    /// The elements at some places, as a type that has their size.
    fn pick<T: Element>(&self, places: &[usize]) -> Vec<T> {
        let element = |&at: &usize| {
            let mut word = [0; 8];
            word[..size_of::<T>()].copy_from_slice(&self.bytes()[at..at + size_of::<T>()]);
            T::from_bits(u64::from_le_bytes(word))
        };
        places.iter().map(element).collect()
    }
}

/// A sample in a device's memory, which has nothing else in it that was
/// written.
pub(crate) struct Placed<'a> {
    /// Kept as long as the view.
    buffer: Buffer<'a>,
    pub(crate) view: DeviceView,
}

impl<'a> Placed<'a> {
    pub(crate) fn new(device: &'a dyn Device, sample: &Sample) -> Placed<'a> {
        let placed = Placed::unwritten(device, sample);
        let mut at = 0;
        for run in of_elements(sample).chunk_by(|a, b| a == b) {
            if run[0] {
                let part = &sample.bytes()[at..at + run.len()];
                placed.buffer.copy_in(Stream::DEFAULT, at as u64, part).expect("a copy");
            }
            at += run.len();
        }
        placed
    }

    /// Whoever reads a view by the vector meets what lies between its elements: junk,
    /// of which nothing may come into an answer.
    pub(crate) fn in_junk(device: &'a dyn Device, sample: &Sample) -> Placed<'a> {
        let placed = Placed::unwritten(device, sample);
        let junk = |at: usize| (at as u8).wrapping_mul(0x9d) | 0x60;
        let bytes = sample.bytes().iter().zip(of_elements(sample)).enumerate();
        let all: Vec<u8> =
            bytes.map(|(at, (&byte, of_one))| if of_one { byte } else { junk(at) }).collect();
        placed.buffer.copy_in(Stream::DEFAULT, 0, &all).expect("a copy");
        placed
    }

    fn unwritten(device: &'a dyn Device, sample: &Sample) -> Placed<'a> {
        let Layout { shape, strides, offset, bytes } = sample.layout.clone();
        let buffer = Buffer::new(device, bytes as u64).expect("enough memory");
        let (address, dtype) = (buffer.address() + offset as u64, sample.dtype);
        Placed { buffer, view: DeviceView { address, dtype, shape, strides } }
    }
}

/// Which bytes of a sample are of its elements.
fn of_elements(sample: &Sample) -> Vec<bool> {
    let mut all = vec![false; sample.layout.bytes];
    for at in sample.layout.elements(&vec![true; sample.layout.shape.len()]).concat() {
        all[at..at + sample.dtype.size()].fill(true);
    }
    all
}

/// The states of every output, element by element.
pub(crate) fn reference(
    samples: [Option<&Sample>; 2],
    reduced: &[bool],
    kind: Kind,
    start: u64,
) -> Vec<AnyState> {
    let first = samples[0].expect("an array");
    // Of two arrays, the first says in which order the elements come.
    let in_memory = kind != Kind::ArgExtrema;
    let elements = |layout: &Layout| {
        if in_memory { layout.elements_in_memory(reduced) } else { layout.elements(reduced) }
    };
    let places = elements(&first.layout);
    let other_places = samples[1].map(|second| {
        // The second array's elements in the order of the first: by way of
        // indices.
        let by_index = first.layout.elements(reduced);
        let theirs = second.layout.elements(reduced);
        let same_order =
            |((ordered, indexed), theirs): ((&Vec<usize>, &Vec<usize>), &Vec<usize>)| {
                if !in_memory {
                    return theirs.clone();
                }
                let mut taken = vec![false; indexed.len()];
                let find = |&at: &usize| {
                    let i =
                        (0..indexed.len()).find(|&i| !taken[i] && indexed[i] == at).expect("it");
                    taken[i] = true;
                    theirs[i]
                };
                ordered.iter().map(find).collect()
            };
        places.iter().zip(&by_index).zip(&theirs).map(same_order).collect::<Vec<Vec<usize>>>()
    });
    with_element!(first.dtype, T => {
        places.iter().enumerate().map(|(o, places)| {
            let items: Vec<T> = first.pick(places);
            let others: Vec<T> = match (samples[1], &other_places) {
                (Some(second), Some(places)) => second.pick(&places[o]),
                _ => Vec::new(),
            };
            absorbed(kind, &items, &others, start)
        }).collect()
    })
}

/// The state of elements, one by one.
pub(crate) fn absorbed<T: Element>(kind: Kind, items: &[T], others: &[T], start: u64) -> AnyState {
    state_of(kind, T::DTYPE, start, bytemuck::cast_slice(items), bytemuck::cast_slice(others))
}
