//! The last questions on a stream: the same come again and again, also of arrays that lie elsewhere.

use super::number::Number;
use super::plan::ForcedWalk;
use super::question::Question;
use super::view::DeviceView;
use crate::Result;

/// How many there are.
const MOST: usize = 8;
/// Nothing that is planned depends on more of an address than what is left of a division by this.
const ALIGNMENT: u64 = 256;

/// A question, and what was asked.
pub(super) struct Known {
    asked: (Number, Option<ForcedWalk>),
    view: DeviceView,
    reduced: Vec<bool>,
    pub(super) question: Question,
}

/// Some of them, the last one in the end.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "they are large, and move at each call")]
pub(super) struct LastQuestions(Vec<Box<Known>>);

impl LastQuestions {
    /// The [question](Question::of), which is to be [kept](Self::keep) afterwards.
    pub(super) fn take(
        &mut self,
        number: Number,
        view: &DeviceView,
        reduced: &[bool],
        forced: Option<ForcedWalk>,
    ) -> Result<Option<Box<Known>>> {
        let asked = (number, forced);
        let is_same = |known: &Known| {
            let DeviceView { address, dtype, shape, strides } = &known.view;
            known.asked == asked
                && (*dtype, shape, strides) == (view.dtype, &view.shape, &view.strides)
                && (address ^ view.address).is_multiple_of(ALIGNMENT)
                && known.reduced == reduced
        };
        if let Some(i) = self.0.iter().position(|known| is_same(known)) {
            let mut known = self.0.remove(i);
            known.question.move_by(view.address.wrapping_sub(known.view.address));
            known.view.address = view.address;
            return Ok(Some(known));
        }
        let question = Question::of(number, view, reduced, forced)?;
        let (view, reduced) = (view.clone(), reduced.to_vec());
        Ok(question.map(|question| Box::new(Known { asked, view, reduced, question })))
    }

    /// Keeps a question that was asked.
    pub(super) fn keep(&mut self, known: Box<Known>) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(known);
    }
}
