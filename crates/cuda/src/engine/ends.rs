//! Both ends of the same elements, or where they are: one launch where both are walked as a view.

use super::answer::{Answer, check_alignment};
use super::number::Number;
use super::plan::ForcedWalk;
use super::route::{Route, Walk};
use super::view::DeviceView;
use super::{Engine, lock};
use crate::Result;
use crate::device::{Address, Stream};

/// Bytes of an array that two launches take longer for than a view. Measured on an H200.
const SMALL: usize = 1 << 20;

impl Engine {
    /// Leaves the answers of two numbers in the device's memory as [`numbers_into`](Self::numbers_into)
    /// does, those of the second, which kernels know by the next word, at `to[1]`; says whether it did.
    ///
    /// # Errors
    /// Those of [`numbers_into`](Self::numbers_into).
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into), for both.
    pub unsafe fn ends_into(
        &self,
        ends: [Number; 2],
        view: &DeviceView,
        reduced: &[bool],
        to: [Address; 2],
        stream: Stream,
    ) -> Result<bool> {
        view.check(&**self.device())?;
        let scratch = self.scratch(stream)?;
        let scratch = &mut *lock(&scratch);
        let bytes = view.shape.iter().product::<usize>().saturating_mul(view.dtype.size());
        let small = (bytes <= SMALL).then_some(ForcedWalk::Views);
        let forced = self.shape.walk.or(small);
        let Some(known) = scratch.known.take(ends[0], view, reduced, forced)? else {
            return Ok(false);
        };
        let question = &known.question;
        let answer = question.answer;
        let next = |other: Answer| other.asked() == answer.asked() + 1;
        if Answer::of(ends[1], view.dtype).is_some_and(next)
            && let Some(route @ Route { walk: Walk::View(layout, plan), .. }) =
                &question.route(self.machine())
        {
            for to in to {
                check_alignment(to, question.table.outputs.len, answer.out)?;
            }
            self.remember_route(question, route)?;
            // SAFETY: passed on from the caller.
            unsafe {
                self.launch_strided(answer, layout, plan, (to[0], Some(to[1])), scratch, stream)?;
            }
            let watched = question.may_overflow();
            scratch.known.keep(known);
            return Ok(!watched || !scratch.saw_overflow(&*self.device, stream)?);
        }
        // SAFETY: passed on from the caller.
        unsafe {
            Ok(self.answered(ends[0], view, reduced, to[0], scratch, stream)?
                && self.answered(ends[1], view, reduced, to[1], scratch, stream)?)
        }
    }
}
