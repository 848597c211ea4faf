//! Where answers go: outputs are walked in the order of memory, and answered in C order.

/// The outputs in the order of memory, as places in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// The place of the first of them.
    pub(super) first: isize,
    /// Axes, outermost first: lengths, and the places from one output to the next.
    pub(super) axes: Vec<(usize, isize)>,
}

/// Outputs that follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strip {
    /// The place of the first, and the places from one to the next.
    pub(super) first: isize,
    pub(super) step: isize,
    pub(super) len: usize,
}

impl Places {
    /// Adds an axis inside of those that there are.
    pub(super) fn push(&mut self, len: usize, step: isize) {
        match self.axes.last_mut() {
            Some(outer) if outer.1 == step * len.cast_signed() => *outer = (outer.0 * len, step),
            _ => self.axes.push((len, step)),
        }
    }

    /// The place of one output.
    pub(super) fn at(&self, index: usize) -> usize {
        let (mut rest, mut place) = (index, self.first);
        for &(len, step) in self.axes.iter().rev() {
            place += (rest % len).cast_signed() * step;
            rest /= len;
        }
        place.cast_unsigned()
    }

    /// Hands over the places of the outputs from `from` to `to`, in the order of memory, in
    /// strips as long as there are.
    #[inline]
    pub(super) fn strips(&self, from: usize, to: usize, mut each: impl FnMut(Strip)) {
        if from >= to {
            return;
        }
        let (&(inner, step), outer) = self.axes.split_last().unwrap_or((&(1, 1), &[]));
        // The indices of the outer axes, as an odometer.
        let mut index = vec![0; outer.len()];
        let (mut inside, mut rest) = (from % inner, from / inner);
        for (i, &(len, _)) in index.iter_mut().zip(outer).rev() {
            (*i, rest) = (rest % len, rest / len);
        }
        let (mut at, mut first) = (from, self.at(from).cast_signed());
        loop {
            let len = (inner - inside).min(to - at);
            each(Strip { first, step, len });
            at += len;
            if at >= to {
                return;
            }
            first -= inside.cast_signed() * step;
            inside = 0;
            for (i, &(len, step)) in index.iter_mut().zip(outer).rev() {
                (*i, first) = (*i + 1, first + step);
                if *i < len {
                    break;
                }
                (*i, first) = (0, first - len.cast_signed() * step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_lead_to_every_place_once() {
        // (3, 4, 5) of which memory has the axes as 1, 0 reversed, 2.
        let mut places = Places { first: 40, axes: Vec::new() };
        for (len, step) in [(4, 5), (3, -20), (5, 1)] {
            places.push(len, step);
        }
        for pieces in [1, 2, 7, 60] {
            let (mut seen, mut at) = ([0; 60], 0);
            for from in (0..60).step_by(pieces) {
                places.strips(from, 60.min(from + pieces), |strip| {
                    for i in 0..strip.len {
                        let place = strip.first + i as isize * strip.step;
                        assert_eq!(place, places.at(at) as isize);
                        seen[place as usize] += 1;
                        at += 1;
                    }
                });
            }
            assert_eq!(seen, [1; 60]);
        }
    }

    #[test]
    fn axes_in_c_order_are_one_strip() {
        let mut places = Places { first: 0, axes: Vec::new() };
        places.push(3, 20);
        places.push(20, 1);
        let mut strips = Vec::new();
        places.strips(7, 60, |strip| strips.push(strip));
        assert_eq!(strips, [Strip { first: 7, step: 1, len: 53 }]);
    }
}
