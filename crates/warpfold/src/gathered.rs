//! Arrays of any strides, and outputs of some axes: the elements of each output
//! are copied together in the order of their indices.

use crate::engines::{Opened, failure};
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, RawRun};
use warpfold_core::{Error, Result};
use warpfold_cpu::Job;

/// Axes of up to two arrays that are walked together, outermost first: lengths
/// and strides in bytes.
type Axis = (usize, [isize; 2]);

impl Opened {
    /// The states of every output.
    pub(crate) fn gathered(
        &self,
        job: &Job<'_>,
        first: &View<'_>,
        second: Option<&View<'_>>,
    ) -> Result<Vec<Vec<AnyState>>> {
        let mut axes: [Vec<Axis>; 2] = Default::default();
        for (i, &len) in first.shape().iter().enumerate() {
            let strides = [first.strides()[i], second.map_or(0, |v| v.strides()[i])];
            axes[usize::from(job.reduced.get(i).copied().unwrap_or(true))].push((len, strides));
        }
        let [kept, reduced] = axes;
        let outputs: usize = kept.iter().map(|&(n, _)| n).product();
        let mut all: Vec<Vec<AnyState>> = Vec::new();
        all.try_reserve_exact(outputs).map_err(|_| Error::TooManyOutputs { outputs })?;
        let dtype = first.dtype();
        let size = dtype.size();
        let len: usize = reduced.iter().map(|&(n, _)| n).product();
        let step = (self.device.best_run() / size).min(len);
        let arrays = 1 + usize::from(second.is_some());
        let mut feeder = self.feeder(job.kinds, dtype, arrays)?;
        let origins = [Some(first.origin()), second.map(View::origin)];
        let words = (step * size).div_ceil(8);
        let mut buffers = [vec![0u64; words], vec![0u64; second.map_or(0, |_| words)]];
        for output in 0..outputs {
            let to_output = offsets(&kept, output);
            for from in (0..len).step_by(step.max(1)) {
                let bytes = step.min(len - from) * size;
                for (array, origin) in origins.iter().enumerate() {
                    let Some(origin) = origin else { continue };
                    let buffer: &mut [u8] = bytemuck::cast_slice_mut(&mut buffers[array]);
                    for (i, to) in buffer[..bytes].chunks_exact_mut(size).enumerate() {
                        let offset = to_output[array] + offsets(&reduced, from + i)[array];
                        let element = origin.wrapping_offset(offset);
                        // SAFETY: the view vouches for all elements that its shape
                        // and strides describe, and this is one.
                        unsafe { element.copy_to_nonoverlapping(to.as_mut_ptr(), size) };
                    }
                }
                let others: &[u8] = bytemuck::cast_slice(&buffers[1]);
                let run = RawRun {
                    start: job.start + from as u64,
                    items: &bytemuck::cast_slice(&buffers[0])[..bytes],
                    others: others.get(..bytes).unwrap_or(&[]),
                };
                feeder.absorb(run).map_err(failure)?;
            }
            all.push(feeder.take_states().map_err(failure)?);
        }
        Ok(all)
    }
}

/// The byte offsets of the element with this index, in C order.
fn offsets(axes: &[Axis], index: usize) -> [isize; 2] {
    let mut offsets = [0isize; 2];
    let mut rest = index;
    for &(len, strides) in axes.iter().rev() {
        let i = (rest % len).cast_signed();
        rest /= len;
        for (offset, stride) in offsets.iter_mut().zip(strides) {
            *offset += i * stride;
        }
    }
    offsets
}
