//! A launch in the driver's form, without an allocation.

use super::api::{
    CUstream, LaunchAttribute, LaunchAttributeId, LaunchAttributeValue, LaunchConfig,
};
use crate::device::{Argument, Launch};
use crate::{Error, Result};
use core::ffi::{c_uint, c_void};
use core::ptr;

/// The most arguments of a launch; no kernel here has a quarter of them.
const MOST_ARGUMENTS: usize = 64;

/// The addresses of a launch's arguments.
pub(super) struct Parameters([*mut c_void; MOST_ARGUMENTS]);

impl Parameters {
    /// # Errors
    /// Too many arguments.
    pub(super) fn new(launch: &Launch, arguments: &[Argument]) -> Result<Parameters> {
        if arguments.len() > MOST_ARGUMENTS {
            return Err(Error::Driver {
                doing: format!("launching {launch:?}"),
                name: "CUDA_ERROR_INVALID_VALUE".into(),
                text: format!("{} arguments, of at most {MOST_ARGUMENTS}", arguments.len()),
            });
        }
        let mut parameters = [ptr::null_mut::<c_void>(); MOST_ARGUMENTS];
        for (parameter, argument) in parameters.iter_mut().zip(arguments) {
            *parameter = argument.bits().cast_mut().cast();
        }
        Ok(Parameters(parameters))
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut *mut c_void {
        self.0.as_mut_ptr()
    }
}

/// The attributes of a launch besides its shape.
pub(super) struct Attributes {
    all: [LaunchAttribute; 3],
    count: usize,
}

impl Attributes {
    /// The attributes of a launch. It is a dependent one only where the device supports that.
    pub(super) fn new(launch: &Launch, takes_dependent: bool) -> Attributes {
        let value = LaunchAttributeValue([0; 16]);
        let none = LaunchAttribute { id: LaunchAttributeId::IGNORE, pad: [0; 4], value };
        let mut attributes = Attributes { all: [none; 3], count: 0 };
        if let Some(cluster) = launch.cluster {
            attributes.push(LaunchAttributeId::CLUSTER_DIMENSION, &cluster);
        }
        if launch.cooperative {
            attributes.push(LaunchAttributeId::COOPERATIVE, &[1]);
        }
        if launch.dependent && takes_dependent {
            attributes.push(LaunchAttributeId::PROGRAMMATIC_STREAM_SERIALIZATION, &[1]);
        }
        attributes
    }

    fn push(&mut self, id: LaunchAttributeId, value: &[c_uint]) {
        let next = &mut self.all[self.count];
        next.id = id;
        next.value.0[..value.len()].copy_from_slice(value);
        self.count += 1;
    }

    /// The launch with the attributes, to which it points.
    pub(super) fn config(&mut self, launch: &Launch, stream: CUstream) -> LaunchConfig {
        LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared,
            stream,
            attributes: self.all.as_mut_ptr(),
            attribute_count: self.count as c_uint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_has_the_attributes_that_it_asks_for() {
        let launch = Launch::linear(8, 128).clusters(4).cooperative().dependent();
        let mut all = Attributes::new(&launch, true);
        let ids: Vec<u32> = all.all[..all.count].iter().map(|a| a.id.0).collect();
        assert_eq!(ids, [4, 2, 6]);
        assert_eq!(all.all[0].value.0[..4], [4, 1, 1, 0]);
        assert_eq!((all.all[1].value.0[0], all.all[2].value.0[0]), (1, 1));
        let config = all.config(&launch, ptr::null_mut());
        assert_eq!(
            (config.grid, config.block, config.attribute_count),
            ([8, 1, 1], [128, 1, 1], 3)
        );
        assert_eq!(Attributes::new(&launch, false).count, 2);
        assert_eq!(Attributes::new(&Launch::linear(1, 1), true).count, 0);
    }

    #[test]
    fn more_arguments_than_there_is_room_for_are_an_error() {
        let launch = Launch::linear(1, 1);
        assert!(Parameters::new(&launch, &vec![Argument::from(0u8); MOST_ARGUMENTS]).is_ok());
        let refused = Parameters::new(&launch, &vec![Argument::from(0u8); MOST_ARGUMENTS + 1]);
        assert!(refused.err().unwrap().to_string().contains("65 arguments"));
    }
}
